"""The files that a worker has read so far, as the engine gathers them from its replies.

A result depends on what its own call read and on what the worker had read before, since an earlier call may have kept
content in memory. So the sets grow with each call that reads something new; each names the one before it, and so all of
them together take no more room than what was read.
"""

from __future__ import annotations

from typing import Any

from oloproof.worker.replies import is_text

#: A name and its stamp; see `oloproof.worker.reads`.
Read = tuple[str, str]


class ReadSet:
    """What a worker had read at some moment: what it had read at an earlier one, and some more."""

    __slots__ = ("before", "more")

    def __init__(self, before: ReadSet | None, more: tuple[Read, ...]) -> None:
        self.before = before
        self.more = more

    @property
    def names(self) -> tuple[str, ...]:
        """All names in it, sorted."""
        return tuple(sorted({name for more in self._parts() for name, _ in more}))

    def _parts(self) -> list[tuple[Read, ...]]:
        """What was read, the earliest first."""
        parts = []
        each: ReadSet | None = self
        while each is not None:
            parts.append(each.more)
            each = each.before
        return parts[::-1]

    def __reduce__(self) -> Any:
        return _joined, (self._parts(),)


def _joined(parts: list[tuple[Read, ...]]) -> ReadSet | None:
    found = None
    for more in parts:
        found = ReadSet(found, more)
    return found


def _read(name: str, stamp: str) -> Read:
    """One that was sent. Raises ValueError or TypeError when no worker of ours can have sent it."""
    if not (is_text(name) and is_text(stamp)):
        raise ValueError
    return name, stamp


class Opened:
    """What a worker has read so far."""

    def __init__(self) -> None:
        self._for_retrievals: ReadSet | None = None
        self._all: ReadSet | None = None

    def after(self, new: list[list[list[str]]] | None, operation: str) -> ReadSet | None:
        """All that counts for an operation, once what its reply brought is in; None when that is nothing."""
        if new is not None:
            for_retrievals, later = (tuple([_read(*each) for each in reads]) for reads in new)
            if for_retrievals:
                self._for_retrievals = ReadSet(self._for_retrievals, for_retrievals)
            self._all = ReadSet(self._all, for_retrievals + later)
        return self._for_retrievals if operation == "retrieve" else self._all
