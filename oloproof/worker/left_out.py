"""Modules that the code fingerprint leaves out when an app may import any module by a name made at run time: those that
no running app loads. When one does all the same, its file counts like any other that was read.

Loaded inside the worker, so standard library only.
"""

from __future__ import annotations

import os
import sys

_FOLDERS = frozenset(
    {"site-packages", "dist-packages", "node_modules", "__pycache__", "tests", "test"},
)
_FILES = frozenset({"conftest", "setup"})


def is_left_out(folder: str) -> bool:
    """Whether modules in a folder of this name are left out."""
    return folder in _FOLDERS or not folder.isidentifier()


def is_file_left_out(stem: str) -> bool:
    """Whether a module whose file has this name, without what follows the first dot, is left out."""
    return stem.startswith("test_") or stem in _FILES or not stem.isidentifier()


def source_of(path: str) -> str:
    """The source file of a compiled one that Python keeps in `__pycache__`; any other path as it is."""
    if not path.endswith(".pyc"):
        return path
    folder, name = os.path.split(path)
    around, last = os.path.split(folder)
    return os.path.join(around, name.partition(".")[0] + ".py") if last == "__pycache__" else path


def is_source_left_out(path: str) -> bool:
    """Whether a source file is left out, or lies outside of all folders in which modules are searched. A folder that
    was made one of those only now changes nothing: the fingerprint does not know of it."""
    above = [entry for entry in sys.path if entry and path.startswith(entry.rstrip(os.sep) + os.sep)]
    if not above:
        return True
    *folders, name = path[len(min(above, key=len).rstrip(os.sep)) + 1 :].split(os.sep)
    return is_file_left_out(name.removesuffix(".py")) or any(map(is_left_out, folders))


def is_module(path: str) -> bool:
    """Whether a source file is that of a module in `sys.modules`, where it stands before its code is read."""
    return any(
        getattr(module, "__dict__", {}).get("__file__") == path for module in list(sys.modules.values())
    )
