"""Ending what a pull request's code leaves running: detached, renamed or with an empty environment.

Whatever is started below us becomes our child when its parent ends, so nothing that descends from us is missed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from oloproof.worker.kernel import processes

#: PR_SET_CHILD_SUBREAPER of linux/prctl.h.
_SUBREAPER = 36
_ROUNDS = 200


@contextmanager
def no_leftovers() -> Iterator[None]:
    """Adopt all that loses its parent while the block lasts, and end it, and every other process below us, after."""
    before = descendants()
    _adopt(True)
    try:
        yield
    finally:
        end(before)
        _adopt(False)


def _adopt(orphans: bool) -> None:
    import ctypes

    with suppress(AttributeError):  # no Linux
        ctypes.CDLL(None).prctl(_SUBREAPER, int(orphans), 0, 0, 0)


def end(spared: set[int]) -> None:
    """Kill every process below us but those, until there is none."""
    if os.getpid() == 1 and not spared:
        # In a container all others are below us. The kernel ends them at one blow, which one that does nothing but
        # start its successor cannot outrun, as it can what lists processes first.
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
    for _ in range(_ROUNDS):
        found = descendants() - spared
        if not found:
            return
        for process in found:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        for process in found:
            with suppress(OSError):  # somebody else's child, which its parent is to collect
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.005)


def descendants() -> set[int]:
    """The processes below this one."""
    children: dict[int, list[int]] = {}
    for process, status in processes("stat"):
        try:
            # The name, which the process chose, stands in brackets and may hold anything.
            fields = status.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(process)
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        for child in children.get(waiting.pop(), []):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found
