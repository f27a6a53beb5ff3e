"""The replay of failed cases under one other setting, beside a control, with the labels of the gold context."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from oloproof.diagnosis.child_runs import ChildCase
from oloproof.diagnosis.controls import Control, Controlled
from oloproof.diagnosis.gold_context import Diagnosing
from oloproof.diagnosis.labels import UNSTABLE, Label, Strength
from oloproof.diagnosis.recorded import RecordedCase
from oloproof.diagnosis.records import GOLD_CONTEXT, DiagnosedCase, Diagnosis, ReplayRecord
from oloproof.diagnosis.replays import Setting, replayed_steps
from oloproof.evaluators.relevance import RelevanceUnit, unit_grades, unit_of
from oloproof.execution.steps import Steps
from oloproof.jsonform import from_json
from oloproof.records import Execution
from oloproof.run_records import Run


def stored_labels(diagnosing: Diagnosing) -> tuple[str, Diagnosis] | None:
    """The newest diagnosis under the gold context that covers every failed case of the criterion, with its id."""
    failed = [each.case.id for each in diagnosing.failed_cases()]
    for identity, record in diagnosing.runs.diagnoses(diagnosing.run.id):
        found = json.loads(record)
        if (found["criterion"], found["intervention"]) != (diagnosing.criterion, GOLD_CONTEXT):
            continue
        if [case["case_id"] for case in found["cases"]] == failed:
            return identity, from_json(Diagnosis, record)
    return None


def diagnose_replay(
    diagnosing: Diagnosing, setting: Setting, labels_from: str, labelled: Diagnosis, repeats: int
) -> Diagnosis:
    """Replay the failed cases that `labelled` re-executed, under a setting and unchanged. Raises RerankerError."""
    selected = {case.case_id for case in labelled.selected}
    failed = [each for each in diagnosing.failed_cases() if each.case.id in selected]
    name = setting.name(diagnosing.run)
    confirms = label_to_confirm(setting, diagnosing.run)
    diagnosing.plan((1 + repeats) * len(failed))
    system = replace(diagnosing.run.system, top_k=setting.top_k, token_budget=setting.token_budget)
    control_runs, controlled = diagnosing.control(Control(repeats), "replay control", failed)
    replay_run, replayed = diagnosing.children.execute(
        name, failed, _steps(diagnosing, setting), differs=_gains(diagnosing.unit), system=system
    )
    return replace(
        labelled,
        intervention=name,
        cases=tuple(
            _with_replay(case, confirms, replayed.get(case.case_id), controlled.get(case.case_id))
            for case in labelled.cases
        ),
        replay=ReplayRecord(setting, confirms, replay_run, control_runs, labels_from),
    )


def label_to_confirm(setting: Setting, run: Run) -> Label:
    """The label that a replay confirms when its cases recover under it: of the loss that the setting is to mend."""
    if setting.reranker is None and setting.top_k == run.system.top_k:
        return Label.CONTEXT_ASSEMBLY_LOSS
    return Label.RANKED_OUT


def _steps(diagnosing: Diagnosing, setting: Setting) -> Callable[[RecordedCase], Steps]:
    under = diagnosing.steps.under(setting.top_k, setting.token_budget)
    return lambda recorded: replayed_steps(under, setting.reranker, recorded)


def _gains(unit: RelevanceUnit) -> Callable[[RecordedCase, Execution], bool]:
    """Whether a relevant unit stands in the context that did not stand in the recorded one."""

    def gains(recorded: RecordedCase, execution: Execution) -> bool:
        relevant = unit_grades(recorded.case.relevant, unit)
        before = {unit_of(passage, unit) for passage in recorded.execution.context}
        return any(unit_of(p, unit) in relevant and unit_of(p, unit) not in before for p in execution.context)

    return gains


def _with_replay(
    case: DiagnosedCase, confirms: Label, replayed: ChildCase | None, control: Controlled | None
) -> DiagnosedCase:
    """The case with what its replay came to. Only where the evidence that was lost reached the context does a recovery
    bear the label out."""
    if replayed is None or control is None:
        return case
    case = replace(
        case,
        replay=replayed.outcome,
        evidence_gained=replayed.differs,
        control=control.outcome,
        control_passes=control.passes,
        retrievals_differed=0,  # that was the control beside the gold context
    )
    if control.outcome == "passed":
        return replace(case, label=UNSTABLE.label, reason=UNSTABLE.reason, strength=UNSTABLE.strength)
    recovered = (replayed.outcome, control.outcome) == ("passed", "failed")
    if case.label is confirms and recovered and replayed.differs:
        return replace(case, strength=Strength.REPLAY_CONFIRMED)
    return case
