"""One request to a model provider: what came back, whatever that was."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from oloproof.judges.providers import Answered, Model, address, headers, read_answer

if TYPE_CHECKING:
    from requests import PreparedRequest, Response, Session

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
        """What a provider answered, and how many seconds it asks to be left alone. Never raises for what it does.
        No key stands in any part of the answer."""
        import requests
        from urllib3.exceptions import ReadTimeoutError

        where = urlsplit(call.model.base_url).netloc
        late = Answered(fault=TIMED_OUT, detail=f"no answer within {call.timeout_seconds:g} s", retry=True)
        try:
            deadline = time.monotonic() + call.timeout_seconds
            with self._way(call.model, key).post(call.body, call.timeout_seconds) as response:
                text = _text(response, deadline)
                asked = retry_after(response.headers.get("Retry-After"), time.time())
                return read_answer(call.model, response.status_code, text, key, call.body), asked
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

    def _way(self, model: Model, key: str) -> _Way:
        """This thread's way to a model."""
        ways: dict[tuple[Model, str], _Way] | None = getattr(self._local, "ways", None)
        if ways is None:
            ways = self._local.ways = {}
        way = ways.get((model, key))
        if way is None:
            way = ways[model, key] = _Way(model, key)
        return way


class _Way:
    """How one thread reaches one model: a session, with what is the same for every question worked out once. That is
    all of a request but its body, and which proxy and certificates the environment asks for."""

    def __init__(self, model: Model, key: str) -> None:
        import requests

        from oloproof.judges.timely import TimelyAdapter

        self._session: Session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, TimelyAdapter())
        sent = requests.Request("POST", address(model), headers=headers(model, key or None), auth=_as_it_is)
        self._request: PreparedRequest = self._session.prepare_request(sent)
        self._request.headers["Content-Type"] = "application/json"
        url = str(self._request.url)
        self._settings = self._session.merge_environment_settings(url, {}, True, None, None)

    def post(self, body: Mapping[str, Any], timeout: float) -> Response:
        """The response, of which the body is still to be read."""
        request = self._request.copy()
        request.prepare_body(json.dumps(dict(body), allow_nan=False).encode(), None)
        response = self._session.send(request, timeout=timeout, allow_redirects=False, **self._settings)
        _acknowledge(response)
        return response


def _acknowledge(response: Response) -> None:
    """Tell the other side at once that its headers are here. A server that sends them apart from the body may hold that
    back until it is told (Nagle's algorithm), which a system left to itself does up to 40 ms later."""
    open_socket = getattr(response.raw.connection, "sock", None)
    if open_socket is not None and hasattr(socket, "TCP_QUICKACK"):
        with suppress(OSError):
            open_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


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
    """The seconds that a Retry-After asks for, a number or a date; None when it asks for nothing that can be read, or
    for no time at all: where clocks differ, a date may have passed already."""
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
        except (TypeError, ValueError, OverflowError):
            return None
    return seconds if seconds > 0 else None
