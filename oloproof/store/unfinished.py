"""What a killed process left undone, so that the next one goes on from there instead of from the start."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from oloproof.errors import UnfinishedError

FOLDER = "unfinished"


class Unfinished:
    """Undertakings under way, each a file named after what is undertaken, that holds the undertaking's own name.

    The file is locked as long as the process lives, and removed once the undertaking has come to its end. So a file
    that nobody holds is one that was broken off: whoever undertakes the same goes on under its name.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER

    @contextmanager
    def undertaking(self, what: bytes, new_name: Callable[[], str]) -> Iterator[str]:
        """The name to work under: that of an equal undertaking which was broken off, else a new one. What the block
        raises leaves it unfinished. While another process is at the same, this one leaves nothing to go on from."""
        path = self._folder / what.hex()
        file = self._open(path)
        try:
            if not _lock(file):
                yield new_name()
                return
            name = _read(file)
            if not name:
                name = new_name()
                os.ftruncate(file, 0)
                os.pwrite(file, f"{name}\n".encode(), 0)
            yield name
            path.unlink(missing_ok=True)
        finally:
            os.close(file)

    def _open(self, path: Path) -> int:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UnfinishedError(f"{path}: cannot be written ({error.strerror or error})") from None


def _lock(file: int) -> bool:
    """Hold a file until it is closed; False when another process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read(file: int) -> str:
    """The name in a file; empty where the process was killed while it wrote one."""
    text = os.pread(file, 200, 0).decode("ascii", "replace")
    return text.strip() if text.endswith("\n") else ""
