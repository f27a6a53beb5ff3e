"""What stands in a file, which names a folder has, where a link leads: as digests, read once a run."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from oloproof.canonical import digest
from oloproof.worker.places import EXISTENCE, LINK, PASSED_OVER
from oloproof.worker.reads import PROGRAM, file_stamp, folder_stamp, kind_of

#: A file's digest is kept from run to run when the file is at least this large, and was last changed at least this
#: long before: a younger file could change once more within one tick of the file system's clock.
KEPT_BYTES = 4_000_000
SETTLED_SECONDS = 3.0


class DigestRecords(Protocol):
    """Where digests of large files are kept."""

    def known_digest(self, path: str, size: int, changed: int) -> str | None:
        """The digest of a file that had this size and time of change (in ns) when it was read."""

    def put_digest(self, path: str, size: int, changed: int, content: str) -> None:
        """Keep the digest of a file."""


class Contents:
    """The content of what has a name below `root`, as a digest in hex, None where there is nothing; and its stamp, as
    the worker tells it of what it has read. `ignores` says which names of a listing do not count."""

    def __init__(self, root: Path, records: DigestRecords, ignores: Callable[[str], bool]) -> None:
        self._root = root
        self._real = os.path.realpath(root)
        self._records = records
        self._ignores = ignores
        self._known: dict[str, tuple[str | None, str]] = {}

    def digest(self, name: str) -> str | None:
        return self._look(name)[0]

    def is_as_read(self, name: str, stamp: str) -> bool:
        """Whether what is digested is what had this stamp when it was read."""
        return self._look(name)[1] == stamp

    def _look(self, name: str) -> tuple[str | None, str]:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._read(name)
        return known

    def _read(self, name: str) -> tuple[str | None, str]:
        if name.endswith(PROGRAM):
            return None, ""
        place = str(self._root / name.partition("//")[0])
        if name.endswith(EXISTENCE):
            kind = kind_of(place)
            return kind, kind
        if name.endswith(LINK):
            return os.path.relpath(os.path.realpath(place), self._real), ""
        return self._read_folder(place, name) if name.endswith("/") else self._read_file(place)

    def _read_folder(self, place: str, name: str) -> tuple[str | None, str]:
        stamp = folder_stamp(place)
        try:
            names = set(os.listdir(place)) - PASSED_OVER
        except OSError:
            return None, ""
        inside = name.removeprefix("./")
        kept = sorted(each for each in names if not self._ignores(inside + each))
        return digest("folder", json.dumps(kept)).hex(), stamp

    def _read_file(self, place: str) -> tuple[str | None, str]:
        try:
            with open(place, "rb") as file:
                status = os.fstat(file.fileno())
                large = status.st_size >= KEPT_BYTES
                if large:
                    known = self._records.known_digest(place, status.st_size, status.st_mtime_ns)
                    if known is not None:
                        return known, file_stamp(status)
                content = hashlib.file_digest(file, "sha256").hexdigest()
                after = os.fstat(file.fileno())
        except OSError:
            return None, ""
        stamp = file_stamp(status)
        if file_stamp(after) != stamp:
            return content, "changing"
        if large and time.time() - status.st_mtime > SETTLED_SECONDS:
            self._records.put_digest(place, status.st_size, status.st_mtime_ns, content)
        return content, stamp
