"""Which of the paths that the user's code opens are files of the project, and under which names they count.

Loaded inside the worker, so standard library only.
"""

from __future__ import annotations

import os
from typing import Any

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
#: What the import system makes of source files.
COMPILED = ".pyc"
#: What follows a path in the name of something that is not a file's content: where a link leads to, whether something
#: is there. No path has two slashes.
LINK, EXISTENCE = "//link", "//exists"


class Places:
    """Names of files below a root, with forward slashes. `root` may be given through a link."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._below = self._root.rstrip(os.sep) + os.sep
        self._given = os.path.abspath(root).rstrip(os.sep) + os.sep
        self._temporary = _temporary_folders(self._below)
        self._environments: dict[str, bool] = {}
        self._real: dict[str, str] = {}

    def names(self, path: str) -> list[str]:
        """What counts when the file of an absolute path is opened, or the folder listed if it ends in a slash: its
        name, and each link on the way. Empty when it does not count."""
        if path.endswith(COMPILED):
            return []
        folder, name = os.path.split(path)
        real = self._real.get(folder)
        if real is None:
            real = self._real[folder] = os.path.realpath(folder)
        place = f"{real}{os.sep}{name}" if name else real
        if place == self._root:
            return ["./"]
        if path == place:  # no link on the way
            below = place[len(self._below) :] if place.startswith(self._below) else None
        else:
            below = self._inside(path)
        if not place.startswith(self._below):
            # Through a link of the project to what lies outside: it counts under the name that it has inside.
            found = [] if below is None else [below]
        else:
            found = [place[len(self._below) :]]
            if below is not None and below != found[0]:
                found += self._links(below if name else below + os.sep)
        if not found or place.startswith(self._temporary) or self._is_no_file(place, name):
            return []
        found = [each + "/" if not name and not each.endswith(("/", LINK)) else each for each in found]
        return [each for each in found if self._is_own(each)]

    def _inside(self, path: str) -> str | None:
        """The path below the root as it was written; None when it does not lead through the root."""
        path = os.path.normpath(path)
        for root in (self._below, self._given):
            if path.startswith(root):
                return path[len(root) :]
        folder = os.path.dirname(path)
        while folder != os.path.dirname(folder):
            if os.path.realpath(folder) == self._root:
                return path[len(folder) + 1 :]
            folder = os.path.dirname(folder)
        return None

    def _links(self, below: str) -> list[str]:
        """The links among the folders of a path below the root."""
        found = []
        place = self._root
        parts = below.split(os.sep)
        for at, part in enumerate(parts[:-1], 1):
            place = os.path.join(place, part)
            if os.path.islink(place):
                found.append("/".join(parts[:at]) + LINK)
        return found

    def _is_no_file(self, place: str, name: str) -> bool:
        return bool(name) and os.path.lexists(place) and not os.path.isfile(place)

    def _is_own(self, name: str) -> bool:
        """Whether what has this name is the project's: in no cache and no environment; and whether it is text."""
        try:
            name.encode()
        except UnicodeEncodeError:
            return False
        folders = name.removesuffix(LINK).split("/")[:-1]
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


def absolute(path: Any, folder: str | None = None) -> str:
    """A path as code gives it, from the current folder or another."""
    text = path if type(path) is str else os.fsdecode(path)
    if text.startswith("file:"):  # as sqlite3 takes it
        text = text[5:].partition("?")[0]
    if text.startswith("/"):
        return text
    return os.path.join(os.getcwd(), folder or "", text)


def folder_of(descriptor: int) -> str | None:
    """The folder that a descriptor stands for, where the system tells."""
    try:
        place = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None
    return place if os.path.isdir(place) else None


def open_folders() -> list[str]:
    """The folders that this process holds open: a relative path that `os.open` takes may start at any of them."""
    try:
        numbers = os.listdir("/proc/self/fd")
    except OSError:
        return []
    return [place for place in map(folder_of, map(int, numbers)) if place is not None]


def _temporary_folders(below: str) -> tuple[str, ...]:
    """The folders for temporary files, as far as they lie inside the root."""
    named = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    places = [os.path.realpath(name) + os.sep for name in (*named, "/tmp", "/var/tmp") if name]
    return tuple(place for place in places if place.startswith(below) and place != below)
