"""Nothing that a worker starts outlives it, however it is detached.

On Linux each worker is the child of a process of ours, its keeper, which has asked the kernel for the orphans among its
descendants: what leaves the worker's session and forgets its environment still falls to the keeper when its parent
ends. When the worker ends, or the engine does, or the engine asks for it with SIGTERM, the keeper kills all that is
left, and then ends as the worker did. It runs no code of the user's, so nothing holds it up. Loaded inside the worker,
so standard library only.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import Any, NamedTuple, NoReturn

from oloproof.worker.lifeline import KILL, signal_when_closed

#: Whether workers of this system have a keeper between them and the engine.
HAS_KEEPER = sys.platform == "linux"

_signal: Any = importlib.import_module("_signal")
_TERMINATE, _CONTROL_C = 15, 2
_SET_CHILD_SUBREAPER, _SET_NAME = 36, 15
#: How long what was killed may take to end, in seconds, before it is left to the kernel.
PATIENCE = 5.0


class Kept(NamedTuple):
    """What a worker has of its keeper: a pipe that closes with it, and one that tells when it is ready."""

    tie: int
    ready: int

    def wait_until_ready(self) -> None:
        """Return once orphans fall to the keeper."""
        os.read(self.ready, 1)
        os.close(self.ready)


def kept(lifeline: int) -> Kept | None:
    """Leave the process that calls this as keeper, and return in its child, the worker, as the leader of a session;
    where there is no keeper, return None at once. `lifeline` is the pipe that closes with the engine."""
    if not HAS_KEEPER:
        return None
    tie, held = os.pipe()
    ready, say_ready = os.pipe()
    worker = os.fork()
    if worker:
        try:
            _keep(worker, lifeline, held, say_ready)
        finally:
            os._exit(1)
    os.close(held)
    os.close(say_ready)
    os.setsid()
    return Kept(tie, ready)


def _keep(worker: int, lifeline: int, *needed: int) -> NoReturn:
    def end_worker(*_: object) -> None:
        for kill in (os.killpg, os.kill):  # it may not lead a group yet
            try:
                kill(worker, KILL)
            except OSError:
                continue

    _signal.signal(_TERMINATE, end_worker)
    _signal.signal(_CONTROL_C, _signal.SIG_IGN)
    # Of the pipes to the engine none may stay open here, or it would not see them close.
    kept_open = sorted({lifeline, *needed})
    for low, high in zip([2, *kept_open], [*kept_open, 4096], strict=True):
        os.closerange(low + 1, high)
    try:
        if signal_when_closed(lifeline, os.getpid(), _TERMINATE) is None:
            end_worker()
    except (OSError, AttributeError):
        pass  # the worker is tied to the engine itself
    _receive_orphans()
    os.write(needed[-1], b"1")
    os.close(needed[-1])
    _, status = os.waitpid(worker, 0)
    _end_descendants()
    _end_likewise(status)


def _receive_orphans() -> None:
    try:
        import ctypes

        library = ctypes.CDLL(None)
        library.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        library.prctl(_SET_NAME, b"oloproof-keeper", 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return  # what is in the worker's group is ended all the same


def _end_descendants() -> None:
    """Kill the children of this process until none are left: those of a killed one become ours."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for child in _children():
            try:
                os.kill(child, KILL)
            except OSError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        time.sleep(0.001)


def _children() -> list[int]:
    own = os.getpid()
    try:
        with open(f"/proc/self/task/{own}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:  # not every kernel lists them
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(name) == own]


def _parent(process: str) -> int:
    try:
        with open(f"/proc/{process}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _end_likewise(status: int) -> NoReturn:
    """End with the exit status or through the signal that the worker ended with."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if number != KILL:
                _signal.signal(number, _signal.SIG_DFL)
        except (ImportError, OSError, ValueError):
            pass
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
