"""The engine's side of one worker process: start it, ask it one thing at a time, end it."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent
CHILD = Path(__file__).with_name("child.py")
#: The log of a call that never ends is cut when it reaches this size, so that it cannot fill the disk.
MAX_LOG = 64 * 1024 * 1024
READ_SIZE = 1 << 20
#: Longest message that is read from a worker; a longer one means the pipe was tampered with.
MAX_MESSAGE = 256 * 1024 * 1024


@dataclass(frozen=True)
class Checkout:
    """One version of the user's project: where its app is imported from, and by which interpreter."""

    root: str
    target: str
    interpreter: str
    environment: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call came to: a value, or why there is none.

    `kind` is None, or exception, invalid_return, exit (the code called sys.exit), crash (the process ended), or
    timeout. `log` is what the call printed.
    """

    value: Any = None
    kind: str | None = None
    message: str = ""
    traceback: str | None = None
    seconds: float = 0.0
    log: str = ""


class WorkerProcess:
    """One child process. Not for use by two threads at once."""

    def __init__(self, checkout: Checkout) -> None:
        request_read, request_write = os.pipe()
        reply_read, reply_write = os.pipe()
        self._log = tempfile.TemporaryFile(prefix="oloproof-log-", buffering=0)  # noqa: SIM115
        log_fd = self._log.fileno()
        fcntl.fcntl(log_fd, fcntl.F_SETFL, fcntl.fcntl(log_fd, fcntl.F_GETFL) | os.O_APPEND)
        command = [checkout.interpreter, str(CHILD), str(request_read), str(reply_write)]
        try:
            self._process = subprocess.Popen(
                [*command, checkout.root, checkout.target, str(PACKAGE)],
                stdin=subprocess.DEVNULL,
                stdout=log_fd,
                stderr=log_fd,
                cwd=checkout.root,
                env=dict(checkout.environment),
                pass_fds=(request_read, reply_write),
                start_new_session=True,
            )
        except BaseException:
            os.close(request_write)
            os.close(reply_read)
            self._log.close()
            raise
        finally:
            for fd in (request_read, reply_write):
                os.close(fd)
        self._requests = request_write
        self._replies = reply_read
        self._poll = select.poll()
        self._poll.register(reply_read, select.POLLIN)
        self._closed = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, request: dict[str, Any], timeout: float) -> Reply:
        """Ask one thing and wait for the reply, at most `timeout` seconds.

        After a reply of kind crash or timeout the process is gone.
        """
        started = monotonic()
        data = json.dumps(request, separators=(",", ":")).encode() + b"\n"
        try:
            _write_all(self._requests, data)
            message = self._read_line(started + timeout)
        except TimeoutError:
            return self._ended("timeout", f"no answer within {timeout:g} s", started)
        except (OSError, EOFError):
            return self._ended("crash", "", started)
        try:
            fields = json.loads(message)
            error = fields.get("error")
            log, seconds = str(fields.get("log", "")), float(fields["seconds"])
            if error is None:
                return Reply(value=fields["value"], seconds=seconds, log=log)
            return Reply(None, error["kind"], error["message"], error["traceback"], seconds, log)
        except (ValueError, KeyError, TypeError, AttributeError):
            return self._ended("crash", "the worker's pipe carried something that is no reply", started)

    def _read_line(self, deadline: float) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            remaining = deadline - monotonic()
            if remaining <= 0:
                raise TimeoutError
            if not self._poll.poll(min(remaining, 0.5) * 1000):
                self._bound_log()
                continue
            chunk = os.read(self._replies, READ_SIZE)
            if not chunk:
                raise EOFError
            chunks.append(chunk)
            size += len(chunk)
            if chunk.endswith(b"\n"):
                return b"".join(chunks)
            if size > MAX_MESSAGE:
                raise OSError("message too long")

    def _bound_log(self) -> None:
        if os.fstat(self._log.fileno()).st_size > MAX_LOG:
            os.ftruncate(self._log.fileno(), 0)

    def _ended(self, kind: str, message: str, started: float) -> Reply:
        status = self._process.poll()
        if status is None and kind == "crash":
            try:
                status = self._process.wait(timeout=1.0)
            except subprocess.TimeoutExpired:
                status = None
        log = self._read_log()
        self.close()
        if not message:
            message = _exit_sentence(status)
        return Reply(None, kind, message, None, monotonic() - started, log)

    def _read_log(self) -> str:
        size = os.fstat(self._log.fileno()).st_size
        keep = 16_000
        return os.pread(self._log.fileno(), keep, max(0, size - keep)).decode("utf-8", "replace")

    def kill(self) -> None:
        """End the process and all it started, from any thread; a call under way then returns a crash."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self._process.kill()

    def close(self) -> None:
        """End the process and free what it held; safe to call twice, not while a call is under way."""
        if self._closed:
            return
        self._closed = True
        self.kill()
        self._process.wait()
        os.close(self._requests)
        os.close(self._replies)
        self._log.close()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _exit_sentence(status: int | None) -> str:
    if status is None:
        return "the worker closed its pipe"
    if status < 0:
        try:
            return f"the worker was ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"the worker was ended by signal {-status}"
    return f"the worker ended with exit status {status}"
