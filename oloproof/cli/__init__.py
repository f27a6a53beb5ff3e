"""The `oloproof` command."""

from __future__ import annotations

import gc
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from oloproof.errors import EXIT_OK, EXIT_UNFINISHED, OloproofError

#: How many objects are made before some are looked through for cycles. Hardly any of ours are in one, and looking as
#: often as Python does by itself takes a twentieth of the time.
MADE_BETWEEN_COLLECTIONS = 10_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit code. No traceback reaches the user unless --traceback asks for it."""

    def parse() -> Namespace:
        from oloproof.cli.arguments import parse

        return parse(sys.argv[1:] if arguments is None else arguments)

    return run_program("oloproof", parse)


def run_program(name: str, parse: Callable[[], Namespace]) -> int:
    """Parse a command line and run its command, a function of what was parsed; gives the exit code."""
    from oloproof.cli.output import flush

    gc.set_threshold(MADE_BETWEEN_COLLECTIONS)
    parsed: list[Namespace] = []

    def parse_and_print() -> int:
        try:
            parsed.append(parse())
        finally:
            flush()  # --help prints, and may be read by a pager that is closed
        return EXIT_OK

    failed = guarded(parse_and_print, name, False)
    if failed:
        return failed
    (given,) = parsed
    return guarded(lambda: int(given.command(given)), name, given.traceback)


def guarded(command: Callable[[], int], program: str, traceback: bool) -> int:
    """Call a command and turn whatever it raises into a sentence on standard error and an exit code; with
    `traceback`, also into where it was raised."""
    from oloproof.cli.output import complain, flush, speak_utf8

    speak_utf8()
    occupy_standard_descriptors()
    raised: BaseException
    asked: list[int] = []
    try:
        with _ended_gently(asked):
            code = command()
            flush()
        return code
    except OloproofError as error:
        raised, code, message = error, error.exit_code, str(error)
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 - a person sees a sentence, and can ask for the traceback
        raised, code = error, EXIT_UNFINISHED
        if asked or isinstance(error, KeyboardInterrupt):  # a library may have made something else of it
            message = "interrupted; what finished before is kept, and the same command goes on from there"
        else:
            message = f"internal error: {type(error).__name__}: {error}\nplease report it"
            message += "" if traceback else "; --traceback shows where it happened"
    if traceback:
        from traceback import format_exception

        message = f"{''.join(format_exception(raised))}{message}"
    complain(program, message)
    return code


def occupy_standard_descriptors() -> None:
    """Open the null device where one of the descriptors 0 to 2 is closed, lest a pipe of ours gets its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


@contextmanager
def _ended_gently(asked: list[int]) -> Iterator[None]:
    """A request to terminate, as CI sends it, is answered like Ctrl-C: workers end, and what is done is stored. The
    numbers of the signals that came are added to `asked`."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        raise KeyboardInterrupt

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
