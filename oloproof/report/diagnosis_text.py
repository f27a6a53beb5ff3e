"""A diagnosis as text: counts by label, implicated factors, candidate experiments, and the cases behind them."""

from __future__ import annotations

from oloproof.diagnosis.factors import implicated_factors
from oloproof.diagnosis.labels import Label
from oloproof.diagnosis.records import DiagnosedCase, Diagnosis
from oloproof.report.terminal import plain

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


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """What `oloproof diagnose` prints."""
    selected = len(diagnosis.selected)
    lines = [
        f"Selected: {selected} failed {_cases(selected)} with gold context (observed; no population claim)",
        f"Control: {diagnosis.control_passed} of {selected} passed when re-executed without the intervention",
        f"Recovered under gold context: {diagnosis.recovered} of {selected}",
    ]
    counts = diagnosis.counts()
    lines += [
        f"{label.value}: {counts[label]} of {selected}, {_sentence(label, diagnosis)}"
        for label in SENTENCES
        if counts.get(label)
    ]
    left_out = counts.get(Label.NOT_DIAGNOSED, 0)
    if left_out:
        lines.append(f"NOT_DIAGNOSED: {left_out} failed {_cases(left_out)} without gold context")
    lines += implicated_lines(diagnosis)
    lines.append(f"Diagnosis {diagnosis.id}")
    if diagnosis.gold_run:
        lines.append(f"Child runs: gold context {diagnosis.gold_run}, control {diagnosis.control_run}")
    lines.append(f"Cases: oloproof inspect {diagnosis.id}")
    return "\n".join(lines)


def implicated_lines(diagnosis: Diagnosis) -> list[str]:
    """The implicated factors, each with its candidate experiments."""
    lines = []
    for factor in implicated_factors(diagnosis):
        lines.append(
            f"Implicated: {factor.name}, in {factor.count} of the {factor.total} {factor.among} failures."
        )
        lines += [f"Candidate experiment: {what}. {HYPOTHESIS}" for what in factor.experiments]
    return lines


def diagnosed_case_line(case: DiagnosedCase) -> str:
    """One case as `oloproof inspect DIAGNOSIS` lists it."""
    position = "none" if case.best_position is None else str(case.best_position)
    return (
        f"{plain(case.case_id)}: {case.label.value}, {case.reason}, strength {case.strength.value}, "
        f"best relevant position {position}"
    )


def _sentence(label: Label, diagnosis: Diagnosis) -> str:
    reasons = {case.reason for case in diagnosis.cases if case.label is label}
    if label in PARTIAL and all(reason.startswith("part_of_") for reason in reasons):
        return PARTIAL[label]
    return SENTENCES[label]


def _cases(count: int) -> str:
    return "case" if count == 1 else "cases"
