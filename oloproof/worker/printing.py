"""What the user's code prints: kept with the call that printed it, and never more of it than its two ends.

Everything that reaches descriptors 1 and 2 lies in a log file that the engine made. When several calls share the
worker, what Python prints goes to a page of the call instead, in memory that is a file too: so either is still there
when the process has been killed. Loaded on both sides, so standard library only.
"""

from __future__ import annotations

import io
import os
import struct
import sys
from typing import Any

from oloproof.worker.current import current_call

#: How much of what a call printed is kept: the beginning and the end.
LOG_HEAD, LOG_TAIL = 4_000, 12_000
#: A page: the number of its call, how many bytes were printed, the beginning, and the end as a ring.
_PREFACE = struct.Struct("<qq")
_TAIL_AT = _PREFACE.size + LOG_HEAD
PAGE_SIZE = _TAIL_AT + LOG_TAIL


class Page:
    """Room for what one call at a time prints."""

    def __init__(self, memory: memoryview) -> None:
        import threading

        self._memory = memory
        self._lock = threading.Lock()
        self._number = self._total = 0

    def turn(self, number: int) -> None:
        """Begin afresh, for the call of this number."""
        with self._lock:
            self._number, self._total = number, 0
            _PREFACE.pack_into(self._memory, 0, number, 0)

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        with self._lock:
            head = data[: max(0, LOG_HEAD - self._total)]
            self._put(_PREFACE.size + self._total, head)
            end = self._total + len(data)
            tail = data[len(head) :][-LOG_TAIL:]
            at = (end - LOG_HEAD - len(tail)) % LOG_TAIL if tail else 0
            self._put(_TAIL_AT + at, tail[: LOG_TAIL - at])
            self._put(_TAIL_AT, tail[LOG_TAIL - at :])
            self._total = end
            _PREFACE.pack_into(self._memory, 0, self._number, end)

    def _put(self, at: int, data: bytes) -> None:
        if data:
            self._memory[at : at + len(data)] = data

    @property
    def text(self) -> str:
        return _page_text(bytes(self._memory)) if self._total else ""


def printed_on(pages: int, number: int) -> str:
    """What the call of this number printed on its page, as the engine reads it from the file of pages."""
    at = 0
    while page := os.pread(pages, PAGE_SIZE, at):
        if _PREFACE.unpack_from(page)[0] == number:
            return _page_text(page)
        at += PAGE_SIZE
    return ""


def _page_text(page: bytes) -> str:
    (_, total) = _PREFACE.unpack_from(page)
    head, ring = page[_PREFACE.size : _TAIL_AT], page[_TAIL_AT:]
    if total <= LOG_HEAD + LOG_TAIL:
        return (head + ring)[:total].decode("utf-8", "replace")
    at = (total - LOG_HEAD) % LOG_TAIL
    tail = (ring[at:] + ring[:at]).decode("utf-8", "replace")
    return f"{head.decode('utf-8', 'replace')}{left_out(total - LOG_HEAD - LOG_TAIL)}{tail}"


def read_log(fd: int) -> str:
    """The text of a log file, a long one without its middle."""
    size = os.fstat(fd).st_size
    if not size:
        return ""
    if size <= LOG_HEAD + LOG_TAIL:
        return os.pread(fd, size, 0).decode("utf-8", "replace")
    head = os.pread(fd, LOG_HEAD, 0).decode("utf-8", "replace")
    tail = os.pread(fd, LOG_TAIL, size - LOG_TAIL).decode("utf-8", "replace")
    return f"{head}{left_out(size - LOG_HEAD - LOG_TAIL)}{tail}"


def left_out(size: int) -> str:
    """The line that stands for the middle of a log."""
    return f"\n... {size:,} bytes left out ...\n"


def file_identity(fd: int) -> tuple[int, int] | None:
    """What tells whether a descriptor still is the file that it was; None when it is closed."""
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class CallStream(io.TextIOWrapper):
    """Standard output or error while calls share the process: each call's text goes to its page."""

    def write(self, text: str, /) -> int:
        call = current_call()
        if call is None or call.page is None or not isinstance(text, str):
            return super().write(text)
        call.page.write(text)
        return len(text)

    def close(self) -> None:
        """Only flushes: the other calls print here too."""
        self.flush()


class Log:
    """The log file as the worker sees it: a private descriptor of what it has on 1 and 2."""

    def __init__(self, *, shared: bool) -> None:
        self._fd = os.dup(1)
        self._known = file_identity(self._fd)
        self._make: type[io.TextIOWrapper] = CallStream if shared else io.TextIOWrapper
        for fd, name in ((1, "stdout"), (2, "stderr")):
            if shared:
                setattr(sys, name, self._stream(fd))
            else:
                # Nothing printed may fail on a glyph, or be lost in a buffer when the process is ended.
                getattr(sys, name).reconfigure(
                    encoding="utf-8", errors="backslashreplace", line_buffering=True
                )

    def drain(self) -> str:
        """What was printed since the last call, shortened in the middle; the log file is emptied."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:  # noqa: BLE001 - the user's code may have put anything there
                continue
        if file_identity(self._fd) != self._known:
            return ""
        self._restore()
        try:
            text = read_log(self._fd)
            if text:
                os.ftruncate(self._fd, 0)
        except OSError:
            return ""
        return text

    def _restore(self) -> None:
        """Put back what a call closed, so that the next one can print."""
        for fd, name in ((1, "stdout"), (2, "stderr")):
            if file_identity(fd) is None:
                os.dup2(self._fd, fd)
            stream = getattr(sys, name)
            if stream is None or getattr(stream, "closed", False):
                setattr(sys, name, self._stream(fd))

    def _stream(self, fd: int) -> Any:
        raw = open(fd, "wb", closefd=False)  # noqa: SIM115 - open for the life of the process
        return self._make(raw, "utf-8", "backslashreplace", line_buffering=True)
