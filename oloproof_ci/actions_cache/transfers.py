"""Requests to the cache service and its storage: retried where that helps, within one budget of time.

Whatever goes wrong becomes a `CacheProblem`, one sentence that says what it means; nothing about the cache fails a job.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from oloproof.errors import OloproofError

if TYPE_CHECKING:
    from requests import Response, Session

ATTEMPTS = 5
FIRST_PAUSE = 3.0
GROWTH = 1.5
#: How long a server may be silent, in seconds.
SILENCE = 30.0
RETRIED = frozenset({500, 502, 503, 504})
CHUNK = 1 << 20


class CacheProblem(OloproofError):
    """The cache could not be used: what happened, as a sentence's beginning."""


class Budget:
    """So many seconds for all that the cache does in one job."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    @property
    def left(self) -> float:
        return self._end - self._clock()

    def timeout(self) -> float:
        """For the next request. Raises CacheProblem when nothing is left."""
        left = self.left
        if left <= 0:
            raise CacheProblem("the time for the cache is used up")
        return min(SILENCE, left)


class Transfers:
    """A session of requests. `pause` waits so many seconds."""

    def __init__(self, budget: Budget, pause: Callable[[float], None] = time.sleep) -> None:
        self._budget = budget
        self._pause = pause
        self._session: Session | None = None

    def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        json: Any = None,
        body: Callable[[], Any] | None = None,
        answers: Callable[[Response], Any] = lambda response: response,
    ) -> Any:
        """What `answers` makes of the response; a ValueError from it counts as a broken answer and is retried. `body`
        makes the body anew for each attempt. Responses that are not retried are given to `answers` whatever their
        status. Raises CacheProblem."""
        wait = FIRST_PAUSE
        for attempt in range(ATTEMPTS):
            last = attempt == ATTEMPTS - 1
            problem, result = self._once(method, url, headers, json, body, answers)
            if problem is None:
                return result
            if last or self._budget.left <= wait:
                raise CacheProblem(f"{problem}, {attempt + 1} time{'s' * (attempt > 0)} running")
            self._pause(wait * random.uniform(0.8, 1.2))
            wait *= GROWTH
        raise AssertionError("unreachable")

    def _once(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        json: Any,
        body: Callable[[], Any] | None,
        answers: Callable[[Response], Any],
    ) -> tuple[str | None, Any]:
        """The problem that another attempt may cure, or None and the result."""
        import requests

        timeout = self._budget.timeout()
        data = None if body is None else body()
        try:
            response = self._opened().request(
                method,
                url,
                headers=dict(headers),
                json=json,
                data=data,
                timeout=(timeout, timeout),
                allow_redirects=False,
            )
        except requests.exceptions.ConnectionError as error:
            if _refused(error):
                raise CacheProblem("the cache service refuses connections") from None
            return f"the connection to the cache service failed ({type(error).__name__})", None
        except requests.exceptions.RequestException as error:
            return f"the request to the cache service failed ({type(error).__name__})", None
        finally:
            close = getattr(data, "close", None)
            if close is not None:
                close()
        if response.status_code in RETRIED:
            return f"the cache service answered {response.status_code}", None
        try:
            return None, answers(response)
        except ValueError:
            return "the cache service gave an answer that cannot be read", None

    def download(self, url: str, target: Path, max_bytes: int) -> int:
        """Stream a signed address into a file; gives its size. A transfer that broke off goes on where it ended.
        Raises CacheProblem; the file is then removed."""
        try:
            return self._download(url, target, max_bytes)
        except BaseException:
            target.unlink(missing_ok=True)
            raise

    def _download(self, url: str, target: Path, max_bytes: int) -> int:
        wait = FIRST_PAUSE
        with target.open("wb") as file:
            for attempt in range(ATTEMPTS):
                problem = self._continue(url, file, max_bytes)
                if problem is None:
                    return file.tell()
                if attempt == ATTEMPTS - 1 or self._budget.left <= wait:
                    break
                self._pause(wait * random.uniform(0.8, 1.2))
                wait *= GROWTH
        raise CacheProblem(problem or "the download failed")

    def _continue(self, url: str, file: IO[bytes], max_bytes: int) -> str | None:
        """Load what is missing; gives the problem that another attempt may cure."""
        import requests

        timeout = self._budget.timeout()
        start = file.tell()
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        try:
            with self._opened().get(
                url, headers=headers, stream=True, timeout=(timeout, timeout), allow_redirects=False
            ) as response:
                status = response.status_code
                if status in RETRIED:
                    return f"the download was answered with {status}"
                if status not in (200, 206):
                    raise CacheProblem(f"the download was answered with {status}" + _meaning(status))
                if status == 200 and start:  # the server does not know ranges
                    file.seek(0)
                    file.truncate()
                    start = 0
                expected = response.headers.get("Content-Length", "")
                for chunk in response.iter_content(CHUNK):
                    file.write(chunk)
                    self._budget.timeout()
                    if file.tell() > max_bytes:
                        raise CacheProblem(f"the entry is larger than {max_bytes} bytes")
                if expected.isdecimal() and file.tell() - start != int(expected):
                    return "the download broke off"
                return None
        except requests.exceptions.ConnectionError as error:
            if _refused(error):
                raise CacheProblem("the cache's storage refuses connections") from None
            return "the download broke off"
        except requests.exceptions.RequestException as error:
            return f"the download broke off ({type(error).__name__})"

    def part(self, path: Path, start: int, length: int) -> FilePart:
        """Some bytes of a file as the body of a request, which ends when the time for the cache does."""
        return FilePart(path, start, length, self._budget)

    def _opened(self) -> Session:
        if self._session is None:
            import requests

            self._session = requests.Session()
            self._session.trust_env = True
        return self._session

    def close(self) -> None:
        if self._session is not None:
            self._session.close()


class FilePart:
    """Some bytes of a file as the body of a request, read when they are sent."""

    def __init__(self, path: Path, start: int, length: int, budget: Budget) -> None:
        self._budget = budget
        self._file = path.open("rb")
        self._file.seek(start)
        self._left = length
        self._length = length

    def __len__(self) -> int:
        return self._length

    def read(self, size: int = -1) -> bytes:
        self._budget.timeout()
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._file.close()


def _refused(error: BaseException | None) -> bool:
    """Whether nobody listens: trying again at once is of no use."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, ConnectionRefusedError) or "refused" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _meaning(status: int) -> str:
    return ": its address has expired" if status == 403 else ""
