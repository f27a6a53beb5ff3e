"""Every error a user can meet, with the exit code it ends in."""

from __future__ import annotations

from collections.abc import Sequence

EXIT_OK = 0
EXIT_RULE_FAILED = 1
EXIT_CONFIGURATION = 2
EXIT_INSUFFICIENT_EVIDENCE = 3
EXIT_MANUAL_REVIEW = 4
EXIT_UNFINISHED = 5


class OloproofError(Exception):
    """Base of all errors that are shown to a user as a sentence, without a traceback."""

    exit_code: int = EXIT_UNFINISHED


class ConfigurationError(OloproofError):
    """The input is wrong: says which file, line or setting, what was expected, and what to do.

    `problems` holds one complete sentence each; they are printed one a line.
    """

    exit_code = EXIT_CONFIGURATION

    def __init__(self, *problems: str) -> None:
        self.problems: Sequence[str] = problems
        super().__init__("\n".join(problems))


class UnfinishedError(OloproofError):
    """The run could not be finished: a worker that cannot start, a store that cannot be written."""

    exit_code = EXIT_UNFINISHED
