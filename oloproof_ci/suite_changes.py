"""What a pull request changes of its own test: the cases and the evaluators, held against the base's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from oloproof.canonical import canonical_json
from oloproof.errors import ConfigurationError
from oloproof.pairing import CaseKey, pair_cases, pair_evaluators
from oloproof.records import Case
from oloproof.run_records import EvaluatorRecord
from oloproof.settings.caselines import NotACase, case_problems, parse_line
from oloproof.settings.cases import BOM, CaseFileFacts, case_from_json
from oloproof.settings.project import Project
from oloproof.store.runs import pair_digest
from oloproof_ci.report import EditedCase, SuiteChanges

#: How many edited cases are shown with what was edited, how many places of each, and how much of a value.
MAX_SHOWN = 200
MAX_PLACES = 6
MAX_VALUE = 200

_ABSENT = object()


def changed_cases(head: CaseFileFacts, base: Project, failed: Callable[[Case], bool]) -> SuiteChanges:
    """The cases that are not in both commits what they are in the other; why they are not known when the base's case
    file cannot be read. The head's was checked. `failed` says of a case of the base whether it last failed.

    Lines that both files hold to the letter are the same case; only the others are looked into.
    """
    shown = base.config.dataset
    try:
        ours = set(_digests(head.path, head.shown))
        theirs, before = set(), []
        for number, line in enumerate(_lines(base.dataset, shown), 1):
            name = _name(line)
            theirs.add(name)
            if line and name not in ours:
                before.append(_case(line, number, shown))
        after = [
            _case(line, number, head.shown)
            for number, line in enumerate(_lines(head.path, head.shown), 1)
            if line and _name(line) not in theirs
        ]
    except ConfigurationError as error:
        return SuiteChanges(problem=error.problems[0])
    return _changes(after, before, failed)


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


def _name(line: bytes) -> bytes:
    return hashlib.sha256(line).digest()


def _digests(path: Path, shown: str) -> Iterator[bytes]:
    return (_name(line) for line in _lines(path, shown))


def _lines(path: Path, shown: str) -> Iterator[bytes]:
    """The lines of a case file, blank ones too, so that they can be counted."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield (line.removeprefix(BOM) if number == 1 else line).strip()
    except OSError as error:
        raise ConfigurationError(f"{shown}: cannot be read: {error.strerror or error}") from None


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
    changes: SuiteChanges, head: Sequence[EvaluatorRecord], base: Sequence[EvaluatorRecord], tree: Path
) -> SuiteChanges:
    """The changes with those of the evaluators. `head` are the evaluators as they judged; the files that they read are
    looked up in the base's checkout, `tree`."""
    known = {evaluator.criterion: evaluator.data for evaluator in head}
    before = [replace(e, data=_data_at(tree, known.get(e.criterion, {}))) for e in base]
    return replace(changes, evaluators=pair_evaluators(head, before).changes)


def _data_at(tree: Path, files: Mapping[str, str | None]) -> dict[str, str | None]:
    """The digests that files have in a checkout (None: it is not there); folders are passed over."""
    found: dict[str, str | None] = {}
    for path in files:
        if not path.endswith("/"):
            try:
                with (tree / path).open("rb") as file:
                    found[path] = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError:
                found[path] = None
    return found
