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

from oloproof.worker.child import LOG_HEAD, PIPES_LOST, left_out, read_log

PACKAGE = Path(__file__).resolve().parent.parent
CHILD = Path(__file__).with_name("child.py")
#: The log of a call that never ends is cut when it reaches this size, so that it cannot fill the disk.
MAX_LOG = 64 * 1024 * 1024
#: What a pipe holds. More would be allocated anew, and returned to the system, with each call.
READ_SIZE = 1 << 16
#: Longest message that is read from a worker; a longer one means the pipe was tampered with.
MAX_MESSAGE = 256 * 1024 * 1024
#: How often a wait looks after the log and the process, in seconds.
GLANCE = 0.5
#: Environment variable that marks a worker and whatever it starts, however it is detached.
MARK = "OLOPROOF_WORKER"


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
    """One child process. Not for use by two threads at once. `mark` is left in its environment, for `end_marked`."""

    def __init__(self, checkout: Checkout, mark: str) -> None:
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
                env={**dict(checkout.environment), MARK: mark},
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
        os.set_blocking(request_write, False)
        self.checkout = checkout
        self._numbers = 0
        self._closed = False
        #: Whether the app has been constructed in it.
        self.constructed = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def call(self, request: dict[str, Any], timeout: float) -> Reply:
        """Ask one thing and wait for the reply, at most `timeout` seconds.

        After a reply of kind crash or timeout the process is gone.
        """
        started = monotonic()
        self._numbers += 1
        data = json.dumps({**request, "number": self._numbers}, separators=(",", ":")).encode() + b"\n"
        try:
            self._write(data, started + timeout)
            message = self._read_line(started + timeout)
        except TimeoutError:
            return self._ended("timeout", f"no answer within {timeout:g} s", started)
        except (OSError, EOFError):
            return self._ended("crash", "", started)
        try:
            fields = json.loads(message)
            if fields["number"] != self._numbers:
                raise ValueError
            error = fields.get("error")
            log, seconds = str(fields.get("log", "")), float(fields["seconds"])
            if error is None:
                return Reply(value=fields["value"], seconds=seconds, log=log)
            return Reply(None, error["kind"], error["message"], error["traceback"], seconds, log)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return self._ended("crash", "the worker's pipe carried something that is no reply", started)

    def _write(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._requests, view) :]
            except BlockingIOError:
                self._wait(self._requests, select.POLLOUT, deadline)

    def _read_line(self, deadline: float) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            if not self._wait(self._replies, select.POLLIN, deadline):
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

    def _wait(self, fd: int, event: int, deadline: float) -> bool:
        """Whether a pipe is ready, after a moment at most. Raises TimeoutError past the deadline, and EOFError when
        the process has ended: something that it started may hold the pipe open for ever."""
        remaining = deadline - monotonic()
        if remaining <= 0:
            raise TimeoutError
        poll = select.poll()
        poll.register(fd, event)
        if poll.poll(min(remaining, GLANCE) * 1000):
            return True
        self._bound_log()
        if not self.alive and not poll.poll(0):
            raise EOFError
        return False

    def _bound_log(self) -> None:
        size = os.fstat(self._log.fileno()).st_size
        if size > MAX_LOG:
            os.ftruncate(self._log.fileno(), LOG_HEAD)
            os.write(self._log.fileno(), left_out(size - LOG_HEAD).encode())

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
        return read_log(self._log.fileno())

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


def end_marked(mark: str) -> None:
    """Kill every process that carries a worker's mark in its environment: what the user's code started and detached
    outlives its worker's process group. Does nothing where there is no /proc."""
    entry = f"{MARK}={mark}".encode()
    for _ in range(3):  # one that is just being started may be missed the first time
        found = False
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if entry not in environ.read_bytes().split(b"\0"):
                    continue
                os.kill(int(environ.parent.name), signal.SIGKILL)
                found = True
            except OSError:
                continue
        if not found:
            return


def _exit_sentence(status: int | None) -> str:
    if status is None or status == PIPES_LOST:
        return "the code closed the file descriptors of its worker"
    if status < 0:
        try:
            return f"the worker was ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"the worker was ended by signal {-status}"
    return f"the worker ended with exit status {status}"
