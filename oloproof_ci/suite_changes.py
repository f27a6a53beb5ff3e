"""What a pull request changes of its own test: the cases and the evaluators, held against the base's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from oloproof.canonical import canonical_json
from oloproof.errors import ConfigurationError
from oloproof.pairing import CaseKey, pair_cases, pair_evaluators
from oloproof.records import Case
from oloproof.run_records import EvaluatorRecord
from oloproof.settings.caselines import NotACase, case_problems, parse_line
from oloproof.settings.cases import BOM, case_from_json
from oloproof.store.runs import pair_digest
from oloproof_ci.report import EditedCase, SuiteChanges

#: How many edited cases are shown with what was edited, how many places of each, and how much of a value.
MAX_SHOWN = 200
MAX_PLACES = 6
MAX_VALUE = 200

_ABSENT = object()


#: Lines of a case file with their numbers.
Lines = Sequence[tuple[int, bytes]]


def differing_lines(head: Path, base: bytes) -> tuple[Lines, Lines]:
    """The lines of the head's case file that the base's does not hold to the letter, and those of the base's that are
    not in the head's. Raises OSError when the head's cannot be read."""
    there = {_name(line) for _, line in _lines(BytesIO(base))}
    here, after = set(), []
    with head.open("rb") as file:
        for number, line in _lines(file):
            here.add(_name(line))
            if _name(line) not in there:
                after.append((number, line))
    return after, [(number, line) for number, line in _lines(BytesIO(base)) if _name(line) not in here]


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(file, 1):
        line = (line.removeprefix(BOM) if number == 1 else line).strip()
        if line:
            yield number, line


def _name(line: bytes) -> bytes:
    return hashlib.sha256(line).digest()


def changed_cases(after: Lines, before: Lines, shown: str, failed: Callable[[Case], bool]) -> SuiteChanges:
    """What became of the cases on lines that differ; why that is not known when one of the base's, which messages call
    `shown`, is no case. `failed` says of a case of the base whether it last failed."""
    try:
        return _changes(
            [_case(line, number, "the case file") for number, line in after],
            [_case(line, number, shown) for number, line in before],
            failed,
        )
    except ConfigurationError as error:
        return SuiteChanges(problem=error.problems[0])


def _changes(after: Sequence[Case], before: Sequence[Case], failed: Callable[[Case], bool]) -> SuiteChanges:
    pairs = pair_cases(_keys(after), _keys(before))
    retagged = [
        after[i].id
        for i, j in zip(pairs.candidate, pairs.baseline, strict=True)
        if after[i].id == before[j].id and after[i].metadata != before[j].metadata
    ]
    edited = [*pairs.edited, *retagged]
    here, there = {case.id: case for case in after}, {case.id: case for case in before}
    return SuiteChanges(
        added=pairs.added,
        removed=pairs.removed,
        removed_failing=tuple(name for name in pairs.removed if failed(there[name])),
        renamed=pairs.renamed,
        edited=tuple(_edited(edited, here, there)),
    )


def _keys(cases: Sequence[Case]) -> list[CaseKey]:
    return [(case.id, pair_digest(case)) for case in cases]


def _case(line: bytes, number: int, shown: str) -> Case:
    try:
        found = parse_line(line)
    except NotACase as error:
        raise ConfigurationError(f"{shown}:{number}: {error}") from None
    problems = case_problems(found, chunked=False)
    if problems:
        raise ConfigurationError(f"{shown}:{number}: {problems[0]}")
    return case_from_json(found, number)


def _edited(
    names: Sequence[str], after: Mapping[str, Case], before: Mapping[str, Case]
) -> Iterator[EditedCase]:
    for name in names[:MAX_SHOWN]:
        places = sorted(_differences(before[name].to_json(), after[name].to_json(), ""), key=_telling)
        _, was, now = places[0] if places else ("", _ABSENT, _ABSENT)
        shown = tuple(place for place, _, _ in places[:MAX_PLACES])
        yield EditedCase(name, shown, _text(was), _text(now), after[name].line)
    for name in names[MAX_SHOWN:]:
        yield EditedCase(name, (), None, None, after[name].line)


def _differences(before: Any, after: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """The places at which two cases differ, with what stands there (or `_ABSENT`)."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            if place or key in ("input", "expected", "metadata"):
                inner = f"{place}.{key}" if place else key
                yield from _differences(before.get(key, _ABSENT), after.get(key, _ABSENT), inner)
    elif _absent_or_json(before) != _absent_or_json(after):
        yield place, before, after


def _absent_or_json(value: Any) -> str | None:
    return None if value is _ABSENT else canonical_json(value)


def _telling(difference: tuple[str, Any, Any]) -> tuple[int, str]:
    """What is expected comes first, then the question, then what the case is filed under."""
    place = difference[0]
    return ["expected", "input", "metadata"].index(place.partition(".")[0]), place


def _text(value: Any) -> str | None:
    if value is _ABSENT:
        return None
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


# ----------------------------------------------------------------------------------------- evaluators


def with_evaluators(
    changes: SuiteChanges,
    head: Sequence[EvaluatorRecord],
    base: Sequence[EvaluatorRecord],
    content: Callable[[Path], bytes | None],
) -> SuiteChanges:
    """The changes with those of the evaluators. `head` are the evaluators as they judged; `content` gives the files
    that they read as the base has them."""
    known = {evaluator.criterion: evaluator.data for evaluator in head}
    before = [replace(e, data=_data(known.get(e.criterion, {}), content)) for e in base]
    return replace(changes, evaluators=pair_evaluators(head, before).changes)


def _data(files: Mapping[str, str | None], content: Callable[[Path], bytes | None]) -> dict[str, str | None]:
    """The digests of the base's versions of files (None: it is not there); folders are passed over."""
    found: dict[str, str | None] = {}
    for path in files:
        if not path.endswith("/"):
            held = content(Path(path))
            found[path] = None if held is None else hashlib.sha256(held).hexdigest()
    return found
