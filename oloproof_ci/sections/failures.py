"""The cases that changed: new failures with their evidence and answers, fixed, still failing, implicated factors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from oloproof.diagnosis.attribution import StageSwap
from oloproof.diagnosis.labels import Strength
from oloproof_ci.markdown import Align, code, details, prose, shortened, table
from oloproof_ci.report import CriterionFailures, Evidence, NewFailure, Place, Report
from oloproof_ci.sections.attribution import implicated_change, swap_section
from oloproof_ci.sections.experiments import tried_section
from oloproof_ci.sections.figures import NONE
from oloproof_ci.sections.headline import new_failure_counts, no_new_failure
from oloproof_ci.sections.room import Room
from oloproof_ci.sections.words import ANSWER, base_name, counted, label_reason, listed, named, words

#: How many relevant passages of a case, and experiments of a factor, are shown.
_MAX_EVIDENCE, _MAX_EXPERIMENTS = 3, 3
#: What the repeat of a new failure came to on either side.
_HEAD_REPEATS = {"passed": "passed", "failed": "failed again", "missing": "no result", None: "not repeated"}
_BASE_REPEATS = {"passed": "passed again", "failed": "failed", "missing": "no result", None: "not repeated"}


def new_failures_section(report: Report, room: Room) -> str:
    """New failures of each criterion, in the report's order; empty when there is nothing to compare with."""
    if report.comparison is None:
        return ""
    criteria = [c for c in report.failures if c.new_failures]
    shown = criteria[: room.criteria]
    parts = [_new_failures(failures, report, room, alone=len(criteria) == 1) for failures in shown]
    if len(criteria) > len(shown):
        rest = len(criteria) - len(shown)
        parts.append(f"and new failures of {rest} more {'criterion' if rest == 1 else 'criteria'}")
    if not parts:
        parts = ["### New failures", _none(report)]
    parts.append(_others(report, room))
    return "\n\n".join(part for part in parts if part)


def changes_section(report: Report, room: Room) -> str:
    """What is fixed, what still fails, and what is implicated."""
    parts = [_fixed(report, room), _still_failing(report, room), _factors(report, room)]
    return "\n\n".join(part for part in parts if part)


# ------------------------------------------------------------------------------------- new failures


def _new_failures(failures: CriterionFailures, report: Report, room: Room, *, alone: bool) -> str:
    cases = failures.new_failures
    # Of many, those that something is known of come first.
    shown = sorted(cases, key=lambda case: case.reason == "over_budget")[: room.failures]
    title = f"{counted(len(cases), 'new failure')} of {named(failures.criterion)}"
    parts = [f"### {title}" if alone or shown else title]
    if shown:
        parts.append(_evidence_table(shown, failures.swap, report))
    if len(cases) > len(shown):
        parts.append(f"and {len(cases) - len(shown)} more; `report.json` names them all")
    parts.append(_diagnosed(failures))
    parts.append(_unstable_before(failures, [case.case_id for case in cases if not case.unstable], room))
    parts.append(swap_section(failures, report, rows=room.answers and bool(shown)))
    if room.answers and shown:
        parts.append(_answers(shown, report))
    parts.append(tried_section(failures, room))
    return "\n\n".join(part for part in parts if part)


def _diagnosed(failures: CriterionFailures) -> str:
    """How many were re-executed, and what the gold passage did for them."""
    cases = failures.new_failures
    recovered = sum(c.strength in (Strength.INTERVENTION_RECOVERY, Strength.REPLAY_CONFIRMED) for c in cases)
    some = "" if failures.diagnosed == len(cases) else f"Diagnosed {failures.diagnosed} of {len(cases)}"
    if lacking := sum(case.reason == "no_gold_context" for case in cases):
        some += (
            f"; {counted(lacking, 'case')} would need `expected.gold_context` for that, the text that answers"
        )
    some = f"{some}. " if some else ""
    if not failures.diagnosed:
        return some.strip()
    verb = "recovers" if recovered == 1 else "recover"
    return f"{some}With the gold passages as context {recovered} of {failures.diagnosed} {verb}."


def _unstable_before(failures: CriterionFailures, case_ids: Collection[str], room: Room) -> str:
    """Those of the cases that held this time, as far as they were repeated, and did not before."""
    found = [case for case in failures.known_unstable if case.case_id in case_ids]
    shown = [
        f"{named(case.case_id)} ({case.differed} of {counted(case.repeats, 'repeat')})"
        for case in found[: room.names]
    ]
    rest = [f"{len(found) - len(shown)} more"] if len(found) > len(shown) else []
    return f"Unstable when repeated before: {', '.join([*shown, *rest])}" if found else ""


def _evidence_table(cases: Sequence[NewFailure], swap: StageSwap | None, report: Report) -> str:
    base_top_k = report.base.system.top_k if report.base else 0
    columns: list[tuple[str, Callable[[NewFailure], str]]] = [
        ("Case", lambda case: named(case.case_id)),
        ("Label", lambda case: f"{code(case.label.value)}<br>{label_reason(case)}"),
        (f"Relevant passage: {base_name(report)} → here", lambda case: _evidence(case, base_top_k)),
        ("Repeated", lambda case: _repeated(case, report)),
    ]
    if swap is not None:
        columns.insert(3, ("Implicated change", lambda case: implicated_change(swap.case(case.case_id))))
    headers: list[tuple[str, Align]] = [(heading, "left") for heading, _ in columns]
    return table(headers, [[cell(case) for _, cell in columns] for case in cases])


