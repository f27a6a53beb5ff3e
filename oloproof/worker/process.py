"""The engine's side of one worker process: start it, ask it one thing at a time, end it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from oloproof.jsontext import json_writer
from oloproof.worker.account import Account
from oloproof.worker.channel import LEFTOVER, PIPES_LOST
from oloproof.worker.failures import lacks_memory, too_small
from oloproof.worker.keeper import HAS_KEEPER, PATIENCE
from oloproof.worker.kernel import MARK, memory_file, oom_kills, scratch_file
from oloproof.worker.lifeline import lifeline
from oloproof.worker.opened import Opened, ReadSet
from oloproof.worker.printing import LOG_HEAD, PAGE_SIZE, left_out, read_log
from oloproof.worker.replies import checked, error_of, is_number, is_text

PACKAGE = Path(__file__).resolve().parent.parent
CHILD = Path(__file__).with_name("child.py")
#: The log of a call that never ends is cut when it reaches this size, so that it cannot fill the disk.
MAX_LOG = 64 * 1024 * 1024
#: What a pipe holds. More would be allocated anew, and returned to the system, with each call.
READ_SIZE = 1 << 16
#: Longest message that is read from a worker; a longer one means the pipe was tampered with.
MAX_MESSAGE = 256 * 1024 * 1024
_compact_json = json_writer(separators=(",", ":"))
#: How often a wait looks after the log and the process, in seconds.
GLANCE = 0.5


@dataclass(frozen=True)
class Checkout:
    """One version of the user's project: where its app is imported from, by which interpreter, and how it is run.

    `watch` is the folder whose files count when the app opens them, `root` where it is empty. `threads` is how many
    calls a worker process serves at once, `memory_mb` the address space that it may have, `account` the user it runs
    as, when that is not the engine's own. Workers are shared by what
    uses one checkout, or a copy of it that was sent to another process: `session` tells it from others that are equal.
    """

    root: str
    target: str
    interpreter: str
    environment: tuple[tuple[str, str], ...]
    watch: str = ""
    threads: int = 1
    memory_mb: int | None = None
    account: Account | None = None
    session: str = field(default_factory=lambda: os.urandom(8).hex(), repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call came to: a value, or why there is none.

    `kind` is None, or exception, invalid_return, exit (the code called sys.exit), crash (the process ended), or
    timeout. `log` is what the call printed. `reads` is what the worker had read of the project by then, None when
    that is nothing; in the reply to `retrieve` without what only later stages read.
    """

    value: Any = None
    kind: str | None = None
    message: str = ""
    traceback: str | None = None
    seconds: float = 0.0
    log: str = ""
    reads: ReadSet | None = None


class Lost(Exception):
    """The worker ended while a call was under way, and not, or not for certain, through what the call did: it is to be
    repeated, with `alone` on a worker of its own, so that what ends that is known."""

    def __init__(self, alone: bool) -> None:
        super().__init__(alone)
        self.alone = alone


@dataclass(slots=True)
class Begun:
    """A call whose request was sent at the time `started`, and what has come of its reply; `fault` is what was raised
    when it was sent."""

    number: int
    request: dict[str, Any]
    timeout: float
    started: float
    chunks: list[bytes] = field(default_factory=list)
    size: int = 0
    fault: Exception | None = None

    @property
    def deadline(self) -> float:
        """When it has taken all its time."""
        return self.started + self.timeout


