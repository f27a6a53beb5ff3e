"""Who opens a file or starts a program, told from the frames that stand above the audit hook.

Loaded inside the worker, so standard library only.
"""

from __future__ import annotations

import os
import sys
from types import FrameType

#: Source text that is opened from here is opened to run it or to show it: the code fingerprint stands for it.
_IMPORTING = ("<frozen importlib", "<frozen zipimport")
_SHOWING = frozenset({"linecache.py", "tokenize.py"})
#: What lists folders to find code or installed packages, or opens files to run them.
_FINDING = ("/importlib/metadata", "/importlib/_bootstrap", "/pkg_resources/", "/site.py")
#: Modules of the standard library through which others start programs.
_STARTERS = (
    "/subprocess.py",
    "/asyncio/",
    "/concurrent/",
    "/multiprocessing/",
    "/os.py",
    "/pty.py",
    "/contextlib.py",
)
#: Through which others ask for the status of a file.
_ASKING = ("/genericpath.py", "/posixpath.py", "<frozen genericpath>", "<frozen posixpath>")
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_OWN = os.path.dirname(__file__) + os.sep


def asked_by_us() -> bool:
    """Whether it is this machinery that asks for the status of a file: through `_tell`, `look` and the function put in
    place of the system's."""
    frame: FrameType | None = sys._getframe(4)
    while frame is not None and frame.f_code.co_filename.endswith(_ASKING):
        frame = frame.f_back
    return frame is None or frame.f_code.co_filename.startswith(_OWN)


def reads_code() -> bool:
    """Whether what is being heard comes from the import system, or from what shows lines of code."""
    frame = _outside()
    if frame is None:
        return False
    name = frame.f_code.co_filename
    if name.startswith(_IMPORTING):
        return _imports(frame)
    if os.path.basename(name) in _SHOWING:
        return _shows(frame)
    return "/pkgutil.py" in name or any(part in name for part in _FINDING)


def starts_for_the_library() -> bool:
    """Whether it is a module of the standard library, such as `platform`, that starts a program to ask something of the
    system."""
    frame = _outside()
    while frame is not None and any(part in frame.f_code.co_filename for part in _STARTERS):
        frame = frame.f_back
    if frame is None:
        return False
    name = frame.f_code.co_filename
    return name.startswith(_LIBRARY) and "-packages" not in name and "/runpy.py" not in name


def _outside() -> FrameType | None:
    """The first frame that is not of this machinery."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame


def _imports(frame: FrameType) -> bool:
    """False when a loader is only asked for the bytes of a file, as `pkgutil.get_data` does."""
    above = frame.f_back
    if frame.f_code.co_name != "get_data" or above is None:
        return True
    return above.f_code.co_filename.startswith(_IMPORTING)


def _shows(frame: FrameType | None) -> bool:
    """False when the source text is for `inspect`, and so for the code that asks it."""
    while frame is not None and os.path.basename(frame.f_code.co_filename) in _SHOWING:
        frame = frame.f_back
    return frame is None or not frame.f_code.co_filename.startswith(_LIBRARY + "inspect.py")
