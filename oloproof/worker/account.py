"""The user that workers run as, where that is not the engine's own.

Two users of one machine are kept apart by the kernel: what the engine alone may read, and all that /proc tells of it
(its environment, its memory, its open files), is out of a worker's reach. Only root can start a process as somebody
else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Account:
    """A user and group by number; neither need have a name. No further groups go with them."""

    uid: int
    gid: int

    def popen_arguments(self) -> dict[str, Any]:
        """What makes `subprocess.Popen` start a program as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": ()}

    def give(self, *descriptors: int) -> None:
        """Make files of ours this user's, so that it may open them again by what /proc calls them."""
        for fd in descriptors:
            os.fchown(fd, self.uid, self.gid)


@contextmanager
def seeing_as(account: Account | None) -> Iterator[None]:
    """While it lasts, this thread opens files as that user would, and nothing else changes.

    The kernel shows a process's environment to that process's own user, and to whoever may trace any process: root
    in a container may not. It also keeps a link that a hostile user laid from leading to what only root may read.
    """
    if account is None:
        yield
        return
    import ctypes

    libc = ctypes.CDLL(None)
    before = libc.setfsgid(account.gid), libc.setfsuid(account.uid)
    try:
        yield
    finally:
        libc.setfsuid(before[1])
        libc.setfsgid(before[0])
