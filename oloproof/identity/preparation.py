"""What the command that prepares a checkout depends on: its text, and the project's files that it names.

What the command makes is known only once it has run, so everything that may decide it counts: Python files with the
code and the packages they reach, other files with their content. Scripts are looked into for further names.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

#: Gives the ingredients of a Python file that is run as a program, under the name of its module.
CodeOf = Callable[[Path, str], dict[str, str]]

_WORD = re.compile(r"[\w./@+-]+")
_MODULE = re.compile(r"\s-m\s+([\w.]+)")
#: Programs that read what to do from a file which the command does not name.
_IMPLIED = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
}
_RECIPES = frozenset(name for names in _IMPLIED.values() for name in names)
_SCRIPTS = (".sh", ".bash", ".zsh", ".mk")
#: Files larger than this are not looked into for names.
_LARGEST_SCRIPT = 1_000_000


class Preparation:
    """Follows a command from file to file.

    `root` is the folder it runs in, `tracked` says which files below `top` the project keeps (None: nobody knows, and
    then only scripts count, since the rest may be what the command makes).
    """

    def __init__(self, root: Path, top: Path, tracked: Callable[[str], bool] | None, code_of: CodeOf) -> None:
        self._root = Path(os.path.realpath(root))
        self._top = Path(os.path.realpath(top))
        self._tracked = tracked
        self._code_of = code_of
        self._seen: set[Path] = set()
        self._found: dict[str, str] = {}

    def ingredients(self, command: str) -> dict[str, str]:
        """What the command depends on, by name: its text, digests, versions."""
        self._found = {"command": command}
        self._text(command, [self._root], scripts_only=False)
        for name in _MODULE.findall(f" {command}"):
            self._module(name)
        return dict(sorted(self._found.items()))

    def _text(self, text: str, folders: list[Path], *, scripts_only: bool) -> None:
        folders = list(folders)
        for word in _WORD.findall(text):
            for place in _places(word, folders):
                if place.is_dir() and place not in folders and len(folders) < 10:
                    folders.append(place)  # the command may change to it
                elif place.is_file():
                    self._file(place, scripts_only=scripts_only)
            for name in _IMPLIED.get(word, ()):
                for folder in folders:
                    if (folder / name).is_file():
                        self._file(folder / name, scripts_only=scripts_only)

    def _module(self, name: str) -> None:
        """`python -m name`."""
        inside = self._root.joinpath(*name.split("."))
        for file in (inside / "__main__.py", inside.with_name(inside.name + ".py")):
            if file.is_file():
                package = f"{name}.__main__" if file.name == "__main__.py" else name
                self._file(file, module=package)

    def _file(self, place: Path, *, scripts_only: bool = False, module: str = "") -> None:
        place = Path(os.path.realpath(place))
        if place in self._seen or not self._is_own(place):
            return
        script = _is_script(place)
        if not script and (
            scripts_only or self._tracked is None or not self._tracked(self._below_top(place))
        ):
            return
        self._seen.add(place)
        name = os.path.relpath(place, self._root)
        if place.suffix == ".py":
            self._python(place, name, module)
            return
        try:
            data = place.read_bytes()
        except OSError:
            data = b""
        self._found[name] = hashlib.sha256(data).hexdigest()[:20]
        if script and len(data) <= _LARGEST_SCRIPT:
            text = data.decode("utf-8", "replace")
            self._text(text, [self._root, place.parent], scripts_only=place.name in _RECIPES)
            for each in _MODULE.findall(text):
                self._module(each)

    def _python(self, place: Path, name: str, module: str) -> None:
        for part, value in self._code_of(place, module or place.stem).items():
            self._found[f"{name}: {part}"] = value
        for text in _texts(place):
            for folder in (self._root, place.parent):
                if (folder / text).is_file():
                    self._file(folder / text)

    def _below_top(self, place: Path) -> str:
        return place.relative_to(self._top).as_posix()

    def _is_own(self, place: Path) -> bool:
        """Whether a file lies in the project and in no virtual environment."""
        if not place.is_relative_to(self._top):
            return False
        return not any(
            (folder / "pyvenv.cfg").exists() for folder in place.parents if folder.is_relative_to(self._top)
        )


def _places(word: str, folders: Iterable[Path]) -> Iterator[Path]:
    """Where a word may lead: below each of the folders, and also without its first parts, since `$PWD/build.py` and
    the like are not resolved."""
    parts = [part for part in word.split("/") if part not in ("", ".")]
    for folder in folders:
        for start in range(len(parts)):
            place = folder.joinpath(*parts[start:])
            if start == 0 or ("." in parts[-1] and len(parts) - start > 0):
                yield place


def _is_script(place: Path) -> bool:
    if place.suffix == ".py" or place.suffix in _SCRIPTS or place.name in _RECIPES:
        return True
    try:
        with place.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _texts(place: Path) -> list[str]:
    """The strings in a Python file that may be paths."""
    try:
        tree = ast.parse(place.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and 0 < len(node.value) < 300
        and node.value.isprintable()
    ]
