"""Which files of the project the user's code opens for reading, seen through an audit hook.

Loaded inside the worker, so standard library only. Sees what goes through Python's own `open`, `os.open`,
`sqlite3.connect`, and listings of folders; a file that a compiled library or another process opens is not seen.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from typing import Any

from oloproof.worker.current import CALL, OURS, RETRIEVAL

#: Folders whose files do not count: caches, environments, and what tools keep for themselves.
PASSED_OVER = frozenset(
    {
        ".git",
        ".oloproof",
        "__pycache__",
        "site-packages",
        "dist-packages",
        "node_modules",
        ".venv",
        ".tox",
        ".nox",
        ".cache",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
    }
)
#: Files that a package's version stands for.
COMPILED = (".pyc", ".so", ".pyd")
#: Source text that is opened from here is opened to run it or to show it: the code fingerprint stands for it.
_READERS_OF_CODE = ("<frozen importlib", "<frozen zipimport")
_SHOWING_CODE = frozenset({"linecache.py", "tokenize.py"})
#: What lists folders to find code or installed packages.
_FINDING_CODE = ("/importlib/", "/pkg_resources/", "/pkgutil.py", "/site.py")
_CREATES = os.O_CREAT | os.O_TRUNC
_WRITES = os.O_WRONLY | os.O_RDWR


class Reads:
    """The project files opened for reading in this process, as paths below `root` with forward slashes; a folder that
    was listed ends in one.

    A file that the process itself made before it read it does not count: its content follows from the others. One that
    was to be read and is not there counts, since results will differ once it is.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._below = self._root.rstrip(os.sep) + os.sep
        self._temporary = _temporary_folders(self._below)
        self._seen: tuple[set[str], set[str]] = (set(), set())
        self._made: set[str] = set()
        self._new: deque[tuple[int, str]] = deque()
        self._environments: dict[str, bool] = {}
        sys.addaudithook(self._hook())

    def drain(self) -> list[list[str]] | None:
        """The files that were opened since the last call and not before, those that count for retrievals and those
        that later stages opened; None when there are none."""
        if not self._new:
            return None
        found: tuple[set[str], set[str]] = (set(), set())
        while self._new:  # other threads may add to it meanwhile
            reader, path = self._new.popleft()
            name = self._counted(path)
            if name is not None:
                found[reader].add(name)
        return [sorted(names) for names in found] if any(found) else None

    def _hook(self) -> Any:
        note, rename = self._note, self._rename

        def hear(event: str, arguments: tuple[Any, ...]) -> None:
            # Called for every event there is, so what is of no interest leaves at once.
            if event == "open":
                path, _, flags = arguments
            elif event == "sqlite3.connect":
                path, flags = arguments[0] or ":memory:", os.O_RDWR | os.O_CREAT
            elif event == "os.rename":
                path, flags = None, 0
            elif event == "os.scandir" or event == "os.listdir":
                path, flags = _listed(arguments[0]), os.O_RDONLY
            else:
                return
            try:
                if path is None:
                    rename(arguments[0], arguments[1])
                elif not isinstance(path, int):
                    note(path, flags)
            except Exception:  # noqa: BLE001 - a hook that raises would break the user's own open
                return

        return hear

    def _note(self, path: Any, flags: int) -> None:
        full = _absolute(path)
        call = CALL.get()
        reader = RETRIEVAL if call is None else call.reader
        if reader == OURS or full in self._seen[RETRIEVAL] or full in self._seen[reader]:
            return
        if flags & _CREATES and (flags & os.O_TRUNC or not os.path.exists(full)):
            self._made.add(full)
        elif flags & _WRITES == os.O_WRONLY or full in self._made:
            return
        elif not (full.endswith((".py", os.sep)) and _reads_code()):
            self._seen[reader].add(full)
            self._new.append((reader, full))

    def _rename(self, source: Any, target: Any) -> None:
        """What was made under another name and then moved to its place was made here."""
        full = _absolute(source)
        if full in self._made:
            self._made.add(_absolute(target))

    def _counted(self, path: str) -> str | None:
        """The path below the root, None when the file does not count."""
        if path.endswith(os.sep):
            return self._counted_folder(path)
        if path.endswith(COMPILED):
            return None
        folder, name = os.path.split(path)
        place = os.path.join(os.path.realpath(folder), name)
        if not place.startswith(self._below) or place.startswith(self._temporary):
            return None
        if os.path.lexists(place) and not os.path.isfile(place):
            return None
        parts = place[len(self._below) :].split(os.sep)
        return _encodable("/".join(parts)) if self._is_own(parts[:-1]) else None

    def _counted_folder(self, path: str) -> str | None:
        """The folder below the root, `./` for the root itself; None when its listing does not count."""
        place = os.path.realpath(path) + os.sep
        if place == self._below:
            return "./"
        if not place.startswith(self._below) or place.startswith(self._temporary):
            return None
        parts = place[len(self._below) : -1].split(os.sep)
        return _encodable("/".join(parts) + "/") if self._is_own(parts) else None

    def _is_own(self, folders: list[str]) -> bool:
        """Whether what lies in these folders, from the root down, is the project's: no cache and no environment."""
        return PASSED_OVER.isdisjoint(folders) and not self._in_environment(folders)

    def _in_environment(self, folders: list[str]) -> bool:
        """Whether one of the folders, from the root down, is a virtual environment."""
        place = self._root
        for folder in folders:
            place = os.path.join(place, folder)
            if place not in self._environments:
                self._environments[place] = os.path.exists(os.path.join(place, "pyvenv.cfg"))
            if self._environments[place]:
                return True
        return False


def _listed(path: Any) -> Any:
    """A folder as the listing of it is noted, with a slash at its end; a descriptor as it is."""
    return path if isinstance(path, int) else os.path.join("." if path is None else os.fsdecode(path), "")


def _encodable(name: str) -> str | None:
    try:
        name.encode()
    except UnicodeEncodeError:
        return None
    return name


def _absolute(path: Any) -> str:
    text = path if type(path) is str else os.fsdecode(path)
    if text.startswith("file:"):  # as sqlite3 takes it
        text = text[5:].partition("?")[0]
    if text.startswith("/"):
        return text
    folder = os.getcwd()
    return f"{folder}/{text}" if folder != "/" else f"/{text}"


def _temporary_folders(below: str) -> tuple[str, ...]:
    """The folders for temporary files, as far as they lie inside the root."""
    named = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    places = [os.path.realpath(name) + os.sep for name in (*named, "/tmp", "/var/tmp") if name]
    return tuple(place for place in places if place.startswith(below) and place != below)


def _reads_code() -> bool:
    """Whether what is being heard comes from the import system, or from what shows lines of code."""
    frame = sys._getframe(3)  # this function, _note and the hook stand above
    name = frame.f_code.co_filename
    if name.startswith(_READERS_OF_CODE) or any(part in name for part in _FINDING_CODE):
        return True
    return os.path.basename(name) in _SHOWING_CODE
