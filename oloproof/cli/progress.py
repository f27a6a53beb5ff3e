"""Progress on standard error: one line that is rewritten on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

TERMINAL_SECONDS = 0.1
PLAIN_SECONDS = 10.0


class Progress:
    """Called with how many cases are done of how many. Says nothing about what is over quickly."""

    def __init__(self, what: str = "", noun: str = "cases", stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr  # None when the command was started without one
        self._what = f"{what}: " if what else ""
        self._noun = noun
        self._terminal = self._stream is not None and self._stream.isatty()
        self._every = TERMINAL_SECONDS if self._terminal else PLAIN_SECONDS
        self._next = time.monotonic() + self._every
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._every
        line = f"{self._what}{done} of {total} {self._noun}"
        if self._terminal:
            self.say(line)
        elif self._stream is not None:
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def say(self, text: str) -> None:
        """Show what is going on, on a terminal alone."""
        if self._terminal:
            self._stream.write(f"\r{text}\x1b[K")
            self._stream.flush()
            self._shown = True

    def clear(self) -> None:
        """Take the terminal's line away again."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
