"""Which of the pull request's changes new failures hang on, as the stage swaps found it."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.diagnosis.attribution import AttributedCase, StageSwap, Swap, SwapFactor, Verdict
from oloproof_ci.markdown import Align, details, prose, shortened, table
from oloproof_ci.report import CriterionFailures, Report
from oloproof_ci.sections.figures import NONE
from oloproof_ci.sections.words import base_name, counted, named

#: What a cell says where the verdict names no factor.
_VERDICTS = {
    Verdict.NO_SINGLE_CHANGE: "no single change suffices",
    Verdict.UNCHANGED: "nothing differs",
    Verdict.UNSTABLE: "none: unstable",
}
#: What the reason codes of the others say.
_REASONS = {
    "over_budget": "not attributed: beyond the budget",
    "criterion_judges_retrieval": "not attributed: it judges the retrieval",
    "repeat_missing": "unresolved: a repeat gave no result",
    "swap_missing": "unresolved: a swap gave no result",
}
_OUTCOMES = {"passed": "passes", "failed": "fails", "missing": "no result", None: "unchanged"}
#: How many differing ingredients of a factor are named, and how many characters of an error are shown.
_MAX_NAMES, _MAX_ERROR = 6, 80


def headline_sentence(report: Report) -> str:
    """`Implicated: the change in retrieval (2 of 3), the change in generation (1 of 3).` of the first criterion whose
    swaps found any, or that no single change suffices; else empty."""
    for failures in report.failures:
        swap = failures.swap
        if swap is None:
            continue
        total = swap.looked_into
        of = f"{total}" if total == len(failures.new_failures) else f"the {total} looked into"
        if swap.counts():
            found = sorted(swap.counts().items(), key=lambda entry: (-entry[1], len(entry[0])))
            parts = [f"{_the_change(factors)} ({count} of {of})" for factors, count in found]
            return f"Implicated: {', '.join(parts)}."
        none = sum(case.verdict is Verdict.NO_SINGLE_CHANGE for case in swap.cases)
        if none:
            return f"For {none} of {of} no single change suffices."
    return ""


def implicated_change(case: AttributedCase | None) -> str:
    """What the table of new failures says of one case."""
    if case is None:
        return NONE
    if case.verdict is Verdict.IMPLICATED:
        return case.implicated[0].value
    if case.verdict is Verdict.NEEDED_TOGETHER:
        return f"{_listed(case.implicated)}, each needed"
    missing = [swap for swap in case.swaps if swap.outcome == "missing"]
    if case.verdict is Verdict.UNRESOLVED and missing:
        return f"unresolved: {_missing(missing[0])}"
    return _VERDICTS.get(case.verdict) or _REASONS.get(case.reason or "", "not attributed")


def swap_section(failures: CriterionFailures, report: Report, *, rows: bool) -> str:
    """What the swaps came to over all cases, and with `rows` each of them on a click; empty where none was made."""
    swapped = [case for case in failures.swap.cases if case.swaps] if failures.swap else []
    if failures.swap is None or not swapped:
        return ""
    parts = [_totals(swapped, failures, report)]
    if rows and len(failures.swap.changed) > 1:
        parts.append(details("What each swap came to", _rows(swapped, failures.swap, report)))
    return "\n\n".join(parts)


def _totals(swapped: Sequence[AttributedCase], failures: CriterionFailures, report: Report) -> str:
    base, found = base_name(report), []
    for position, factor in enumerate(SwapFactor):
        outcomes = [case.swaps[position].outcome for case in swapped]
        tried = [outcome for outcome in outcomes if outcome is not None]
        passed = tried.count("passed")
        if not tried:
            found.append(f"{factor.value} is unchanged")
        else:
            verb = "passes" if passed == 1 else "pass"
            text = f"with the {factor.value} of {base} {passed} of {len(tried)} {verb}"
            missing = tried.count("missing")
            found.append(f"{text}, {missing} gave no result" if missing else text)
    total = len(failures.new_failures)
    some = "" if len(swapped) == total else f"{len(swapped)} of "
    return f"**Stage swap** of {some}{counted(total, 'new failure')}, on recorded retrievals: {' · '.join(found)}."


def _rows(cases: Sequence[AttributedCase], swap: StageSwap, report: Report) -> str:
    headers: list[tuple[str, Align]] = [("Case", "left")]
    headers += [(f"{factor.value} of {base_name(report)}", "left") for factor in SwapFactor]
    lines = [[named(case.case_id), *(_came_to(each) for each in case.swaps)] for case in cases]
    differs = [f"{f.value} differs in {_names(swap.changed[f])}" for f in SwapFactor if f in swap.changed]
    return "\n\n".join([table(headers, lines), "<br>".join(differs)])


def _came_to(swap: Swap) -> str:
    return f"{_OUTCOMES[swap.outcome]}{_why(swap)}"


def _missing(swap: Swap) -> str:
    return f"the swap of {swap.factor.value} gave no result{_why(swap)}"


def _why(swap: Swap) -> str:
    return f" ({prose(shortened(swap.error, _MAX_ERROR))})" if swap.error else ""


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(named(name) for name in names[:_MAX_NAMES])
    return shown if len(names) <= _MAX_NAMES else f"{shown} and {len(names) - _MAX_NAMES} more"


def _the_change(factors: Sequence[SwapFactor]) -> str:
    if len(factors) == 1:
        return f"the change in {factors[0].value}"
    return f"the changes in {_listed(factors)} together"


def _listed(factors: Sequence[SwapFactor]) -> str:
    *first, last = [factor.value for factor in factors]
    return f"{', '.join(first)} and {last}" if first else last
