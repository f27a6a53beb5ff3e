"""The pass rates that people would have found in a run, as far as their labels on its answers tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from oloproof.labels.checking import LabelledAnswers
from oloproof.labels.files import Label
from oloproof.labels.items import asks_the_same
from oloproof.labels.sampling import JudgedItem, items_of_run
from oloproof.records import State
from oloproof.run_records import Run
from oloproof.statistics.agreement import CorrectedRate, corrected_rate
from oloproof.store.results import Results
from oloproof.store.runs import Runs


def corrected_rates(
    run: Run, answers: Iterable[LabelledAnswers], runs: Runs, results: Results
) -> Iterator[CorrectedRate]:
    """Of each judge that is to be corrected, where the run's answers have labels."""
    for judge, labels in answers:
        if judge.corrected:
            counted = {label.item.id: label for label in labels if asks_the_same(judge, label.item)}
            found = _corrected(judge.criterion_name, items_of_run(run, judge, runs, results), counted)
            if found is not None:
                yield found


def _corrected(
    criterion: str, judged: Iterable[JudgedItem], labels: Mapping[str, Label]
) -> CorrectedRate | None:
    """Labels on answers that the run does not have any more count as missing: that they are gone says nothing of the
    others only if what was labelled and what has changed have nothing to do with each other."""
    passed = observed = unjudged = too_strict = agreed = too_lenient = 0
    missing = len(labels)
    for item, judgment in judged:
        label = labels.get(item.id)
        if judgment.state is State.EXCLUDED:
            missing -= label is not None
            continue
        if judgment.state is State.MISSING:
            unjudged += 1
            continue
        observed += 1
        passed += judgment.passed
        if label is None or label.verdict == "unsure":
            continue
        missing -= 1
        good = label.verdict == "pass"
        too_strict += good and not judgment.passed
        too_lenient += judgment.passed and not good
        agreed += good == judgment.passed
    return corrected_rate(criterion, passed, observed, unjudged, (too_strict, agreed, too_lenient), missing)
