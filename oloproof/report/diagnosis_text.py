"""A diagnosis as text: counts by label, implicated factors, candidate experiments, and the cases behind them."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.diagnosis.factors import RANKING_DEPTH, implicated_factors, sufficient_top_k
from oloproof.diagnosis.labels import Label, Strength
from oloproof.diagnosis.records import DiagnosedCase, Diagnosis, ReplayRecord
from oloproof.judges.costs import JudgeCosts
from oloproof.report.comparison_text import named
from oloproof.report.judges_text import costs_lines
from oloproof.report.terminal import plain
from oloproof.report.unstable_text import unstable_lines
from oloproof.store.unstable import UnstableCase

#: What each label says of its cases.
SENTENCES = {
    Label.RETRIEVAL_MISS: "recovered; no relevant evidence was retrieved",
    Label.RANKED_OUT: "recovered; relevant evidence was ranked below top-k",
    Label.CONTEXT_ASSEMBLY_LOSS: "recovered; relevant evidence within top-k was left out of the context",
    Label.CONTEXT_DISTRACTION: "recovered; relevant evidence was in the context beside other passages",
    Label.GENERATION_FAILURE: "still failed with the gold context",
    Label.UNSTABLE: "passed when re-executed without the intervention",
    Label.UNRESOLVED: "the evidence does not tell",
}
#: What is said instead when only part of the relevant evidence was lost.
PARTIAL = {
    Label.RETRIEVAL_MISS: "recovered; part of the relevant evidence was not retrieved",
    Label.RANKED_OUT: "recovered; part of the relevant evidence was ranked below top-k",
    Label.CONTEXT_ASSEMBLY_LOSS: "recovered; part of the relevant evidence was left out of the context",
}
HYPOTHESIS = "This is a hypothesis to test, not an established cause."


def diagnosis_text(
    diagnosis: Diagnosis, known: Sequence[UnstableCase] = (), costs: JudgeCosts | None = None
) -> str:
    """What `oloproof diagnose` prints. `known` are the run's cases that the store remembers as unstable, `costs` what
    judges took."""
    selected = len(diagnosis.selected)
    lines = [
        f"Selected: {selected} failed {_cases(selected)} with gold context (observed; no population claim)",
        *_control_lines(diagnosis),
    ]
    if diagnosis.unrecorded:
        gone = diagnosis.unrecorded
        lines.append(f"Left out: {gone} failed {_cases(gone)} whose recorded execution is no longer stored")
    replay = diagnosis.replay
    if replay is None:
        lines.append(f"Recovered under gold context: {diagnosis.recovered} of {selected}")
    else:
        lines += _replay_lines(diagnosis, replay)
    counts = diagnosis.counts()
    lines += [
        f"{label.value}: {counts[label]} of {selected}, {_sentence(label, diagnosis)}"
        for label in SENTENCES
        if counts.get(label)
    ]
    left_out = counts.get(Label.NOT_DIAGNOSED, 0)
    if left_out:
        lines.append(f"NOT_DIAGNOSED: {left_out} failed {_cases(left_out)} without gold context")
    lines += known_lines(diagnosis, known)
    if replay is None:
        lines += implicated_lines(diagnosis)
    lines += costs_lines(costs)
    lines.append(f"Diagnosis {diagnosis.id}")
    lines += _child_lines(diagnosis)
    lines.append(f"Cases: oloproof inspect {diagnosis.id}")
    return "\n".join(lines)


def known_lines(diagnosis: Diagnosis, known: Sequence[UnstableCase]) -> list[str]:
    """Cases that held this time, and did not in earlier repeats."""
    held = {case.case_id for case in diagnosis.cases if case.label is not Label.UNSTABLE}
    return unstable_lines([each for each in known if each.case_id in held], [diagnosis.criterion])


def _control_lines(diagnosis: Diagnosis) -> list[str]:
    """What the control came to; for one that was repeated, the share of the repeats that passed, case by case."""
    selected = len(diagnosis.selected)
    full = diagnosis.full_control and diagnosis.replay is None
    repeats = diagnosis.repeats
    often = f" in any of {repeats} repeats" if repeats > 1 else ""
    how = "re-executed in full" if full else "re-executed"
    lines = [
        f"Control: {diagnosis.control_passed} of {selected} passed{often} when {how} without the intervention"
    ]
    if repeats > 1:
        shares = [f"{c.case_id} {c.control_passes} of {repeats}" for c in diagnosis.cases if c.control_passes]
        if shares:
            lines.append(f"Passed when repeated: {named(shares)}")
    if full:
        differed = sum(case.retrievals_differed > 0 for case in diagnosis.selected)
        lines.append(f"Retrieval: came out differently when repeated in {differed} of {selected}")
        if differed:
            names = [case.case_id for case in diagnosis.selected if case.retrievals_differed]
            lines.append(f"Unstable retrieval: {named(names)}")
    return lines


def _replay_lines(diagnosis: Diagnosis, replay: ReplayRecord) -> list[str]:
    """What recovered under another setting, and which label that bears out."""
    selected, name, label = diagnosis.selected, diagnosis.intervention, replay.confirms
    missing = sum(case.replay == "missing" for case in selected)
    labelled = [case for case in selected if case.label is label]
    confirmed = sum(case.strength is Strength.REPLAY_CONFIRMED for case in labelled)
    lines = [
        f"Recovered under {name}: {diagnosis.replay_recovered} of {len(selected)}"
        + (f" ({missing} gave no result)" if missing else ""),
        f"Confirmed under {name}: {confirmed} of {len(labelled)} {label.value} cases also recovered",
    ]
    without = sum(case.replay == "passed" and not case.evidence_gained for case in labelled)
    if without:
        lines.append(
            f"Not counted as confirmed: {without} recovered without more relevant evidence in the context"
        )
    lines.append(
        f"Labels from gold context (diagnosis {replay.labels_from}): {diagnosis.recovered} of {len(selected)} recovered"
    )
    return lines


def _child_lines(diagnosis: Diagnosis) -> list[str]:
    children = [("gold context", diagnosis.gold_run), *_controls("control", diagnosis.control_runs)]
    if diagnosis.replay is not None:
        children.append((diagnosis.intervention, diagnosis.replay.run))
        children += _controls("replay control", diagnosis.replay.control_runs)
    shown = [f"{name} {child}" for name, child in children if child]
    return [f"Child runs: {', '.join(shown)}"] if shown else []


def _controls(name: str, runs: Sequence[str]) -> list[tuple[str, str | None]]:
    if len(runs) == 1:
        return [(name, runs[0])]
    return [(f"{name} {number}", run) for number, run in enumerate(runs, 1)]


def implicated_lines(diagnosis: Diagnosis) -> list[str]:
    """The implicated factors, each with its candidate experiments."""
    lines = []
    for factor in implicated_factors(diagnosis):
        lines.append(
            f"Implicated: {factor.name}, in {factor.count} of the {factor.total} {factor.among} failures."
        )
        lines += [f"Candidate experiment: {what}. {HYPOTHESIS}" for what in factor.experiments]
        if factor.name == RANKING_DEPTH and (top_k := sufficient_top_k(diagnosis)):
            lines.append(f"Try it on all cases: oloproof what-if {diagnosis.run} --top-k {top_k}")
    return lines


def diagnosed_case_line(case: DiagnosedCase, diagnosis: Diagnosis) -> str:
    """One case as `oloproof inspect DIAGNOSIS` lists it."""
    position = "none" if case.best_position is None else str(case.best_position)
    line = (
        f"{plain(case.case_id)}: {case.label.value}, {case.reason}, strength {case.strength.value}, "
        f"best relevant position {position}"
    )
    if case.control_passes:
        line += f", passed {case.control_passes} of {diagnosis.repeats} when repeated"
    if case.retrievals_differed:
        line += f", retrieval differed in {case.retrievals_differed} of {diagnosis.repeats}"
    if case.replay is not None:
        came = "gave no result" if case.replay == "missing" else case.replay
        line += f", {came} under {plain(diagnosis.intervention)}"
    return line


def _sentence(label: Label, diagnosis: Diagnosis) -> str:
    reasons = {case.reason for case in diagnosis.cases if case.label is label}
    if label in PARTIAL and all(reason.startswith("part_of_") for reason in reasons):
        return PARTIAL[label]
    return SENTENCES[label]


def _cases(count: int) -> str:
    return "case" if count == 1 else "cases"