class WorkerProcess:
    """One child process that serves one call at a time. `mark` is left in its environment, for `end_marked`."""

    def __init__(self, checkout: Checkout, mark: str) -> None:
        self.checkout = checkout
        self._files = [scratch_file("log")]
        ours: list[int] = []
        theirs: list[int] = []
        try:
            if checkout.threads > 1:
                self._files.append(memory_file(checkout.threads * PAGE_SIZE))
            for near, far in ((ours, theirs), (theirs, ours)):
                reading, writing = os.pipe()
                far.append(reading)
                near.append(writing)
            self._process = self._started(mark, *theirs)
        except BaseException:
            for fd in (*ours, *self._files):
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        self._requests, self._replies = ours
        os.set_blocking(self._requests, False)
        self._numbers = 0
        self._closed = False
        self._opened = Opened()
        self._oom_kills = oom_kills()

    def _started(self, mark: str, requests: int, replies: int) -> subprocess.Popen[bytes]:
        checkout = self.checkout
        log, *pages = self._files
        life = lifeline()
        if checkout.account is not None:
            checkout.account.give(log, life)
        given = {
            "requests": requests,
            "replies": replies,
            "lifeline": life,
            "pages": pages[0] if pages else None,
            "root": checkout.root,
            "target": checkout.target,
            "package": str(PACKAGE),
            "watch": checkout.watch or checkout.root,
            "threads": checkout.threads,
            "memory_mb": checkout.memory_mb,
        }
        environment = {**dict(checkout.environment), MARK: mark}
        if checkout.memory_mb is not None:
            # Each thread has the C library reserve an arena of 64 MB that it may never use.
            environment.setdefault("MALLOC_ARENA_MAX", "2")
        return subprocess.Popen(
            [checkout.interpreter, str(CHILD), json.dumps(given)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=checkout.root,
            env=environment,
            pass_fds=(requests, replies, life, *pages),
            start_new_session=True,
            **(checkout.account.popen_arguments() if checkout.account is not None else {}),
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def call(self, request: dict[str, Any], timeout: float) -> Reply:
        """Ask one thing and wait for the reply, at most `timeout` seconds.

        After a reply of kind crash or timeout the process is gone. Raises Lost when it ended before it took the
        request, through what an earlier call had left behind.
        """
        reply = self.finished(self.begin(request, timeout))
        assert reply is not None
        return reply

    def begin(self, request: dict[str, Any], timeout: float) -> Begun:
        """Ask one thing; `finished` then gives the reply, and says what went wrong."""
        self._numbers += 1
        begun = Begun(self._numbers, request, timeout, monotonic())
        try:
            self._write(message_line(request, self._numbers), begun.deadline)
        except (OSError, EOFError) as error:
            begun.fault = error
        return begun

    def finished(self, begun: Begun, until: float = inf) -> Reply | None:
        """What a call came to that has begun; see `call`. None when it goes on at the time `until`."""
        try:
            if begun.fault is not None:
                raise begun.fault
            line = self._read_line(begun, until)
        except TimeoutError:
            return self._ended("timeout", too_late(begun.timeout), begun.started)
        except BrokenPipeError:  # its keeper may still be clearing up, so that it seemed to be alive
            self.close()
            raise Lost(alone=False) from None
        except (OSError, EOFError):
            return self._ended("crash", "", begun.started)
        if line is None:
            return None
        try:
            fields = json.loads(line)
            if fields["number"] != begun.number:
                raise ValueError
            return self._reply(fields, begun.request)
        except NO_REPLY:
            return self._ended("crash", TAMPERED, begun.started)

    def _reply(self, fields: dict[str, Any], request: dict[str, Any]) -> Reply:
        """A reply as it came; raises one of NO_REPLY when it is none."""
        error = fields.get("error")
        log, seconds = fields.get("log", ""), fields["seconds"]
        if not (is_text(log) and is_number(seconds)):
            raise ValueError
        value = checked(request, fields["value"]) if error is None else None
        kind, message, trace = (None, "", None) if error is None else error_of(error)
        reads = self._opened.after(fields.get("reads"), request["op"])
        return Reply(value, kind, message, trace, seconds, log, reads)

    def _write(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._requests, view) :]
            except BlockingIOError:
                self._wait(self._requests, select.POLLOUT, deadline)

    def _read_line(self, begun: Begun, until: float) -> bytes | None:
        while True:
            if not self._wait(self._replies, select.POLLIN, begun.deadline, until):
                if monotonic() >= until:
                    return None
                continue
            chunk = os.read(self._replies, READ_SIZE)
            if not chunk:
                raise EOFError
            begun.chunks.append(chunk)
            begun.size += len(chunk)
            if chunk.endswith(b"\n"):
                return b"".join(begun.chunks)
            if begun.size > MAX_MESSAGE:
                raise OSError("message too long")

    def _wait(self, fd: int, event: int, deadline: float, until: float = inf) -> bool:
        """Whether a pipe is ready, after a moment at most and no later than `until`. Raises TimeoutError past the
        deadline, and EOFError when the process has ended: something that it started may hold the pipe open for ever."""
        now = monotonic()
        poll = select.poll()
        poll.register(fd, event)
        if poll.poll(max(0.0, min(deadline - now, until - now, GLANCE)) * 1000):
            return True
        if now >= deadline:
            raise TimeoutError
        if now >= until:
            return False
        self._bound_log()
        self._wake_keeper()
        if not self.alive and not poll.poll(0):
            raise EOFError
        return False

    def _wake_keeper(self) -> None:
        """Have the keeper say how the worker ended, though the user's code stopped it."""
        if HAS_KEEPER:
            self._process.send_signal(signal.SIGCONT)

    def _bound_log(self) -> None:
        log = self._files[0]
        size = os.fstat(log).st_size
        if size > MAX_LOG:
            os.ftruncate(log, LOG_HEAD)
            os.write(log, left_out(size - LOG_HEAD).encode())

    def _ended(self, kind: str, message: str, started: float) -> Reply:
        if not message:
            status = self._exit_status()
            if status == LEFTOVER:
                self.close()
                raise Lost(alone=False)
            message = self._exit_sentence(status)
        log = read_log(self._files[0])
        self.close()
        return Reply(None, kind, message, None, monotonic() - started, log)

    def _exit_status(self) -> int | None:
        """How the process ended; None when it has not, within a second."""
        self._wake_keeper()
        try:
            return self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return None

    def _exit_sentence(self, status: int | None) -> str:
        if status is None or status == PIPES_LOST:
            return "the code closed the file descriptors of its worker"
        if status == -signal.SIGKILL and oom_kills() > self._oom_kills:
            return "the worker was ended by SIGKILL: the machine ran out of memory"
        limit = self.checkout.memory_mb
        short = limit is not None and lacks_memory(read_log(self._files[0]))
        suffix = f": it {too_small(limit)}" if limit is not None and short else ""
        if status >= 0:
            return f"the worker ended with exit status {status}{suffix}"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"the worker was ended by {name}{suffix}"

    def kill(self) -> None:
        """End the process and all it started, from any thread; a call under way then returns a crash."""
        if HAS_KEEPER:
            for number in (signal.SIGTERM, signal.SIGCONT):  # the user's code may have stopped the keeper
                self._process.send_signal(number)
            return
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
        try:
            self._process.wait(timeout=2 * PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the worker is tied to its keeper and ends with it
            self._process.wait()
        self._free()

    def _free(self) -> None:
        for fd in (self._requests, self._replies, *self._files):
            os.close(fd)


#: What reading a reply raises when the user's code has written to the pipe.
NO_REPLY = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
TAMPERED = "the worker's pipe carried something that is no reply"


def message_line(request: dict[str, Any], number: int) -> bytes:
    return _compact_json({**request, "number": number}).encode() + b"\n"


def too_late(timeout: float) -> str:
    return f"no answer within {timeout:g} s"
