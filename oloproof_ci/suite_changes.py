"""What a pull request changes of its own test: the cases and the evaluators, held against the base's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oloproof.canonical import canonical_json, digest
from oloproof.errors import ConfigurationError
from oloproof.pairing import CaseKey, pair_cases, pair_evaluators
from oloproof.run_records import EvaluatorRecord
from oloproof.settings.cases import CaseFileFacts, iter_cases, scan_cases
from oloproof.settings.project import Project
from oloproof.store.runs import pair_digest
from oloproof_ci.report import EditedCase, SuiteChanges

#: How many edited cases are shown with what was edited, how many places of each, and how much of a value.
MAX_SHOWN = 200
MAX_PLACES = 6
MAX_VALUE = 200

_ABSENT = object()


@dataclass(frozen=True)
class _CaseFile:
    """A case file's contents by digest: the cases in order, and of each the digest of its metadata."""

    facts: CaseFileFacts
    keys: Sequence[CaseKey]
    metadata: Mapping[str, bytes]

    @classmethod
    def read(cls, facts: CaseFileFacts) -> _CaseFile:
        keys, metadata = [], {}
        for case in iter_cases(facts):
            keys.append((case.id, pair_digest(case)))
            metadata[case.id] = digest(canonical_json(dict(case.metadata)))
        return cls(facts, keys, metadata)

    def chosen(self, names: set[str]) -> dict[str, dict[str, Any]]:
        """The contents of some cases, and the lines that they stand on."""
        return {
            case.id: case.to_json() | {"line": case.line}
            for case in iter_cases(self.facts)
            if case.id in names
        }


def changed_cases(head: CaseFileFacts, base: Project) -> SuiteChanges:
    """The cases that are not in both commits what they are in the other; why they are not known when the base's case
    file cannot be read. The head's was checked."""
    try:
        before = scan_cases(base.dataset, shown=base.config.dataset)
    except ConfigurationError as error:
        return SuiteChanges(problem=error.problems[0])
    if before.sha256 == head.sha256:
        return SuiteChanges()
    theirs, ours = _CaseFile.read(before), _CaseFile.read(head)
    pairs = pair_cases(ours.keys, theirs.keys)
    retagged = [
        ours.keys[i][0]
        for i, j in zip(pairs.candidate, pairs.baseline, strict=True)
        if ours.keys[i][0] == theirs.keys[j][0]
        and ours.metadata[ours.keys[i][0]] != theirs.metadata[ours.keys[i][0]]
    ]
    return SuiteChanges(
        added=pairs.added,
        removed=pairs.removed,
        renamed=pairs.renamed,
        edited=tuple(_edited([*pairs.edited, *retagged], ours, theirs)),
    )


def _edited(names: Sequence[str], ours: _CaseFile, theirs: _CaseFile) -> Iterator[EditedCase]:
    shown = set(names[:MAX_SHOWN])
    before, after = theirs.chosen(shown), ours.chosen(shown)
    for name in names:
        if name not in shown:
            yield EditedCase(name, (), None, None, 0)
            continue
        places = sorted(_differences(before[name], after[name], ""), key=_telling)
        first = places[0] if places else ("", _ABSENT, _ABSENT)
        yield EditedCase(
            case_id=name,
            places=tuple(place for place, _, _ in places[:MAX_PLACES]),
            before=_text(first[1]),
            after=_text(first[2]),
            line=int(after[name]["line"]),
        )


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
