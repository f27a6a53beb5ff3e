"""The files of the base as they stand in its commit, which no code that was run has had a chance to change."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from oloproof_ci.git import Repository

#: How a file begins that git keeps a pointer to and not the content of (https://git-lfs.com).
_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class BaseFiles:
    """The files of a commit that is checked out in `tree`. What git does not hold is read there, under `reading`, which
    allows no more than the checkout's code may."""

    repository: Repository
    sha: str
    tree: Path
    reading: Callable[[], AbstractContextManager[None]]

    def content(self, path: Path) -> bytes | None:
        """What a file holds, None when it is not there. `path` is absolute, in the tree, or starts at its top."""
        place = Path(os.path.normpath(self.tree / path))
        if place.is_relative_to(self.tree):
            kept = self.repository.file_at(self.sha, place.relative_to(self.tree))
            if kept is not None and not kept.startswith(_POINTER):
                return kept
        try:
            with self.reading():
                return place.read_bytes()
        except OSError:
            return None
