"""Which of the paths that the user's code opens are files of the project, and under which names they count.

Loaded inside the worker, so standard library only.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, NamedTuple

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
#: What lies at the top of a virtual environment.
ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")
#: What the import system makes of source files.
COMPILED = ".pyc"
#: What follows a path in the name of something that is not a file's content: where a link leads to, whether something
#: is there. No path has two slashes.
LINK, EXISTENCE = "//link", "//exists"


class Place(NamedTuple):
    """A folder whose files count: what their names begin with, and the links on the way to it."""

    prefix: str
    links: tuple[str, ...] = ()


class Places:
    """Names of files below a root, with forward slashes. `root` may be given through a link."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._below = self._root.rstrip(os.sep) + os.sep
        self._given = os.path.abspath(root).rstrip(os.sep) + os.sep
        self._temporary = _temporary_folders(self._below)
        self._environments: dict[str, bool] = {}
        self._places: dict[str, Place | None] = {}

    def names(self, path: str) -> list[str]:
        """What counts when the file of an absolute path is opened, or the folder listed if it ends in a slash: its
        name, and each link on the way. Empty when it does not count."""
        folder, name = os.path.split(path)
        if folder not in self._places:
            self._places[folder] = self._place(folder)
        place = self._places[folder]
        if place is None or path.endswith(COMPILED) or not is_text(name):
            return []
        return [f"{place.prefix}{name}" or "./", *place.links]

    def _place(self, folder: str) -> Place | None:
        real = os.path.join(os.path.realpath(folder), "")
        inside = self._inside(folder)
        links: tuple[str, ...] = ()
        if real.startswith(self._below):
            prefix = real[len(self._below) :]
            if inside is not None and inside != prefix:
                links = self._links(inside)
        elif inside is not None:  # a link to what lies outside: it counts under the name that it has inside
            prefix = inside
        else:
            return None
        if (
            real.startswith(self._temporary)
            or not is_text(prefix)
            or not self._is_own(prefix.split("/")[:-1])
        ):
            return None
        return Place(prefix, tuple(each for each in links if is_text(each)))

    def _inside(self, folder: str) -> str | None:
        """The way below the root to a folder as it was written, with a slash at its end; None when it does not lead
        through the root."""
        folder = os.path.join(os.path.normpath(folder), "")
        for root in (self._below, self._given):
            if folder.startswith(root):
                return folder[len(root) :]
        start = os.path.dirname(folder.rstrip(os.sep))
        while start != os.path.dirname(start):
            if os.path.realpath(start) == self._root:
                return folder[len(start) + 1 :]
            start = os.path.dirname(start)
        return None

    def _links(self, inside: str) -> tuple[str, ...]:
        """The links among the folders of a way below the root."""
        parts = inside.split("/")[:-1]
        ways = ["/".join(parts[:at]) for at in range(1, len(parts) + 1)]
        return tuple(way + LINK for way in ways if os.path.islink(self._below + way))

    def _is_own(self, folders: list[str]) -> bool:
        """Whether what lies in these folders, from the root down, is the project's: no cache and no environment."""
        return PASSED_OVER.isdisjoint(folders) and not self._in_environment(folders)

    def _in_environment(self, folders: list[str]) -> bool:
        """Whether one of the folders, from the root down, is a virtual environment."""
        place = self._root
        for folder in folders:
            place = os.path.join(place, folder)
            if place not in self._environments:
                self._environments[place] = any(
                    os.path.exists(os.path.join(place, mark)) for mark in ENVIRONMENT_MARKS
                )
            if self._environments[place]:
                return True
        return False


def is_text(name: str) -> bool:
    """Whether a name can be told: one that is no text in the system's encoding cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def absolute(path: Any, folder: str | None = None) -> str:
    """A path as code gives it, from the current folder or another."""
    text = path if type(path) is str else os.fsdecode(path)
    if text.startswith("file:"):  # as sqlite3 takes it
        text = text[5:].partition("?")[0]
    if text.startswith("/"):
        return text
    here = os.getcwd()
    return f"{here}/{text}" if folder is None and here != "/" else os.path.join(here, folder or "", text)


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


def held_files() -> set[str]:
    """The paths of files that this process has open or mapped; empty where there is no /proc."""
    found: set[str] = set()
    try:
        with open("/proc/self/maps", errors="surrogateescape") as file:
            found.update(line[73:].rstrip("\n") for line in file if line[73:74] == "/")
        for number in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                found.add(os.readlink(f"/proc/self/fd/{number}"))
    except OSError:
        return set()
    return {path for path in found if path.startswith("/") and not path.endswith(" (deleted)")}


def _temporary_folders(below: str) -> tuple[str, ...]:
    """The folders for temporary files, as far as they lie inside the root."""
    named = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    places = [os.path.realpath(name) + os.sep for name in (*named, "/tmp", "/var/tmp") if name]
    return tuple(place for place in places if place.startswith(below) and place != below)
