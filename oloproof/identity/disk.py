"""What a fingerprint looks at on disk. Every look is noted, so that it can be told later whether one would still see
the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

BINARY = (".so", ".pyd", ".pyc")
#: What tells a virtual environment.
ENVIRONMENT = "pyvenv.cfg"
_MODULES = (".py", *BINARY)
_TEXT, _NAMES, _FOLDER, _REAL = "text", "names", "folder", "real"


@dataclass(frozen=True, slots=True)
class Text:
    """The bytes of the file that holds a module, with their digest; `archive`: that file is not the module's own."""

    data: bytes
    digest: str
    archive: bool


class Disk:
    """Looks at each thing once. The notes name what lies below the folder that holds all of `search` by its place
    there, so they are true of a copy of the project too."""

    def __init__(self, search: Sequence[str]) -> None:
        self._base = _common_folder(search)
        self._seen: dict[str, str] = {}
        self._texts: dict[str, Text | OSError] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._folders: dict[str, bool] = {}
        self._real: dict[str, str] = {}

    def text(self, file: str) -> Text:
        """The file that holds a module's file. Raises OSError when it cannot be read."""
        if file not in self._texts:
            try:
                self._texts[file] = text = _read(file)
                self._note(_TEXT, file, text.digest + " in an archive" * text.archive)
            except OSError as error:
                self._texts[file] = error
                self._note(_TEXT, file, "cannot be read")
        found = self._texts[file]
        if isinstance(found, OSError):
            raise found
        return found

    def names(self, folder: str) -> frozenset[str]:
        """The names in a folder that may be those of modules or folders of them; none where there is no folder."""
        if folder not in self._names:
            try:
                names = frozenset(filter(_may_be_module, os.listdir(folder)))
            except OSError:
                names = frozenset()
            self._names[folder] = names
            self._note(_NAMES, folder, "/".join(sorted(names)))
        return self._names[folder]

    def is_folder(self, path: str) -> bool:
        if path not in self._folders:
            self._folders[path] = os.path.isdir(path)
            self._note(_FOLDER, path, str(self._folders[path]))
        return self._folders[path]

    def real(self, path: str) -> str:
        """Where links on the way to a path lead."""
        if path not in self._real:
            self._real[path] = os.path.realpath(path)
            self._note(_REAL, path, self.place(self._real[path]))
        return self._real[path]

    # -------------------------------------------------------------------------------------------- notes

    @property
    def seen(self) -> Mapping[str, str]:
        """What was seen by each look so far, in their order."""
        return self._seen

    def place(self, path: str) -> str:
        """A path as notes name it."""
        if self._base and path == self._base:
            return "."
        if self._base and path.startswith(self._base + os.sep):
            return "." + path[len(self._base) :]
        return path

    def look(self, note: str) -> str:
        """What a look sees that was noted some time before. Raises ValueError for what is no such note."""
        if note not in self._seen:
            kind, _, place = note.partition(" ")
            path = place
            if self._base and (place == "." or place.startswith("./")):
                path = self._base + place[1:]
            if kind == _TEXT:
                with suppress(OSError):
                    self.text(path)
            elif kind == _NAMES:
                self.names(path)
            elif kind == _FOLDER:
                self.is_folder(path)
            elif kind == _REAL:
                self.real(path)
        try:
            return self._seen[note]
        except KeyError:
            raise ValueError(f"no look: {note}") from None

    def text_note(self, file: str) -> str:
        """The note of reading a module's file."""
        return f"{_TEXT} {self.place(file)}"

    def _note(self, kind: str, path: str, seen: str) -> None:
        self._seen[f"{kind} {self.place(path)}"] = seen


def _may_be_module(name: str) -> bool:
    return name == ENVIRONMENT or name.endswith(_MODULES) or ("." not in name and name != "__pycache__")


def _common_folder(folders: Sequence[str]) -> str:
    try:
        found = os.path.commonpath(folders)
    except ValueError:
        return ""
    return found if found != os.sep else ""


def _read(file: str) -> Text:
    holder = _holder(file)
    with open(holder, "rb") as stream:
        data = stream.read()
    return Text(data, hashlib.sha256(data).hexdigest(), holder != file)


def _holder(file: str) -> str:
    """The file on disk that a module's file is in: itself, or the archive that it was imported from."""
    place = file
    while not os.path.exists(place) and os.path.dirname(place) != place:
        place = os.path.dirname(place)
    return place if os.path.isfile(place) else file
