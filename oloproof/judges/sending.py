"""One request to a model provider: what came back, whatever that was."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from oloproof.judges.providers import Answered, Model, address, headers, read_answer

if TYPE_CHECKING:
    from requests import Response, Session

#: How much of an answer is read; more is none of ours.
MAX_ANSWER_BYTES = 4_000_000
CHUNK = 65_536

TIMED_OUT = "judge_timed_out"
UNREACHABLE = "judge_unreachable"


@dataclass(frozen=True)
class Call:
    """One request to a provider. `key_variable` names the environment variable with the key, None when none is sent.
    `timeout_seconds` is how long the whole answer may take."""

    model: Model
    body: Mapping[str, Any]
    key_variable: str | None
    timeout_seconds: float


class Sender:
    """Sends requests over connections that stay open, one a thread."""

    def __init__(self) -> None:
        self._local = threading.local()

    def send(self, call: Call, key: str) -> tuple[Answered, float | None]:
        """What a provider answered, and how many seconds it asks to be left alone. Never raises for what it does."""
        import requests
        from urllib3.exceptions import ReadTimeoutError

        where = urlsplit(call.model.base_url).netloc
        late = Answered(fault=TIMED_OUT, detail=f"no answer within {call.timeout_seconds:g} s", retry=True)
        try:
            deadline = time.monotonic() + call.timeout_seconds
            with self._session().post(
                address(call.model),
                json=dict(call.body),
                headers=headers(call.model, key or None),
                timeout=call.timeout_seconds,
                stream=True,
                allow_redirects=False,
                auth=_as_it_is,
            ) as response:
                text = _text(response, deadline)
                asked = retry_after(response.headers.get("Retry-After"), time.time())
                return read_answer(call.model, response.status_code, text), asked
        except (requests.exceptions.Timeout, ReadTimeoutError, TimeoutError):
            return late, None
        except requests.exceptions.SSLError:
            return Answered(fault=UNREACHABLE, detail=f"{where}: the certificate is not trusted"), None
        except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
            return Answered(fault=UNREACHABLE, detail=f"{where}: {_reason(error)}", retry=True), None
        except requests.exceptions.RequestException as error:
            return Answered(fault=UNREACHABLE, detail=f"{where}: {type(error).__name__}"), None
        except Exception as error:  # noqa: BLE001 - a connection cut in the middle of an answer, in urllib3's words
            detail = f"{where}: the answer broke off ({type(error).__name__})"
            return Answered(fault=UNREACHABLE, detail=detail, retry=True), None

    def _session(self) -> Session:
        import requests

        session: Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
        return session


def _as_it_is(request: Any) -> Any:
    """Keeps requests from putting a password of ~/.netrc in the place of the key."""
    return request


def _text(response: Response, deadline: float) -> str:
    """The answer, which may drip in, but not for longer than until the deadline."""
    parts: list[bytes] = []
    size = 0
    while size < MAX_ANSWER_BYTES and (part := response.raw.read1(CHUNK, decode_content=True)):
        parts.append(part)
        size += len(part)
        if time.monotonic() > deadline:
            raise TimeoutError
    return b"".join(parts).decode("utf-8", "replace")


def _reason(error: BaseException) -> str:
    """What the system said of a connection that failed."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
        cause = cause.__cause__ or cause.__context__
    return f"no connection ({type(error).__name__})"


def retry_after(text: str | None, now: float) -> float | None:
    """The seconds that a Retry-After asks for, a number or a date; None when it asks for nothing that can be read."""
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (TypeError, ValueError, OverflowError):
        return None
