"""The `oloproof` command."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from oloproof.errors import EXIT_UNFINISHED, OloproofError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit code. No traceback reaches the user unless --traceback asks for it."""
    from oloproof.cli.arguments import parse
    from oloproof.cli.output import flush, speak_utf8

    speak_utf8()
    try:
        given = parse(sys.argv[1:] if arguments is None else arguments)
    finally:
        flush()  # --help prints, and may be read by a pager that is closed
    return guarded(lambda: given.command(given), "oloproof", given.traceback)


def guarded(command: Callable[[], int], program: str, traceback: bool) -> int:
    """Call a command and turn whatever it raises into a sentence on standard error and an exit code; with
    `traceback`, also into where it was raised."""
    from oloproof.cli.output import complain, flush, speak_utf8

    speak_utf8()
    raised: BaseException
    try:
        with _ended_gently():
            code = command()
            flush()
        return code
    except OloproofError as error:
        raised, code, message = error, error.exit_code, str(error)
    except KeyboardInterrupt as error:
        raised, code = error, EXIT_UNFINISHED
        message = "interrupted; what finished before is kept, and the same command goes on from there"
    except Exception as error:  # noqa: BLE001 - a person sees a sentence, and can ask for the traceback
        raised, code = error, EXIT_UNFINISHED
        message = f"internal error: {type(error).__name__}: {error}\nplease report it"
        message += "" if traceback else "; --traceback shows where it happened"
    if traceback:
        from traceback import format_exception

        message = f"{''.join(format_exception(raised))}{message}"
    complain(program, message)
    return code


@contextmanager
def _ended_gently() -> Iterator[None]:
    """A request to terminate, as CI sends it, is answered like Ctrl-C: workers end, and what is done is stored."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
