"""The heading with the gate, and the sentence that says why."""

from __future__ import annotations

from oloproof.decisions.records import Decision, Gate, GateState, RuleState
from oloproof_ci.markdown import alert, fenced, prose, shortened
from oloproof_ci.report import Report
from oloproof_ci.sections.attribution import headline_sentence
from oloproof_ci.sections.decisions import worst_first
from oloproof_ci.sections.room import Room
from oloproof_ci.sections.rule_sentence import rule_sentence, tells_new_errors
from oloproof_ci.sections.words import GATE_ICONS, SENTENCE, WARNING, base_name, counted, named, words

TOOL = "Oloproof"
#: How wide a line of an error may be.
_ERROR_WIDTH = 160

#: What is said when something other than a rule decided; `{base}` and `{detail}` are filled in, and `{effect}`
#: where a policy may only warn.
_OTHER = {
    "no_policy": "**No policy decides here, so nothing gates**; the figures below are only shown.",
    "partial_run": "**The evaluation did not come to its end**{detail}; {effect}.",
    "no_observations": "**Nothing could be judged**{detail}; {effect}.",
    "missingness_exceeds_policy": "**Too many cases errored**{detail}; {effect}.",
    "baseline_absent": "**There is nothing to compare with on {base}**{detail}.",
    "baseline_failed": "**The base {base} could not be measured**, so nothing is compared with it, and that blocks"
    "{detail}.",
}


def headline(report: Report, room: Room) -> str:
    """`## ⛔ Oloproof · support-rag · BLOCK`, the sentence, and the error when the base could not be measured."""
    gate = report.gate
    nothing_gates = gate.reason == "no_policy"
    icon = "⚪" if nothing_gates else GATE_ICONS[gate.state]
    state = f"{gate.state.value}, nothing gates" if nothing_gates else gate.state.value
    parts = [f"## {icon} {TOOL} · {words(report.project)} · {state}", _why(report)]
    if _long_detail(gate):
        parts.append(fenced(gate.detail, room.error, _ERROR_WIDTH))
    return "\n\n".join(parts)


def warnings_section(report: Report, room: Room) -> str:
    """What a reader must know before trusting the figures, in a box; empty when there is nothing."""
    items = [prose(shortened(warning.text, WARNING)) for warning in report.warnings[: room.warnings]]
    rest = len(report.warnings) - len(items)
    if rest:
        items.append(f"and {counted(rest, 'more warning')}")
    return alert("WARNING", items) if items else ""


def new_failure_counts(report: Report) -> dict[str, int]:
    """How many cases newly fail, for each pass/fail criterion; those of which no pair was observed are left out."""
    flips = report.comparison.flips if report.comparison else ()
    counts = {
        f.criterion: len(f.new_failures)
        for f in flips
        if f.new_failures or f.fixed or f.still_failing or f.still_passing
    }
    counts.update({c.criterion: len(c.new_failures) for c in report.failures if c.new_failures})
    return counts


def _why(report: Report) -> str:
    gate = report.gate
    decisive = worst_first(gate)
    ruled = bool(decisive) and gate.exit_code in (1, 3, 4)
    sentences, errors_told = [], False
    if ruled or (gate.reason is None and decisive and gate.state is not GateState.ALLOW):
        sentences += [rule_sentence(decisive[0], report), *_others(decisive[1:], gate)]
        errors_told = tells_new_errors(decisive[0], report)
    if gate.reason is not None:
        sentences.append(_other_sentence(report, first=not sentences))
    if not sentences:
        sentences.append(_all_pass(gate))
    if gate.reason is not None and not ruled:
        sentences += _rules_besides(report)
    sentences += _loosened_sentence(report)
    if not errors_told:
        sentences += _errors_sentence(report)
    sentences += _flips_sentence(report, decisive)
    sentences += _implicated(report)
    return " ".join(sentences)


def _others(rest: list[Decision], gate: Gate) -> list[str]:
    """What else did not pass, and whether the policy only warns."""
    sentences = []
    if rest:
        names = ", ".join(named(d.rule) for d in rest[:2])
        more = f" and {len(rest) - 2} more" if len(rest) > 2 else ""
        verb = "does" if len(rest) == 1 else "do"
        sentences.append(f"{names}{more} {verb} not pass either.")
    if gate.state is GateState.WARN:
        sentences.append("The policy warns of this and does not block.")
    return sentences


