"""What two suites have in common: which cases are the same, and which evaluators judge in the same way.

Cases pair by id where input and expected value are equal too; what is left then pairs by input and expected value
alone, so that a case that was only renamed is no other case. The order of the cases is no matter.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from oloproof.canonical import canonical_json
from oloproof.run_records import EvaluatorRecord

#: A case's id, and the digest of its input and expected value.
CaseKey = tuple[str, bytes]


class RenamedCase(NamedTuple):
    """A case with another id than it had."""

    before: str
    after: str


@dataclass(frozen=True)
class CasePairs:
    """Which cases are the same. `candidate` and `baseline` are the positions of the pairs on either side, in the
    candidate's order. `edited` names cases that are there on both sides with other contents."""

    candidate: Sequence[int]
    baseline: Sequence[int]
    renamed: tuple[RenamedCase, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    edited: tuple[str, ...]


def pair_cases(candidate: Sequence[CaseKey], baseline: Sequence[CaseKey]) -> CasePairs:
    """Pair the cases of two suites; ids are unique within each."""
    there = {case_id: number for number, (case_id, _) in enumerate(baseline)}
    partners: dict[int, int] = {}
    unpaired: list[int] = []
    for number, (case_id, content) in enumerate(candidate):
        other = there.get(case_id)
        if other is not None and baseline[other][1] == content:
            partners[number] = other
            del there[case_id]
        else:
            unpaired.append(number)
    renamed = _pair_by_content(candidate, baseline, unpaired, there)
    partners.update(renamed)
    left = [candidate[number][0] for number in unpaired if number not in renamed]
    ordered = sorted(partners)
    return CasePairs(
        candidate=array("q", ordered),
        baseline=array("q", [partners[number] for number in ordered]),
        renamed=tuple(RenamedCase(baseline[renamed[n]][0], candidate[n][0]) for n in sorted(renamed)),
        added=tuple(case_id for case_id in left if case_id not in there),
        removed=tuple(case_id for case_id in there if case_id not in set(left)),
        edited=tuple(case_id for case_id in left if case_id in there),
    )


def _pair_by_content(
    candidate: Sequence[CaseKey], baseline: Sequence[CaseKey], unpaired: Sequence[int], there: dict[str, int]
) -> dict[int, int]:
    """Pairs of equal contents among the cases that no id has paired; what is paired leaves `there`. Several equal
    cases go together in the order of their ids."""
    if not unpaired or not there:
        return {}
    by_content: dict[bytes, list[int]] = {}
    for case_id in sorted(there, reverse=True):
        by_content.setdefault(baseline[there[case_id]][1], []).append(there[case_id])
    found = {}
    for number in sorted(unpaired, key=lambda number: candidate[number][0]):
        same = by_content.get(candidate[number][1])
        if same:
            found[number] = same.pop()
            del there[baseline[found[number]][0]]
    return found


# ----------------------------------------------------------------------------------------- evaluators

#: What became of an evaluator. A renamed one judges as before under another name; settings, code (the user's own or
#: ours) or data (a file that the user's code reads) have changed under the name it had.
Change = Literal["added", "removed", "renamed", "settings", "code", "data"]

#: Parts of a definition that stand for code.
_CODE = ("code", "code_version")


class EvaluatorChange(NamedTuple):
    """An evaluator that is not on both sides what it was. `criterion` is its name in the candidate, or in the baseline
    where the candidate has none. `detail` says more: the former name, the settings, or the files that differ."""

    criterion: str
    change: Change
    detail: tuple[str, ...] = ()


@dataclass(frozen=True)
class EvaluatorPairs:
    """The evaluators that judge in the same way on both sides, as (record, position in the candidate, position in the
    baseline), and what became of the others."""

    shared: tuple[tuple[EvaluatorRecord, int, int], ...]
    changes: tuple[EvaluatorChange, ...]


def pair_evaluators(
    candidate: Sequence[EvaluatorRecord], baseline: Sequence[EvaluatorRecord]
) -> EvaluatorPairs:
    """Pair the evaluators of two suites by name, and those whose names are gone by what they do."""
    positions = {e.criterion: number for number, e in enumerate(baseline)}
    former = {_meaning(baseline[n]): n for name, n in positions.items() if not _has(candidate, name)}
    shared, changes, gone = [], [], dict(positions)
    for number, evaluator in enumerate(candidate):
        other = positions.get(evaluator.criterion)
        if other is None and (other := former.pop(_meaning(evaluator), None)) is not None:
            before = baseline[other].criterion
            changes.append(EvaluatorChange(evaluator.criterion, "renamed", (before,)))
        if other is None:
            changes.append(EvaluatorChange(evaluator.criterion, "added"))
            continue
        del gone[baseline[other].criterion]
        changed = _changed(evaluator, baseline[other])
        if changed is None:
            shared.append((evaluator, number, other))
        else:
            changes.append(changed)
    changes += [EvaluatorChange(name, "removed") for name in gone]
    return EvaluatorPairs(tuple(shared), tuple(changes))


def _has(evaluators: Sequence[EvaluatorRecord], name: str) -> bool:
    return any(evaluator.criterion == name for evaluator in evaluators)


def _meaning(evaluator: EvaluatorRecord) -> str:
    """What an evaluator does, whatever its criterion is called."""
    definition = {name: value for name, value in evaluator.definition.items() if name != "criterion"}
    return canonical_json([evaluator.kind, evaluator.reads, definition])


def _changed(candidate: EvaluatorRecord, baseline: EvaluatorRecord) -> EvaluatorChange | None:
    """What differs between evaluators of one name, the most telling only."""
    after, before = candidate.definition, baseline.definition
    names = sorted(name for name in {*after, *before} - {"criterion"} if _differs(name, after, before))
    settings = tuple(name for name in names if name not in _CODE)
    if settings:
        return EvaluatorChange(candidate.criterion, "settings", settings)
    if names or (candidate.kind, candidate.reads) != (baseline.kind, baseline.reads):
        return EvaluatorChange(candidate.criterion, "code")
    files = tuple(
        path
        for path in sorted(candidate.data)
        if candidate.data[path] != baseline.data.get(path, candidate.data[path])
    )
    return EvaluatorChange(candidate.criterion, "data", files) if files else None


def _differs(name: str, after: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    return name not in after or name not in before or after[name] != before[name]
