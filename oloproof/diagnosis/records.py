"""The record of a diagnosis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from oloproof.canonical import content_id
from oloproof.diagnosis.labels import Label, Outcome, Strength
from oloproof.jsonform import to_json


@dataclass(frozen=True)
class DiagnosedCase:
    """One failed case with its label. `best_position` is the 1-based rank of its best relevant unit in the recorded
    retrieval, None when none was retrieved. `gold` and `control` are None for a case that was not diagnosed."""

    case_id: str
    label: Label
    reason: str
    strength: Strength
    best_position: int | None
    top_k: int
    kept: int
    gold: Outcome | None
    control: Outcome | None


@dataclass(frozen=True)
class Diagnosis:
    """Failed cases of one criterion of one run, re-executed with the gold context beside an unchanged control.

    `cases` are sorted by case id. `gold_run` and `control_run` are the ids of the child runs.
    """

    run: str
    criterion: str
    intervention: str
    gold_run: str | None
    control_run: str | None
    cases: tuple[DiagnosedCase, ...]

    @property
    def id(self) -> str:
        return content_id(to_json(self))

    @property
    def selected(self) -> tuple[DiagnosedCase, ...]:
        """The cases that were re-executed."""
        return tuple(case for case in self.cases if case.label is not Label.NOT_DIAGNOSED)

    @property
    def recovered(self) -> int:
        """How many of the selected passed with the gold context."""
        return sum(case.gold == "passed" for case in self.selected)

    @property
    def control_passed(self) -> int:
        return sum(case.control == "passed" for case in self.selected)

    def counts(self) -> Mapping[Label, int]:
        """How many cases carry each label."""
        return Counter(case.label for case in self.cases)

    def case(self, case_id: str) -> DiagnosedCase | None:
        return next((case for case in self.cases if case.case_id == case_id), None)