def _other_sentence(report: Report, *, first: bool) -> str:
    """What something other than a rule decided; bold when it comes first."""
    gate = report.gate
    where, said = _whose(report)
    said = "" if _long_detail(gate) else prose(shortened(said, SENTENCE).rstrip("."))
    detail = where + (f": {said}" if said else "")
    known = _OTHER.get(gate.reason or "")
    if known is None:
        known = f"**{words(gate.reason or '').replace('{', '{{').replace('}', '}}')}**{{detail}}."
    if not first:
        known = known.replace("**", "")
    blocks = gate.state is GateState.BLOCK
    effect = "that blocks, whatever the rules say" if blocks else "the policy only warns of that"
    return known.format(base=base_name(report), detail=detail, effect=effect)


def _whose(report: Report) -> tuple[str, str]:
    """Which of two runs the gate's detail is about, as the reader calls it, and the detail without the run's id."""
    detail = report.gate.detail
    for side, where in ((report.base, f" on {base_name(report)}"), (report.head, " here")):
        about = f"{side.run}: " if side else ""
        if about and detail.startswith(about):
            return where, detail.removeprefix(about)
    return "", detail


def _long_detail(gate: Gate) -> bool:
    """Whether the detail is an error to be shown as it was printed."""
    return bool(gate.detail.strip()) and (gate.reason == "baseline_failed" or "\n" in gate.detail.strip())


def _all_pass(gate: Gate) -> str:
    total = len(gate.decisions)
    passed = sum(d.state is RuleState.PASS for d in gate.decisions)
    if passed == total:
        few = {1: "**The one rule passes.**", 2: "**Both rules pass.**"}
        return few.get(total, f"**All {total} rules pass.**")
    return f"**{passed} of {counted(total, 'rule')} pass**, and the policy lets the others through."


def _rules_besides(report: Report) -> list[str]:
    """How the rules stand when there was nothing to compare with."""
    gate = report.gate
    if gate.reason != "baseline_absent":
        return []
    if not gate.decisions and report.policies:
        return ["The rules all compare two runs, so none is decided."]
    if not gate.decisions:
        return ["No policy decides either."]
    passed = sum(d.state is RuleState.PASS for d in gate.decisions)
    return [f"The rules on this run alone decide: {passed} of {len(gate.decisions)} pass."]


def _loosened_sentence(report: Report) -> list[str]:
    """That the pull request loosens its own test, in bold."""
    count = len(report.loosened)
    where = "in one place" if count == 1 else f"in {count} places"
    return [f"**This asks less than {base_name(report)} {where}**, listed below."] if count else []


def _errors_sentence(report: Report) -> list[str]:
    """How many cases gave no answer, in bold when they passed in the base."""
    errors = report.errors
    if errors.newly:
        passes, error = ("passes", "errors") if errors.newly == 1 else ("pass", "error")
        return [f"**{counted(errors.newly, 'case')} that {passes} on {base_name(report)} {error} here**."]
    return [f"{counted(errors.total, 'case')} errored here."] if errors.total else []


def no_new_failure(report: Report) -> str:
    """That no case newly fails, as far as the pairs were judged."""
    metrics = report.comparison.metrics if report.comparison else ()
    gaps = [metric for metric in metrics if metric.kind == "pass_fail" and metric.missing]
    if not gaps and not report.errors.newly:
        return f"No case that passes on {base_name(report)} fails here."
    if not gaps:
        return "No case that was judged on both sides newly fails."
    most = max(gaps, key=lambda metric: metric.missing)
    are = "is" if most.missing == 1 else "are"
    pairs = f"{counted(most.missing, 'pair')} of {named(most.criterion)} {are} missing"
    return f"No case that was judged on both sides newly fails, but {pairs}."


def _flips_sentence(report: Report, decisive: list[Decision]) -> list[str]:
    """How many cases newly fail, unless the rule's sentence said so."""
    if report.comparison is None:
        return []
    sentences = []
    base = base_name(report)
    if report.comparison.identical:
        sentences.append(f"Nothing that could change a result differs from {base}.")
    counts = new_failure_counts(report)
    if not counts or (decisive and decisive[0].kind == "new_failures"):
        return sentences
    told = [failures.criterion for failures in report.failures if failures.new_failures]
    criterion = told[0] if told else max(counts, key=lambda name: counts[name])
    count = counts[criterion]
    if not count:
        return [*sentences, no_new_failure(report)]
    passes, fails = ("passes", "fails") if count == 1 else ("pass", "fail")
    what = f"{counted(count, 'case')} that {passes} {named(criterion)} on {base} {fails} here."
    return [*sentences, what]


def _implicated(report: Report) -> list[str]:
    """The implicated changes, else the implicated factors, of the first criterion that has any."""
    changes = headline_sentence(report)
    if changes:
        return [changes]
    for failures in report.failures:
        if failures.factors:
            factors = ", ".join(f"{words(f.name)} ({f.count} of {f.total})" for f in failures.factors[:3])
            return [f"Implicated: {factors}."]
    return []
