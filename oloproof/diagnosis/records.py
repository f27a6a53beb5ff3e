"""The record of a diagnosis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from oloproof.canonical import content_id
from oloproof.diagnosis.labels import Label, Outcome, Strength
from oloproof.diagnosis.replays import Setting
from oloproof.jsonform import to_json

GOLD_CONTEXT = "gold-context"


@dataclass(frozen=True)
class DiagnosedCase:
    """One failed case with its label. `best_position` is the 1-based rank of its best relevant unit in the recorded
    retrieval, None when none was retrieved. `gold` and `control` are None for a case that was not diagnosed.

    The control was executed several times where that was asked for: `control` is "passed" when any repeat passed, and
    `control_passes` says how many did. `retrievals_differed` counts the repeats whose retrieval came out different,
    when the control repeated that too. `replay` is what a replay of the recorded retrieval under another setting came
    to, and `evidence_gained` whether its context holds a relevant unit that the recorded one does not.
    """

    case_id: str
    label: Label
    reason: str
    strength: Strength
    best_position: int | None
    top_k: int
    kept: int
    gold: Outcome | None
    control: Outcome | None
    control_passes: int = 0
    retrievals_differed: int = 0
    replay: Outcome | None = None
    evidence_gained: bool = False


@dataclass(frozen=True)
class ReplayRecord:
    """A replay of the selected cases beside a control of its own: the setting, the label that it confirms when its
    cases recover, the child runs, and the diagnosis under the gold context from which the labels are."""

    setting: Setting
    confirms: Label
    run: str | None
    control_runs: tuple[str, ...]
    labels_from: str


@dataclass(frozen=True)
class Diagnosis:
    """Failed cases of one criterion of one run, re-executed under an intervention beside an unchanged control.

    `intervention` is gold-context, or the name of a replay's setting. `cases` are sorted by case id. `gold_run` and
    `control_runs` are the ids of the child runs, a control run for each repeat; `full_control` says whether the control
    repeated the retrieval too. Of `unrecorded` more cases that failed the recorded execution is no longer in the store.
    With a `replay`, `control` of each case is that of the replay's own control.
    """

    run: str
    criterion: str
    intervention: str
    gold_run: str | None
    control_runs: tuple[str, ...]
    cases: tuple[DiagnosedCase, ...]
    full_control: bool = False
    unrecorded: int = 0
    replay: ReplayRecord | None = None

    @property
    def id(self) -> str:
        return content_id(to_json(self))

    @property
    def repeats(self) -> int:
        """How often the control was executed."""
        return len(self.control_runs if self.replay is None else self.replay.control_runs)

    @property
    def selected(self) -> tuple[DiagnosedCase, ...]:
        """The cases that were re-executed."""
        return tuple(case for case in self.cases if case.label is not Label.NOT_DIAGNOSED)

    @property
    def recovered(self) -> int:
        """How many of the selected passed with the gold context."""
        return sum(case.gold == "passed" for case in self.selected)

    @property
    def replay_recovered(self) -> int:
        """How many of the selected passed under the replay's setting."""
        return sum(case.replay == "passed" for case in self.selected)

    @property
    def control_passed(self) -> int:
        """How many of the selected passed in any repeat of the control."""
        return sum(case.control == "passed" for case in self.selected)

    @property
    def confirmed(self) -> int:
        """How many cases the replay bears out."""
        return sum(case.strength is Strength.REPLAY_CONFIRMED for case in self.cases)

    def counts(self) -> Mapping[Label, int]:
        """How many cases carry each label."""
        return Counter(case.label for case in self.cases)

    def case(self, case_id: str) -> DiagnosedCase | None:
        return next((case for case in self.cases if case.case_id == case_id), None)
