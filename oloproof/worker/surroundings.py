"""What the code fingerprint needs to know of the worker's interpreter: modules, search path, packages.

Loaded inside the worker, so standard library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.machinery import all_suffixes
from typing import Any

from oloproof.worker.current import reading_for_us

#: The folder of our own package, and where the module about packages lies in it.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_FACTS = os.path.join(_PACKAGE, "identity", "packages.py")
_INSTALLED = frozenset({"site-packages", "dist-packages"})
#: What the files of modules end in.
_MODULES = tuple(all_suffixes())


def python_version() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def project_modules() -> dict[str, str]:
    """Source files of the imported modules that are neither installed packages, the standard library, nor ours."""
    library = _library_folders()
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py"):
            continue
        if name == "__main__" or name == "oloproof" or name.startswith("oloproof."):
            continue
        path = os.path.realpath(file)
        if not _is_installed(path, library):
            found[name] = path
    return found


def is_installed(path: str) -> bool:
    """Whether a path without links lies in the standard library or among installed packages."""
    return _is_installed(path, _library_folders())


def _is_installed(path: str, library: tuple[str, ...]) -> bool:
    return path.startswith(library) or not _INSTALLED.isdisjoint(path.split(os.sep))


def search_folders(root: str) -> list[str]:
    """The folders where the project's modules are looked for, in order: what of sys.path is neither installed
    packages, the standard library, nor where our own package lies, unless that is the project's root."""
    library = _library_folders()
    own = os.path.dirname(_PACKAGE)
    found: list[str] = []
    for entry in sys.path:
        folder = os.path.realpath(entry or os.curdir)
        if folder in found or not os.path.isdir(folder) or folder == own != os.path.realpath(root):
            continue
        if not _is_installed(os.path.join(folder, ""), library):
            found.append(folder)
    return found


def also_installed(search: list[str]) -> list[str]:
    """The names of modules in the folders `search` that something installed has too, but for the standard library's:
    whichever stands first in sys.path takes the other's place."""
    library = os.path.realpath(os.path.dirname(os.__file__))
    others = {os.path.realpath(entry) for entry in sys.path if entry}.difference(search, [library])
    with reading_for_us():
        found = _top_levels(search).intersection(_top_levels(others))
    return sorted(found - {"oloproof", "__pycache__"})


def _top_levels(folders: Iterable[str]) -> set[str]:
    """The names of modules and packages in some folders, whatever else lies there."""
    found: set[str] = set()
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                name, dot, _ = entry.name.partition(".")
                if entry.name.endswith(_MODULES) if dot else entry.is_dir():
                    found.add(name)
    return found


def package_facts(names: list[str]) -> Any:
    """What `oloproof.identity.packages` tells of these modules; loaded by its path, since the package around it
    needs more than the standard library."""
    from importlib.util import module_from_spec, spec_from_file_location

    name = "_oloproof_packages"
    if name not in sys.modules:
        spec = spec_from_file_location(name, _FACTS)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name].package_facts(names)


@cache
def _library_folders() -> tuple[str, ...]:
    """What the paths of the standard library, and of all that is installed beside it, begin with."""
    prefixes = {os.path.realpath(prefix) for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    folders = [os.path.realpath(os.path.dirname(os.__file__)), *(os.path.join(p, "lib") for p in prefixes)]
    return tuple(folder + os.sep for folder in folders)
