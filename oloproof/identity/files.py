"""The project files that a stage result depends on: which, with which content, and whether they still have it."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from oloproof.canonical import digest

#: A file's digest is kept from run to run when the file is at least this large, and was last changed at least this
#: long before: a younger file could change once more within one tick of the file system's clock.
KEPT_BYTES = 4_000_000
SETTLED_SECONDS = 3.0
NOTHING_READ = b""

#: Names that a listing of a folder does not count: what tools and runs of ours leave there.
PASSED_OVER = frozenset({".git", ".oloproof", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})

#: A path below the project's root, and the hex digest of its content (None: it is not there). One that ends in a slash
#: is a folder; its content is the names in it.
FileState = tuple[str, str | None]


class FileRecords(Protocol):
    """Where sets of files, and digests of large ones, are kept."""

    def file_set(self, identity: bytes) -> list[FileState]:
        """The files of a set."""

    def put_file_set(self, identity: bytes, files: Sequence[FileState]) -> None:
        """Keep a set of files."""

    def replace_file_set(self, identity: bytes, files: Sequence[FileState]) -> None:
        """Keep a set of files in place of the one that was kept under the same identity."""

    def known_digest(self, path: str, size: int, changed: int) -> str | None:
        """The digest of a file that had this size and time of change (in ns) when it was read."""

    def put_digest(self, path: str, size: int, changed: int, content: str) -> None:
        """Keep the digest of a file."""


class ProjectFiles:
    """The files of one checkout, as far as stage results depend on them.

    `root` is where their paths start. `ignored` are patterns of paths that do not count, `counts` says of the others
    which do. What was once looked at is taken to stay as it is until the object goes: one for each run.
    """

    def __init__(
        self,
        root: Path,
        records: FileRecords,
        ignored: Sequence[str] = (),
        counts: Callable[[str], bool] = lambda path: True,
    ) -> None:
        self._root = root
        self._records = records
        self._ignored = tuple(ignored)
        self._counts = counts
        self._digests: dict[str, str | None] = {}
        self._sets: dict[tuple[str, ...], bytes] = {}
        self._changed: dict[bytes, tuple[str, ...]] = {NOTHING_READ: ()}

    def identify(self, paths: tuple[str, ...]) -> bytes:
        """The identity of a set of files with the content they have now; empty when none of them counts."""
        known = self._sets.get(paths)
        if known is not None:
            return known
        files = [(path, self._digest(path)) for path in paths if self._relevant(path)]
        identity = NOTHING_READ
        if files:
            identity = digest("files", json.dumps(files))
            self._records.put_file_set(identity, files)
            self._changed[identity] = ()
        self._sets[paths] = identity
        return identity

    def remember(self, identity: bytes, paths: tuple[str, ...]) -> None:
        """Keep the files under an identity that is given, in place of those that were there."""
        files = [(path, self._digest(path)) for path in paths if self._relevant(path)]
        self._records.replace_file_set(identity, files)
        self._changed[identity] = ()

    def remembered(self, identity: bytes) -> Sequence[FileState]:
        """The files that are kept under an identity, with the content they had."""
        return self._records.file_set(identity)

    def changed(self, identity: bytes) -> tuple[str, ...]:
        """The files of a set whose content is no longer what it was; none when the set is still valid."""
        known = self._changed.get(identity)
        if known is None:
            known = tuple(
                path
                for path, content in self._records.file_set(identity)
                if self._relevant(path) and self._digest(path) != content
            )
            self._changed[identity] = known
        return known

    def content(self, path: str) -> str | None:
        """The digest of what a file or folder holds now; None when it is not there."""
        return self._digest(path)

    def valid(self, identity: bytes) -> bool:
        """Whether every file of a set still has the content that it had."""
        return not self.changed(identity)

    def _relevant(self, path: str) -> bool:
        return self._counts(path) and not self._ignores(path)

    def _ignores(self, path: str) -> bool:
        return any(fnmatch.fnmatchcase(path, pattern) for pattern in self._ignored)

    def _digest(self, path: str) -> str | None:
        if path not in self._digests:
            self._digests[path] = self._read(path)
        return self._digests[path]

    def _list(self, path: str) -> str | None:
        try:
            names = set(os.listdir(self._root / path)) - PASSED_OVER
        except OSError:
            return None
        inside = path.removeprefix("./")
        kept = sorted(name for name in names if not self._ignores(inside + name))
        return digest("folder", json.dumps(kept)).hex()

    def _read(self, path: str) -> str | None:
        if path.endswith("/"):
            return self._list(path)
        place = self._root / path
        try:
            status = os.stat(place)
            large = status.st_size >= KEPT_BYTES
            if large:
                known = self._records.known_digest(str(place), status.st_size, status.st_mtime_ns)
                if known is not None:
                    return known
            with open(place, "rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return None
        if large and time.time() - status.st_mtime > SETTLED_SECONDS:
            self._records.put_digest(str(place), status.st_size, status.st_mtime_ns, content)
        return content