def _evidence(case: NewFailure, base_top_k: int) -> str:
    """Where each relevant passage stood in base and head."""
    if not case.evidence:
        return "none is named"
    lines = [_move(evidence, base_top_k, case.top_k) for evidence in case.evidence[:_MAX_EVIDENCE]]
    rest = len(case.evidence) - len(lines)
    return "<br>".join([*lines, f"and {rest} more"] if rest else lines)


def _move(evidence: Evidence, base_top_k: int, head_top_k: int) -> str:
    before, after = _place(evidence.base, base_top_k), _place(evidence.head, head_top_k)
    return f"{named(evidence.unit)} {before} → {'the same' if after == before else after}"


def _place(place: Place, top_k: int) -> str:
    """`rank 1, in context`, `rank 4, top_k is 2`, `not retrieved`."""
    if place.rank is None:
        return words(place.fate)
    fate = f"top_k is {top_k}" if place.fate == "cut by top_k" else place.fate
    return f"rank {place.rank}, {words(fate)}"


def _repeated(case: NewFailure, report: Report) -> str:
    """What the repeats on both sides came to: whether they bear the regression out."""
    head, base = case.head_repeat, case.base_repeat
    if head is None and base is None:
        return "not repeated"
    if (head, base) == ("failed", "passed"):
        return "the same again"
    outcomes = f"{_HEAD_REPEATS[head]} here, {_BASE_REPEATS[base]} on {base_name(report)}"
    return f"**unstable**: {outcomes}" if case.unstable else outcomes


def _answers(cases: Sequence[NewFailure], report: Report) -> str:
    headers: list[tuple[str, Align]] = [
        ("Case", "left"),
        ("Expected", "left"),
        (base_name(report), "left"),
        ("here", "left"),
    ]
    rows = [
        [named(case.case_id), *(_said(text) for text in (case.expected, case.base_answer, case.head_answer))]
        for case in cases
    ]
    return details("What they answered", table(headers, rows))


def _said(text: str | None) -> str:
    """The first line of an answer."""
    if text is None:
        return NONE
    return prose(shortened(text, ANSWER)) or "(empty)"


def _none(report: Report) -> str:
    counts = new_failure_counts(report)
    if not counts:
        return "No pair of cases was judged on both sides, so it is not known whether any newly fails."
    if any(counts.values()):
        return "None of a criterion that is diagnosed."
    return no_new_failure(report)


# ------------------------------------------------------------------------------- what else changed


def _others(report: Report, room: Room) -> str:
    """The cases that flipped in the criteria that were not diagnosed."""
    told = {failures.criterion for failures in report.failures}
    flips = report.comparison.flips if report.comparison else ()
    others = [each for each in flips if each.criterion not in told]
    failed = _flipped([(each.criterion, each.new_failures) for each in others], room)
    fixed = _flipped([(each.criterion, each.fixed) for each in others], room)
    lines = [f"New failures of other criteria: {failed}" if failed else ""]
    lines.append(f"Fixed in other criteria: {fixed}" if fixed else "")
    return "<br>\n".join(line for line in lines if line)


def _flipped(cases: Sequence[tuple[str, Sequence[str]]], room: Room) -> str:
    """How many cases of each criterion, and which."""
    said = [f"{named(name)} {len(ids)} ({listed(ids, room.names)})" for name, ids in cases if ids]
    return " · ".join(said[: room.criteria])


def _fixed(report: Report, room: Room) -> str:
    """How many cases of each criterion are fixed, and which."""
    several = len(report.failures) > 1
    lines = []
    for c in report.failures[: room.criteria]:
        if c.fixed:
            of = f" in {named(c.criterion)}" if several else ""
            lines.append(f"{len(c.fixed)} fixed{of}: {listed(c.fixed, room.names)}")
            lines.append(_unstable_before(c, c.fixed, room))
    return "<br>\n".join(line for line in lines if line)


def _still_failing(report: Report, room: Room) -> str:
    """How many cases fail on both sides; which ones on a click."""
    failing = [c for c in report.failures if c.still_failing][: room.criteria]
    if not failing:
        return ""
    if len(failing) == 1 and len(report.failures) == 1:
        ids = failing[0].still_failing
        text = f"{len(ids)} still failing"
        return details(text, _labelled(failing[0], room.hidden_names)) if room.hidden_names else text
    if not room.hidden_names:
        return " · ".join(f"{named(c.criterion)} {len(c.still_failing)} still failing" for c in failing)
    lists = [
        f"{named(c.criterion)} {len(c.still_failing)}: {_labelled(c, room.hidden_names)}" for c in failing
    ]
    return details("Still failing", "\n\n".join(lists))


def _labelled(failures: CriterionFailures, limit: int) -> str:
    """The cases that still fail in a row, those that were diagnosed first and with their label."""
    labels = {case.case_id: case.label for case in failures.still_failing_labels}
    told = [f"{named(name)} {code(label.value)}" for name, label in list(labels.items())[:limit]]
    others = [name for name in failures.still_failing if name not in labels]
    if others:
        told.append(listed(others, max(0, limit - len(told))))
    return ", ".join(told)


def _factors(report: Report, room: Room) -> str:
    """What the labels point to, and what could be tried."""
    several = sum(bool(failures.factors) for failures in report.failures) > 1
    lines = []
    for failures in report.failures[: room.criteria]:
        of = f" of {named(failures.criterion)}" if several else ""
        for factor in failures.factors[: room.factors]:
            tries = " · ".join(words(what) for what in factor.experiments[:_MAX_EXPERIMENTS])
            lines.append(
                f"- **Implicated: {words(factor.name)}**, in {factor.count} of the {factor.total} "
                f"{words(factor.among)} failures{of}. Candidate experiments (hypotheses to test): {tries}"
            )
    return "\n".join(lines)
