"""What the user's code raised, as it is sent to the engine.

Loaded inside the worker, so standard library only.
"""

from __future__ import annotations

import importlib
import os
import traceback
from typing import Any

from oloproof.worker.returns import InvalidReturn

#: Code that stands between a worker and the user's frames.
_MACHINERY = (
    os.path.dirname(__file__) + os.sep,
    os.path.dirname(importlib.__file__) + os.sep,
    "<frozen importlib",
)
_AROUND_COROUTINES = tuple(
    os.path.join(os.path.dirname(traceback.__file__), *parts)
    for parts in (("asyncio", ""), ("concurrent", "futures", ""))
)
#: How code says that it got no memory when it does not raise MemoryError.
_SYMPTOMS = (
    "cannot allocate memory",
    "can't allocate memory",
    "bad_alloc",
    "out of memory",
    "memoryerror",
    "can't start new thread",
    "failed to map segment",
)


def described(error: BaseException, where: str, memory_mb: int | None) -> dict[str, Any]:
    """An error as it is sent; `where` says in what it was raised, when that is no stage."""
    try:
        return _described(error, where, memory_mb)
    except BaseException:  # noqa: BLE001 - a class of the user's own may do anything when it is asked for its name
        return {"kind": "exception", "message": "an error that cannot be described", "traceback": None}


def _described(error: BaseException, where: str, memory_mb: int | None) -> dict[str, Any]:
    if isinstance(error, InvalidReturn):
        return {"kind": "invalid_return", "message": _clean(str(error)[:2000]), "traceback": None}
    if isinstance(error, SystemExit):
        kind, message = "exit", f"the code called sys.exit({_shown(error.code)})"
    else:
        kind = "exception"
        text = _text(error)
        message = f"{type(error).__name__}: {text}" if text else type(error).__name__
        if memory_mb is not None and (isinstance(error, MemoryError) or lacks_memory(message)):
            message = f"{message[:1500]}: {too_small(memory_mb)}"
    message = f"{where} failed: {message}" if where else message
    try:
        lines = traceback.format_exception(type(error), error, _own_frames(error), limit=-30)
        trace = _clean("".join(lines)[-20_000:]) if len(lines) > 1 else None
    except BaseException:  # noqa: BLE001 - a user's __str__ may do anything
        trace = None
    return {"kind": kind, "message": _clean(message[:2000]), "traceback": trace}


def lacks_memory(text: str) -> bool:
    """Whether a message or log looks as if memory could not be had."""
    text = text.lower()
    return any(symptom in text for symptom in _SYMPTOMS)


def too_small(memory_mb: int) -> str:
    return f"needed more than memory_mb: {memory_mb}"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - a user's __str__ may do anything
        return "(its message could not be read)"


def _shown(code: object) -> str:
    try:
        return repr(code)
    except BaseException:  # noqa: BLE001 - as above
        return f"an object of type {type(code).__name__}"


def _own_frames(error: BaseException) -> Any:
    """The traceback from the first frame of the user's code on; None when it never got there."""
    frame = error.__traceback__
    while frame is not None:
        name = frame.tb_frame.f_code.co_filename
        if not name.startswith(_MACHINERY) and not name.startswith(_AROUND_COROUTINES):
            break
        frame = frame.tb_next
    return frame


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
