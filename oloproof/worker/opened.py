"""The files that a worker has opened so far, as the engine gathers them from its replies."""

from __future__ import annotations

from bisect import insort


class Opened:
    """The files that a worker has opened so far."""

    def __init__(self) -> None:
        self._for_retrievals = _SortedPaths()
        self._all = _SortedPaths()

    def after(self, new: list[list[str]] | None, operation: str) -> tuple[str, ...]:
        """All that count for an operation, once those that its reply brought are in."""
        if new is not None:
            for_retrievals, later = new
            self._for_retrievals.add(for_retrievals)
            self._all.add(for_retrievals)
            self._all.add(later)
        return (self._for_retrievals if operation == "retrieve" else self._all).paths


class _SortedPaths:
    """A set of paths that is read as a sorted tuple, the same one until the set grows."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._sorted: list[str] = []
        self.paths: tuple[str, ...] = ()

    def add(self, paths: list[str]) -> None:
        for path in paths:
            if path not in self._known:
                self._known.add(path)
                insort(self._sorted, path)
        if len(self._sorted) > len(self.paths):
            self.paths = tuple(self._sorted)
