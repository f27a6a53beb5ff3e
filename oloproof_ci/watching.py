"""The progress of the runs of one evaluation, printed for whoever watches."""

from __future__ import annotations

from collections.abc import Callable

from oloproof.cli.progress import Progress


class PrintedProgress:
    """Progress of one run after the other."""

    def __init__(self) -> None:
        self._current: Progress | None = None

    def __call__(self, what: str) -> Callable[[int, int], None]:
        self.clear()
        self._current = Progress(what)
        return self._current

    def clear(self) -> None:
        if self._current is not None:
            self._current.clear()
