"""Which call a piece of the user's code runs in: known from its context, or from the call that started its thread.

Loaded inside the worker, so standard library only.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

#: Whose the files are that a call opens: a retrieval's, as those opened at import, in the constructor and by code of
#: which no call is known; only a later stage's; or ours.
RETRIEVAL, LATER, OURS = 0, 1, 2
_READERS = {"count_tokens": LATER, "generate": LATER, "evaluate": LATER, "rerank": LATER, "packages": OURS}
#: Where a thread remembers the call that started it.
_STARTER = "_oloproof_call"


class TakesText(Protocol):
    """Where a call's prints go."""

    def write(self, text: str) -> None:
        """Keep a text."""


class Call:
    """A request being answered. `page` is where its prints go, None when they go to the log as they are. `imports_app`:
    the modules it imports are told and fingerprinted, whatever they are. Until the process has `retrieved` once, what
    later stages read counts for retrievals too: it may be what the app loads when it is first needed, by whichever
    stage, and keeps."""

    __slots__ = ("imports_app", "over", "page", "reader")

    def __init__(self, operation: str, page: TakesText | None = None, *, retrieved: bool = True) -> None:
        reader = _READERS.get(operation, RETRIEVAL)
        self.reader = RETRIEVAL if reader == LATER and not retrieved else reader
        self.imports_app = operation == "describe"
        self.page = page
        self.over = False


CALL: ContextVar[Call | None] = ContextVar("oloproof_call", default=None)


def current_call() -> Call | None:
    """The call that this code runs in, while it is under way; None where that is not known."""
    call = CALL.get()
    if call is None:
        call = getattr(threading.current_thread(), _STARTER, None)
    return None if call is None or call.over else call


@contextmanager
def reading_for_us() -> Iterator[None]:
    """What is read meanwhile, by this thread, is no matter of the user's code."""
    before = CALL.set(Call("packages"))
    try:
        yield
    finally:
        CALL.reset(before)


def follow_threads() -> None:
    """From now on let threads belong to the call that starts them."""
    start = threading.Thread.start

    @functools.wraps(start)
    def start_for_call(thread: threading.Thread) -> None:
        setattr(thread, _STARTER, CALL.get())
        start(thread)

    threading.Thread.start = start_for_call  # type: ignore[assignment, method-assign]
