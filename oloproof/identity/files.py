"""The project files that a stage result depends on: which, with which content, and whether they still have it."""

from __future__ import annotations

import fnmatch
import json
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from oloproof.canonical import digest
from oloproof.identity.content import Contents, DigestRecords
from oloproof.worker.opened import Read, ReadSet
from oloproof.worker.reads import PROGRAM

NOTHING_READ = b""

#: A name as `oloproof.worker.reads` gives it, and the digest of its content (None: it is not there).
FileState = tuple[str, str | None]


class FileSet(NamedTuple):
    """Files that results depend on: those of other sets, and some more. So sets that grow from call to call take no
    more room than what was added."""

    sets: tuple[bytes, ...]
    files: tuple[FileState, ...]


class FileRecords(DigestRecords, Protocol):
    """Where sets of files, and digests of large ones, are kept."""

    def file_set(self, identity: bytes) -> FileSet | None:
        """The set of this identity, None when there is none."""

    def put_file_set(self, identity: bytes, files: FileSet) -> None:
        """Keep a set of files."""

    def replace_file_set(self, identity: bytes, files: FileSet) -> None:
        """Keep a set of files in place of the one that was kept under the same identity."""


class ProjectFiles:
    """The files of one checkout, as far as stage results depend on them.

    `root` is where their names start, `folder` the project's own, which is in it. `ignored` are patterns of paths, seen
    from that folder, that do not count; `counts` says of the others which do. What was once looked at is taken to stay
    as it is until the object goes: one for each run.
    """

    def __init__(
        self,
        root: Path,
        records: FileRecords,
        ignored: Sequence[str] = (),
        counts: Callable[[str], bool] = lambda path: True,
        folder: Path | None = None,
    ) -> None:
        self._records = records
        self._ignored = tuple(ignored)
        self._counts = counts
        self._folder = "" if folder is None else os.path.relpath(folder, root).replace(os.sep, "/")
        self._contents = Contents(root, records, self._ignores)
        self._identities: dict[ReadSet, bytes] = {}
        self._valid: dict[bytes, bool] = {NOTHING_READ: True}
        #: Programs that the results started which were looked at: what those read is not seen.
        self.programs: set[str] = set()

    def identify(self, reads: ReadSet | None) -> bytes:
        """The identity of what was read, with the content it has now; empty when nothing of it counts.

        What has been changed since it was read is given a content that nothing has, so that no later run takes the
        set for valid.
        """
        unknown: list[ReadSet] = []
        while reads is not None and reads not in self._identities:
            unknown.append(reads)
            reads = reads.before
        identity = NOTHING_READ if reads is None else self._identities[reads]
        for each in reversed(unknown):
            identity = self._extended(identity, each.more)
            self._identities[each] = identity
        return identity

    def union(self, sets: Iterable[bytes]) -> bytes:
        """The identity of the set of all files of some sets, each of which is valid now."""
        given = tuple(sorted(set(sets) - {NOTHING_READ}))
        return self._put(FileSet(given, ())) if len(given) > 1 else b"".join(given)

    def remember(self, identity: bytes, reads: ReadSet | None) -> None:
        """Keep what was read under an identity that is given, in place of what was kept there."""
        found = self.identify(reads)
        self._records.replace_file_set(identity, FileSet((found,) if found else (), ()))
        self._valid[identity] = True

    def files_in(self, identity: bytes, seen: set[bytes]) -> Iterator[FileState]:
        """The files of a set with the content that they had, but for those of sets in `seen`; what was looked at is
        added to it."""
        waiting = [identity]
        while waiting:
            each = waiting.pop()
            if each and each not in seen:
                seen.add(each)
                known = self._records.file_set(each) or FileSet((), ())
                waiting.extend(known.sets)
                yield from known.files

    def valid(self, identity: bytes) -> bool:
        """Whether every file of a set still has the content that it had."""
        known = self._valid.get(identity)
        return self._check(identity) if known is None else known

    def changed(self, identity: bytes, seen: set[bytes] | None = None) -> set[str]:
        """The files of a set whose content is no longer what it was; none when the set is still valid."""
        return {name for name, _, _ in self.changes(identity, set() if seen is None else seen)}

    def changes(self, identity: bytes, seen: set[bytes]) -> Iterator[tuple[str, str | None, str | None]]:
        """Those files, as they are seen from the project's folder, with the digests of what they held and hold. Sets in
        `seen` are passed over, and those that were looked at are added to it."""
        waiting = [identity]
        while waiting:
            each = waiting.pop()
            if each in seen or self.valid(each):
                continue
            seen.add(each)
            known = self._records.file_set(each) or FileSet((), ())
            waiting.extend(known.sets)
            for name, content in known.files:
                if not self._fits(name, content):
                    yield self._local(name), content, self._contents.digest(name)

    # ----------------------------------------------------------------------------------------------------- sets

    def _extended(self, before: bytes, reads: Sequence[Read]) -> bytes:
        files: list[FileState] = []
        for name, stamp in reads:
            if self._relevant(name):
                as_read = self._contents.is_as_read(name, stamp)
                files.append(
                    (
                        name,
                        self._contents.digest(name) if as_read else f"changed since: {os.urandom(8).hex()}",
                    )
                )
        return self._put(FileSet((before,) if before else (), tuple(files))) if files else before

    def _put(self, files: FileSet) -> bytes:
        identity = digest("files", json.dumps([[each.hex() for each in files.sets], files.files]))
        self._records.put_file_set(identity, files)
        self._note_programs(files)
        self._valid[identity] = True
        return identity

    def _check(self, identity: bytes) -> bool:
        """Look at a set, and before it at those that it names."""
        loaded: dict[bytes, FileSet | None] = {}
        waiting = [identity]
        while waiting:
            each = waiting[-1]
            if each in self._valid:
                waiting.pop()
                continue
            if each not in loaded:
                loaded[each] = self._records.file_set(each)
            files = loaded[each]
            if files is None:  # what it held nobody knows
                self._valid[each] = False
                continue
            unknown = [name for name in files.sets if name not in self._valid]
            if unknown and not any(name in loaded for name in unknown):
                waiting.extend(unknown)
                continue
            del loaded[each]
            self._note_programs(files)
            self._valid[each] = all(self._valid.get(name, False) for name in files.sets) and all(
                self._fits(name, content) for name, content in files.files
            )
        return self._valid[identity]

    def _note_programs(self, files: FileSet) -> None:
        for name, _ in files.files:
            if name.endswith(PROGRAM):
                self.programs.add(name.removesuffix(PROGRAM))

    # ---------------------------------------------------------------------------------------------------- files

    def _fits(self, name: str, content: str | None) -> bool:
        return not self._relevant(name) or self._contents.digest(name) == content

    def _relevant(self, name: str) -> bool:
        if name.endswith(PROGRAM):
            return True
        path = name.partition("//")[0]
        return self._counts(path) and not self._ignores(path)

    def _ignores(self, path: str) -> bool:
        local = self._local(path)
        return any(fnmatch.fnmatchcase(local, pattern) for pattern in self._ignored)

    def _local(self, name: str) -> str:
        """A path as it is seen from the project's folder."""
        path = name.partition("//")[0]
        if self._folder in ("", "."):
            return path
        found = posixpath.relpath(path, self._folder)
        return f"{found}/" if path.endswith("/") else found
