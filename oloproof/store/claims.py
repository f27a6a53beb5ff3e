"""Claims: what one process is getting, others on the same store wait for instead of paying for it too.

A claim is the lock of one byte of a file, at a place that the claimed identity names. The system keeps it as long as
the process lives, so whatever way that ends, its claims are free at once; nothing has to be written, renewed or
cleared away. Two identities whose places are the same wait for each other needlessly, which does no harm.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path


class Claims:
    """The claims of this process, in a file that is made when the first is taken. Where a file cannot be locked nobody
    claims anything, and all ask for themselves."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._settled: list[bytes] = []

    def take(self, identity: bytes) -> bool:
        """Claim, unless another process has; True when it is claimed."""
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError:
                return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(identity))
        except OSError as error:
            return error.errno not in (errno.EAGAIN, errno.EACCES)  # what fcntl says of a lock that is held
        return True

    def give_back(self, identity: bytes) -> None:
        """Let others have it."""
        if self._file is not None:
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _place(identity))

    def settle(self, identity: bytes) -> None:
        """Let others have it as soon as they can read what was written just now."""
        self._settled.append(identity)

    def committed(self) -> None:
        """What was written can be read by others."""
        for identity in self._settled:
            self.give_back(identity)
        self._settled.clear()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _place(identity: bytes) -> int:
    return int.from_bytes(identity[:8], "big") >> 2
