"""What GitHub answers instead of doing what it was asked, and what to tell a person of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

Kind = Literal[
    "rate_limit", "forbidden", "locked", "gone", "unauthorized", "invalid", "unreachable", "unexpected"
]

#: The longest that GitHub may have us wait between two tries, in seconds.
LONGEST_WAIT = 20.0

_RATE_LIMIT = re.compile(r"rate limit|abuse detection", re.IGNORECASE)
_LOCKED = re.compile(r"\block(ed)?\b", re.IGNORECASE)
#: The permission that each thing we write needs.
PERMISSIONS = {"status": "statuses: write", "comment": "pull-requests: write"}


class ApiError(Exception):
    """A request that GitHub did not carry out, as far as is known.

    `wait` is how many seconds GitHub asks to wait. `written` is True when the request may have been carried out all the
    same: its answer was lost.
    """

    def __init__(
        self,
        kind: Kind,
        said: str,
        *,
        status: int | None = None,
        wait: float | None = None,
        written: bool = False,
    ) -> None:
        super().__init__(said)
        self.kind, self.said, self.status = kind, said, status
        self.wait, self.written = wait, written

    def pause(self, usual: float) -> float | None:
        """Seconds after which the same may be asked again, `usual` unless GitHub says how many; None when that is of no
        use, or lies too far ahead."""
        if self.kind != "rate_limit":
            return usual if self.written else None
        return self.wait if self.wait is not None and self.wait <= LONGEST_WAIT else None


def api_error(status: int, body: Any, headers: Mapping[str, str] | None) -> ApiError:
    """What an answer with an error's status means. `headers` may have names of any case."""
    found = {name.lower(): value for name, value in (headers or {}).items()}
    said = _message(body) or f"HTTP {status}"
    if status in (403, 429) and _is_rate_limit(status, said, found):
        return ApiError("rate_limit", said, status=status, wait=_wait(found))
    if status == 401:
        return ApiError("unauthorized", said, status=status)
    if status == 403:
        kind: Kind = "locked" if _LOCKED.search(said) else "forbidden"
        return ApiError(kind, said, status=status)
    if status in (404, 410):
        return ApiError("gone", said, status=status)
    if 400 <= status < 500:
        return ApiError("invalid", said, status=status)
    return ApiError("unreachable", said, status=status, written=status >= 500)


def explained(error: ApiError, what: Literal["status", "comment"], *, from_fork: bool) -> str:
    """Why the status or the comment (`what`) was not written, and what to do, in one or two sentences."""
    return f"The {what} was not written: {_why(error, what, from_fork)}"


def _why(error: ApiError, what: Literal["status", "comment"], from_fork: bool) -> str:
    if error.kind == "rate_limit":
        wait = f" for {error.wait:.0f} s" if error.wait else ""
        return f"GitHub's rate limit holds{wait}. The verdict stands; run the job again later to have it written."
    if error.kind == "locked":
        return "the conversation is locked. Unlock it and run the job again; the step summary has the report."
    if error.kind == "gone":
        return "what it belongs to is gone, or the token cannot see it. The step summary has the report."
    if error.kind == "unauthorized":
        return f"GitHub does not accept the token of the input github-token ({error.said})."
    if error.kind == "forbidden" and from_fork:
        return (
            "a pull request from a fork has a read-only token, whatever `permissions` says. A second workflow on "
            "workflow_run with mode: publish can post it."
        )
    if error.kind == "forbidden":
        return (
            f"the token may not do it ({error.said}). Add `{PERMISSIONS[what]}` to the job's `permissions`; a pull "
            "request by Dependabot has a read-only token all the same."
        )
    if error.kind == "invalid":
        return f"GitHub does not take it ({error.said})."
    return f"GitHub did not answer as it should ({error.said}). Run the job again to have it written."


def _is_rate_limit(status: int, said: str, headers: Mapping[str, str]) -> bool:
    spent = headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers
    return status == 429 or spent or bool(_RATE_LIMIT.search(said))


def _wait(headers: Mapping[str, str]) -> float | None:
    """Seconds, as Retry-After says them."""
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdecimal() else None


def _message(body: Any) -> str:
    message = body.get("message") if isinstance(body, Mapping) else None
    return " ".join(str(message).split())[:200] if message else ""
