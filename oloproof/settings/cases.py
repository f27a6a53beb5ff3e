"""Case files: one JSON object a line, read twice as a stream.

`scan_cases` checks every line and reports all that is wrong; `iter_cases` then yields the cases without
checking again, and refuses a file that changed in between.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from oloproof.errors import ConfigurationError
from oloproof.records import Case, GoldPassage, Relevant
from oloproof.settings.caselines import NotACase, case_problems, fast_parse, parse_line
from oloproof.settings.wording import MAX_PROBLEMS, capped, printable, shortened

#: What some editors put before the first line of a UTF-8 file.
BOM = b"\xef\xbb\xbf"


class Digest(Protocol):
    """The part of a hashlib object that is needed here."""

    def update(self, data: bytes, /) -> None:
        """Take in more bytes."""


class ChecksCases(Protocol):
    """The part of an evaluator that is needed here."""

    def case_problem(self, case: Case) -> str | None:
        """Why the evaluator cannot judge the case, None when it can."""


@dataclass(frozen=True, slots=True)
class CaseFileFacts:
    """A case file that was checked: `cases` is their number, `sha256` the hex digest of the file's bytes.

    `shown` is the file as messages name it; size and modification time are those before the check.
    """

    path: Path
    shown: str
    cases: int
    sha256: str
    size: int
    mtime_ns: int


def scan_cases(
    path: Path,
    evaluators: Iterable[ChecksCases] = (),
    relevance_unit: str = "document",
    *,
    shown: str | None = None,
) -> CaseFileFacts:
    """Check every line of a case file.

    With the relevance unit "chunk", here or of an evaluator, every relevant entry needs a chunk_id. `shown`
    is the name of the file in messages, by default the path itself.

    Raises ConfigurationError with up to 20 problems, a line each, and how many more there are.
    """
    judges = tuple(evaluators)
    chunked = "chunk" in (relevance_unit, *(getattr(judge, "relevance_unit", None) for judge in judges))
    scan = _Scan(shown or str(path), judges, chunked)
    content = hashlib.sha256()
    with _open(path, scan.shown) as file:
        status = os.fstat(file.fileno())
        for number, line in _lines(file, content, scan.shown):
            scan.line(number, line)
    scan.finish()
    return CaseFileFacts(
        path, scan.shown, len(scan.first_lines), content.hexdigest(), status.st_size, status.st_mtime_ns
    )


def iter_cases(facts: CaseFileFacts) -> Iterator[Case]:
    """The cases of a file that `scan_cases` found in order.

    Raises ConfigurationError when the file is not the one that was checked: at once when its size or time
    of modification differ, after the last case when only its contents do.
    """
    changed = ConfigurationError(f"{facts.shown}: changed while it was being used; run again")
    content = hashlib.sha256()
    with _open(facts.path, facts.shown) as file:
        status = os.fstat(file.fileno())
        if (status.st_size, status.st_mtime_ns) != (facts.size, facts.mtime_ns):
            raise changed
        for number, line in _lines(file, content, facts.shown):
            try:
                case = case_from_json(fast_parse(line), number)
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                raise changed from None
            yield case
    if content.hexdigest() != facts.sha256:
        raise changed


def case_file_digest(path: Path) -> str | None:
    """The hex digest of a case file's bytes; None when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return None


def case_from_json(obj: dict[str, Any], line: int = 0) -> Case:
    """The case of a JSON object that was checked before; `line` is 0 for one that comes from a store."""
    expected = obj.get("expected", {})
    relevant = expected.get("relevant")
    gold = expected.get("gold_context")
    return Case(
        obj["id"],
        obj["input"],
        expected,
        obj.get("metadata", {}),
        None
        if relevant is None
        else tuple([Relevant(e["doc_id"], e.get("chunk_id"), float(e.get("grade", 1.0))) for e in relevant]),
        None
        if gold is None
        else tuple([GoldPassage(e["doc_id"], e["text"], e.get("chunk_id")) for e in gold]),
        line,
    )


def _lines(file: BinaryIO, content: Digest, shown: str) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers; `content` takes in every byte."""
    try:
        for number, line in enumerate(file, 1):
            content.update(line)
            if number == 1:
                line = line.removeprefix(BOM)
            if line and not line.isspace():
                yield number, line
    except OSError as error:
        raise ConfigurationError(f"{shown}: cannot be read: {error.strerror}") from None


def _open(path: Path, shown: str) -> BinaryIO:
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise ConfigurationError(f"{shown}: is a directory, not a case file")
        if not stat.S_ISREG(mode):
            raise ConfigurationError(
                f"{shown}: is not a regular file; it is read twice, so a pipe cannot serve"
            )
        return path.open("rb")
    except FileNotFoundError:
        raise ConfigurationError(
            f"{shown}: no such case file; write it, or name another in the configuration's `dataset`"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"{shown}: cannot be read: {reason}") from None


@dataclass(slots=True)
class _Scan:
    """What is known of a file while its lines go by."""

    shown: str
    evaluators: Sequence[ChecksCases]
    chunked: bool
    first_lines: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    count: int = 0
    lines: int = 0

    def complain(self, number: int, sentence: str) -> None:
        self.count += 1
        if self.count <= MAX_PROBLEMS:
            self.problems.append(f"{self.shown}:{number}: {printable(sentence)}")

    def line(self, number: int, line: bytes) -> None:
        self.lines += 1
        try:
            obj = parse_line(line)
        except NotACase as error:
            self.complain(number, str(error))
            return
        problems = case_problems(obj, self.chunked)
        ident = obj.get("id")
        if isinstance(ident, str) and ident:
            first = self.first_lines.setdefault(ident, number)
            if first != number:
                self.complain(number, f'the id "{shortened(ident)}" stands on line {first} already')
        if not problems and self.evaluators:
            case = case_from_json(obj, number)
            found = [evaluator.case_problem(case) for evaluator in self.evaluators]
            problems = list(dict.fromkeys(problem for problem in found if problem is not None))
        for problem in problems:
            self.complain(number, problem)

    def finish(self) -> None:
        """Raise what was found."""
        if self.lines == 0:
            raise ConfigurationError(f"{self.shown}: holds no cases; write one JSON object a line")
        if self.problems:
            raise ConfigurationError(*capped(self.problems, self.count))
