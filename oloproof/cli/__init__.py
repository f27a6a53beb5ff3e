"""The `oloproof` command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from oloproof.errors import EXIT_UNFINISHED, OloproofError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit code. No traceback reaches the user unless --traceback asks for it."""
    from oloproof.cli.arguments import parse

    given = parse(sys.argv[1:] if arguments is None else arguments)
    return guarded(lambda: given.command(given), "oloproof", given.traceback)


def guarded(command: object, program: str, traceback: bool) -> int:
    """Call a command and turn whatever it raises into a sentence on standard error and an exit code."""
    assert callable(command)
    _speak_utf8()
    try:
        code = int(command())
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_left()
    except OloproofError as error:
        if traceback:
            raise
        for line in str(error).splitlines():
            print(f"{program}: {line}" if not line.startswith(" ") else line, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(
            f"{program}: interrupted; what finished before is kept, and the same command goes on from there",
            file=sys.stderr,
        )
        return EXIT_UNFINISHED
    except Exception as error:
        if traceback:
            raise
        print(
            f"{program}: internal error: {type(error).__name__}: {error}\n"
            f"{program}: please report it; --traceback shows where it happened",
            file=sys.stderr,
        )
        return EXIT_UNFINISHED
    return code


def _speak_utf8() -> None:
    """Never fail on a glyph: what a stream's encoding cannot show is shown as an escape."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            encoding = None if stream.isatty() else "utf-8"
            reconfigure(encoding=encoding, errors="backslashreplace")


def _reader_left() -> int:
    """Standard output was closed by its reader, as `head` does: no error. What is still buffered goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
