"""The project's own source files: where a module's file is, and what is in it."""

from __future__ import annotations

import ast
import gc
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from oloproof.identity.disk import BINARY, ENVIRONMENT, Disk
from oloproof.identity.outline import Outline
from oloproof.identity.summary import SUMMARY_VERSION, ParseCache, Summary
from oloproof.worker.left_out import is_file_left_out, is_left_out


@dataclass(frozen=True, eq=False, slots=True)
class Module:
    """A module of the project with its summary."""

    name: str
    package: bool
    summary: Summary

    def absolute(self, module: str) -> str | None:
        """The full name of a module as an import in this one writes it; None when it leads out of the package."""
        if not module.startswith("."):
            return module
        rest = module.lstrip(".")
        up = len(module) - len(rest) - self.package
        parts = self.name.split(".")
        if up >= len(parts):
            return None
        return ".".join([*parts[: len(parts) - up], *([rest] if rest else [])])


class Sources:
    """Finds and reads the modules of a project.

    `modules` are those that were imported, with their files; others are looked for in the folders `search`, as
    Python would. `program` names a module that is run as a program. Raises OSError when a file cannot be read.
    """

    def __init__(
        self,
        modules: Mapping[str, str],
        search: Sequence[str],
        cache: ParseCache | None = None,
        program: str = "",
        disk: Disk | None = None,
    ) -> None:
        self._disk = Disk(search) if disk is None else disk
        self._files: dict[str, str | None] = dict(modules)
        self._search = list(dict.fromkeys(search))
        self._cache = cache
        self._program = program
        self._loaded: dict[str, Module | None] = {}
        self._fresh: dict[str, str] = {}
        self._folders: dict[str, list[str]] = {}
        self._imported_folders: dict[str, dict[str, None]] = {}
        for name, file in modules.items():
            while "." in name:
                folder = os.path.dirname(file)
                if os.path.basename(file).startswith("__init__."):
                    folder = os.path.dirname(folder)
                name = name.rpartition(".")[0]
                self._imported_folders.setdefault(name, {})[folder] = None
                file = folder + "/__init__.py"

    def module(self, name: str) -> Module | None:
        """The project's module of that name."""
        try:
            return self._loaded[name]
        except KeyError:
            file = self._file(name) if name else None
            self._loaded[name] = None if file is None else self._load(name, file)
            return self._loaded[name]

    def is_folder(self, name: str) -> bool:
        """Whether the project has a folder without `__init__.py` by that name."""
        return self._file(name) is None and bool(self._module_folders(name))

    def was_imported(self, name: str) -> bool:
        """Whether the app imported the module, or something below it."""
        return name in self._imported_folders

    def top_levels(self) -> frozenset[str]:
        """The names that modules of the project's may have at the top level."""
        return frozenset(
            name.partition(".")[0] for folder in self._search for name in self._disk.names(folder)
        )

    def loaded(self) -> list[Module]:
        """The modules asked for so far."""
        return [module for module in self._loaded.values() if module is not None]

    def everything(self) -> Iterator[Module]:
        """Every module that is there to be imported, but for those that are left out (see `left_out`) and what lies in
        virtual environments."""
        names = [name for name, file in self._files.items() if file is not None]
        pending = [(folder, "") for folder in self._search]
        seen = set()
        while pending:
            folder, prefix = pending.pop()
            if (real := self._disk.real(folder)) in seen:
                continue
            seen.add(real)
            for entry in sorted(self._disk.names(folder)):
                stem, dot, _ = entry.partition(".")
                name = prefix + stem
                path = os.path.join(folder, entry)
                if dot and not is_file_left_out(stem):
                    names.append(name if stem != "__init__" else prefix.rstrip("."))
                elif not dot and not is_left_out(stem) and ENVIRONMENT not in self._disk.names(path):
                    pending.append((path, name + "."))
        for name in dict.fromkeys(names):
            module = self.module(name) if name else None
            if module is not None:
                yield module

    def keep(self) -> None:
        """Hand what was parsed to the cache."""
        if self._cache is not None and self._fresh:
            self._cache.write(self._fresh)
            self._fresh = {}

    # ------------------------------------------------------------------------------------------ finding

    def _file(self, name: str) -> str | None:
        if name not in self._files:
            self._files[name] = self._find(name)
        return self._files[name]

    def _find(self, name: str) -> str | None:
        parent, _, last = name.rpartition(".")
        if last == "__init__":
            return None  # a package's own file is no module in it
        for folder in self._module_folders(parent) if parent else self._search:
            entries = self._disk.names(folder)
            inside = os.path.join(folder, last)
            if last in entries and "__init__.py" in self._disk.names(inside):
                return os.path.join(inside, "__init__.py")
            if f"{last}.py" in entries:
                return os.path.join(folder, f"{last}.py")
            for entry in entries:
                if entry.startswith(f"{last}.") and entry.endswith(BINARY):
                    return os.path.join(folder, entry)
        return None

    def _module_folders(self, name: str) -> list[str]:
        """The folders in which the modules below a package are."""
        if name not in self._folders:
            file = self._file(name)
            if file is not None:
                own = [os.path.dirname(file)] if os.path.basename(file).startswith("__init__.") else []
            else:
                parent, _, last = name.rpartition(".")
                around = self._module_folders(parent) if parent else self._search
                paths = [os.path.join(folder, last) for folder in around if last in self._disk.names(folder)]
                own = [path for path in paths if self._disk.is_folder(path)]
            self._folders[name] = list(dict.fromkeys([*own, *self._imported_folders.get(name, ())]))
        return self._folders[name]

    # ------------------------------------------------------------------------------------------ reading

    def _load(self, name: str, file: str) -> Module:
        text = self._disk.text(file)
        package = os.path.basename(file).startswith("__init__.")
        if text.archive or not file.endswith(".py"):
            return Module(name, package, Summary(text.digest, opaque=True))
        key = f"{SUMMARY_VERSION}/{sys.version_info[0]}.{sys.version_info[1]}/{text.digest}"
        program = name == self._program
        key += "/program" * program
        kept = self._cache.read(key) if self._cache is not None else None
        if kept is not None:
            try:
                return Module(name, package, Summary.from_json(kept))
            except (ValueError, TypeError, IndexError, KeyError, AttributeError):
                pass  # a damaged entry is replaced
        summary = summarise(text.data, text.digest, program=program)
        self._fresh[key] = summary.to_json() if self._cache is not None else ""
        return Module(name, package, summary)


def summarise(data: bytes, text: str, *, program: bool = False) -> Summary:
    """The summary of a file's bytes, whose digest is `text`; encodings by PEP 263."""
    try:
        return Outline(ast.parse(data), program=program).summary(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Summary(text, opaque=True)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep the garbage collector and the parser's warnings away while many files are parsed."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if collecting:
            gc.freeze()  # nothing that was made meanwhile is garbage, so there is no need to look through it
            gc.enable()
