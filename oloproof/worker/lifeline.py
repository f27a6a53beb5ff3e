"""No worker outlives the engine, however that ends and whatever the user's code is doing.

The engine holds a pipe that nobody writes to. When it ends, the kernel closes the pipe, and each worker has asked the
kernel to kill its process group at that moment: no thread of the worker has to run for it, so a loop in C, a sleep or
a stop changes nothing. Its keeper holds such a pipe too. Loaded on both sides, so standard library only.
"""

from __future__ import annotations

import fcntl
import os

#: signal.SIGKILL; loading that module would take longer than all the rest here.
KILL = 9

_PIPES: dict[int, tuple[int, int]] = {}


def lifeline() -> int:
    """The descriptor to pass on to a worker; one for all workers of this process."""
    process = os.getpid()  # after a fork another one
    if process not in _PIPES:
        _PIPES[process] = os.pipe()
    return _PIPES[process][0]


def end_with(passed: int) -> int:
    """Inside a worker, the leader of its process group: tie it to the process that holds the other end of a pipe. Gives
    the descriptor that is to stay open."""
    try:
        own = signal_when_closed(passed, -os.getpid(), KILL)
    except (OSError, AttributeError):
        return _watch(passed)
    if own is None:
        os._exit(0)  # it ended before
    return own


def signal_when_closed(passed: int, whom: int, number: int) -> int | None:
    """Have the kernel send a signal to a process, or to a group when `whom` is negative, once the other end of a pipe
    is closed. Gives the descriptor that is to stay open, None when it is closed already. Raises OSError and
    AttributeError where the kernel does not do this."""
    # Whom the kernel signals belongs to the open file, so each process opens one of its own.
    own = os.open(f"/proc/self/fd/{passed}", os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.fcntl(own, fcntl.F_SETOWN, whom)
        fcntl.fcntl(own, fcntl.F_SETSIG, number)
        fcntl.fcntl(own, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
    except (OSError, AttributeError):
        os.close(own)
        raise
    os.close(passed)
    try:
        os.read(own, 1)
    except BlockingIOError:
        return own
    return None


def _watch(fd: int) -> int:
    """The same where the kernel does not do it: a thread, which cannot run while C code keeps the interpreter."""
    import threading

    def wait() -> None:
        try:
            os.read(fd, 1)
        except OSError:  # closed by the user's code
            return
        os.killpg(os.getpid(), KILL)

    threading.Thread(target=wait, name="oloproof-lifeline", daemon=True).start()
    return fd
