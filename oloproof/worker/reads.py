"""Which files of the project the user's code reads, seen through an audit hook.

Loaded inside the worker, so standard library only. Sees what goes through Python in this process and those forked from
it: `open`, `os.open`, `sqlite3.connect`, libraries that are loaded, listings of folders, whether a file is there, and
the files that a command line names. What a compiled library or another program opens is not seen; that another program
was started is told.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections import deque
from collections.abc import Callable
from json import dumps, loads
from typing import Any

from oloproof.worker.current import CALL, OURS, RETRIEVAL
from oloproof.worker.existence import watch_existence
from oloproof.worker.frames import reads_code, starts_for_the_library
from oloproof.worker.left_out import is_module, is_source_left_out, source_of
from oloproof.worker.places import (
    EXISTENCE,
    LINK,
    PASSED_OVER,
    Places,
    absolute,
    folder_of,
    held_files,
    open_folders,
)
from oloproof.worker.programs import named_paths, program_name

#: What follows the name of a program that was started.
PROGRAM = "//program"
#: The stamp of what may change without its stamp changing: of a file that was written just before it was read.
UNSETTLED = "?"
#: How long after a change another one may bear the same time, in ns: a tick of the kernel's clock, with room to spare.
TICK = 10_000_000
#: A name and its stamp, which tells whether it is later still as it was when it was read.
Read = tuple[str, str]

_CREATES = os.O_CREAT | os.O_TRUNC
_WRITES = os.O_WRONLY | os.O_RDWR
_LIBRARIES = (".so", ".pyd", ".dylib")
_status = os.stat


class Reads:
    """The project files read in this process, as names below `root` with forward slashes, each with its stamp.

    A folder that was listed ends in a slash; the endings of `places` mark a link on the way and a look whether a file
    is there. A file that the process itself made before it read it does not count: its content follows from the
    others. One that was to be read and is not there counts, since results will differ once it is.
    """

    def __init__(self, root: str) -> None:
        self._places = Places(root)
        #: What the stamps were when a path was noted last, of what counts for retrievals and of what later stages read.
        self._seen: tuple[dict[str, object], dict[str, object]] = ({}, {})
        self._made: set[str] = set()
        self._written: set[str] = set()
        self._new: deque[tuple[int, str, str]] = deque()
        self._process = os.getpid()
        #: Where processes forked from this one say what they read, once there are any; how much of it is known.
        self._forked: int | None = None
        self._heard = 0
        os.register_at_fork(before=self._before_fork)
        sys.addaudithook(self._hook())
        watch_existence(self._glance)

    def drain(self) -> list[list[Read]] | None:
        """What was read since the last call and not before: what counts for retrievals, and what later stages read;
        None when there is nothing."""
        self._hear_forked()
        if "multiprocessing.popen_spawn_posix" in sys.modules:
            self._note_program(RETRIEVAL, "multiprocessing")
        if not self._new:
            return None
        found: tuple[dict[str, str], dict[str, str]] = ({}, {})
        while self._new:  # other threads may add to it meanwhile
            reader, path, stamp = self._new.popleft()
            for name, its_stamp in self._named(path, stamp):
                found[reader][name] = its_stamp
        return [sorted(names.items()) for names in found] if any(found) else None

    # ------------------------------------------------------------------------------------------- what is heard

    def _hook(self) -> Any:
        hear: dict[str, Callable[..., object]] = {
            "open": self._hear_open,
            "sqlite3.connect": lambda path: self._hear_open(path or ":memory:", None, os.O_RDWR | os.O_CREAT),
            "os.rename": lambda source, target, *_: self._rename(source, target),
            "os.mkdir": lambda path, *_: self._made.add(absolute(path)),
            "os.listdir": self._hear_listing,
            "os.scandir": self._hear_listing,
            "import": lambda module, file, *_: self._hear_library(file),
            "ctypes.dlopen": self._hear_library,
            "subprocess.Popen": lambda program, line, folder, _: self._hear_program(program, line, folder),
            "os.posix_spawn": lambda program, line, _: self._hear_program(program, line),
            "os.exec": lambda program, line, _: self._hear_program(program, line),
            "os.system": lambda command: self._hear_program("sh", [command]),
        }
        find = hear.get

        def audit(event: str, arguments: tuple[Any, ...]) -> None:
            # Called for every event there is, so what is of no interest leaves at once.
            heard = find(event)
            if heard is not None:
                try:
                    heard(*arguments)
                except Exception:  # noqa: BLE001 - a hook that raises would break the user's own call
                    return

        return audit

    def _hear_open(self, path: Any, mode: Any, flags: int) -> None:
        if isinstance(path, int):
            return
        full = absolute(path)
        self._note(full, flags)
        if mode is None and full != path and type(path) is str:
            for folder in open_folders():  # it may have been opened with dir_fd
                self._note(absolute(path, folder), flags)

    def _hear_listing(self, path: Any) -> None:
        if isinstance(path, int):
            path = folder_of(path)
        self._note(os.path.join(absolute("." if path is None else path), ""), os.O_RDONLY)

    def _hear_library(self, path: Any) -> None:
        if isinstance(path, str) and path.endswith(_LIBRARIES) and "/" in path:
            self._note(absolute(path), os.O_RDONLY)

    def _hear_program(self, program: Any, line: Any, folder: Any = None) -> None:
        reader = self._reader()
        if reader == OURS or starts_for_the_library():
            return
        words = [os.fsdecode(word) for word in ([line] if isinstance(line, (str, bytes)) else line)]
        self._note_program(reader, program_name(os.fsdecode(program or words[0]), words))
        for path in named_paths(words):
            full = absolute(path, None if folder is None else os.fsdecode(folder))
            if os.path.isfile(full):
                self._add(reader, full, _stamp(full))

    def _rename(self, source: Any, target: Any) -> None:
        """What was made under another name and then moved to its place was made here."""
        full = absolute(source)
        if full in self._made:
            self._tell_made(absolute(target))

    # ------------------------------------------------------------------------------------------- what is noted

    def _note(self, full: str, flags: int) -> None:
        reader = self._reader()
        if reader == OURS:
            return
        full = source_of(full)
        if flags & _CREATES and (flags & os.O_TRUNC or not os.path.exists(full)):
            self._tell_made(full)
            return
        if self._forked is not None:
            self._hear_forked()  # what one of them made does not count here either
        if flags & _WRITES:
            self._written.add(full)
            if flags & _WRITES == os.O_WRONLY:
                return
        if full in self._made:
            return
        stamp = _stamp(full)
        seen = self._seen
        if stamp is None or seen[RETRIEVAL].get(full) == stamp or seen[reader].get(full) == stamp:
            return
        fingerprinted = full.endswith((".py", os.sep)) and reads_code()
        if not fingerprinted or (full.endswith(".py") and self._is_left_out(full)):
            self._add(reader, full, stamp)

    @staticmethod
    def _is_left_out(full: str) -> bool:
        """Whether the code fingerprint knows nothing of a source file that is imported."""
        if not is_source_left_out(full):
            return False
        call = CALL.get()
        return call is None or not call.imports_app or not is_module(full)

    def _glance(self, path: Any, there: bool) -> None:
        """The code looked whether a file is there. One that is counts as read: a compiled library may read it next."""
        full = absolute(path)
        reader = self._reader()
        key = full if there else full + EXISTENCE
        stamp = _stamp(full) if there else ""
        seen = self._seen
        if (
            reader == OURS
            or stamp is None
            or seen[RETRIEVAL].get(key) == stamp
            or seen[reader].get(key) == stamp
        ):
            return
        if not (full in self._made or full in self._written or full.endswith(".py") or reads_code()):
            self._add(reader, key, stamp)

    def note_held(self, reader: int) -> None:
        """Note for a reader the files that this process holds open or has mapped into its memory, however they were
        opened; where the system tells."""
        for full in held_files() if reader != OURS else ():
            known = full in self._made or full in self._written
            if not (known or full in self._seen[RETRIEVAL] or full in self._seen[reader]) and (
                stamp := _stamp(full)
            ):
                self._add(reader, full, stamp)

    def _note_program(self, reader: int, name: str) -> None:
        key = name + PROGRAM
        if key not in self._seen[RETRIEVAL] and key not in self._seen[reader]:
            self._add(reader, key, "")

    def _add(self, reader: int, path: str, stamp: object) -> None:
        self._seen[reader][path] = stamp
        if os.getpid() == self._process:
            self._new.append((reader, path, _told(path, stamp)))
        else:
            self._tell([path, _told(path, stamp)])

    def _reader(self) -> int:
        if os.getpid() != self._process:
            return RETRIEVAL  # one of a pool may have been forked for another call
        call = CALL.get()
        return RETRIEVAL if call is None else call.reader

    # ---------------------------------------------------------------------------------------- forked processes

    def _before_fork(self) -> None:
        if self._forked is None and os.getpid() == self._process:
            from oloproof.worker.kernel import memory_file

            self._forked = memory_file(0)

    def _tell_made(self, full: str) -> None:
        self._made.add(full)
        if os.getpid() != self._process:
            self._tell([full])

    def _tell(self, what: list[str]) -> None:
        if self._forked is not None:
            os.write(self._forked, dumps(what).encode() + b"\n")

    def _hear_forked(self) -> None:
        if self._forked is None or os.getpid() != self._process:
            return
        try:
            new = os.pread(self._forked, os.fstat(self._forked).st_size - self._heard, self._heard)
        except OSError:  # closed by the user's code
            return
        new = new[: new.rfind(b"\n") + 1]
        self._heard += len(new)
        for line in new.splitlines():
            path, *stamp = loads(line)
            if not stamp:
                self._made.add(path)
            elif self._seen[RETRIEVAL].get(path) != stamp[0]:
                self._seen[RETRIEVAL][path] = stamp[0]
                self._new.append((RETRIEVAL, path, stamp[0]))

    # --------------------------------------------------------------------------------------------- what counts

    def _named(self, path: str, stamp: str) -> list[Read]:
        """The names under which something that was noted counts, with their stamps."""
        if path.endswith(PROGRAM):
            return [(path, stamp)]
        if path.endswith(EXISTENCE):
            file = path.removesuffix(EXISTENCE)
            if file in self._made or file in self._written:
                return []
            return [(name + EXISTENCE, stamp) for name in self._places.names(file) if LINK not in name]
        if not stamp and path in self._made:
            return []
        return [(name, "" if name.endswith(LINK) else stamp) for name in self._places.names(path)]


def _stamp(full: str) -> object:
    """What tells whether a file or folder has been changed, quick to find; empty when it is not there, None when it is
    a device or the like, or a folder that is not listed."""
    try:
        status = _status(full)
    except OSError:
        return ""
    mode = status.st_mode
    if not (stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and full.endswith(os.sep))):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def _told(path: str, stamp: object) -> str:
    """A stamp as it is sent: `file_stamp` and `folder_stamp` give the same of what has not been changed since."""
    if isinstance(stamp, str):
        return stamp
    assert isinstance(stamp, tuple)
    if path.endswith(os.sep):
        return folder_stamp(path)
    if abs(time.time_ns() - stamp[1]) < TICK:
        return UNSETTLED
    return "{}:{}:{}".format(*stamp)


def file_stamp(status: os.stat_result) -> str:
    """The stamp of a file that is there; that of one that is not is empty."""
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"


def folder_stamp(path: str) -> str:
    """The stamp of a folder's listing, without what tools leave there; empty when there is no such folder."""
    from zlib import crc32

    try:
        names = sorted(set(os.listdir(path)) - PASSED_OVER)
    except OSError:
        return ""
    return f"{crc32(os.fsencode('/'.join(names))):08x}"


def kind_of(path: str) -> str:
    """What a look whether a file is there finds: file, folder, or nothing."""
    try:
        status = _status(path)
    except (OSError, ValueError):
        return ""
    return "folder" if stat.S_ISDIR(status.st_mode) else "file"
