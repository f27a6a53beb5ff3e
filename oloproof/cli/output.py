"""The two streams of a command: its result on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from oloproof.errors import UnfinishedError
from oloproof.report.terminal import plain, plain_json


def speak_utf8() -> None:
    """Never fail on a glyph: what a stream's encoding cannot show is shown as an escape."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            encoding = None if stream.isatty() else "utf-8"
            reconfigure(encoding=encoding, errors="backslashreplace")


def emit(text: str) -> None:
    """Print a command's result. When the reader has left, as `head` does, that is no error and the command goes on
    to its exit code. Raises UnfinishedError when the text cannot be written."""
    try:
        print(text)
    except OSError as error:
        _stop_printing(error)
    flush()


def emit_record(record: Any) -> None:
    """Print a record as JSON."""
    emit(plain_json(json.dumps(record, indent=2, ensure_ascii=False)))


def flush() -> None:
    """Bring what was printed to its reader, if it is still there."""
    if sys.stdout is None:  # the command was started without one
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        _stop_printing(error)


def complain(program: str, text: str) -> None:
    """Print a message for a person, each line of it after the program's name unless it is indented."""
    if sys.stderr is None:
        return
    for line in text.splitlines():
        shown = plain(line)
        print(shown if line.startswith(" ") else f"{program}: {shown}", file=sys.stderr)


def _stop_printing(error: OSError) -> None:
    """What is still in the buffer, and whatever follows, goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    if not isinstance(error, BrokenPipeError):
        raise UnfinishedError(f"standard output cannot be written ({error.strerror or error})") from None
