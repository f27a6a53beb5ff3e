"""A judge's verdicts on the answers that people labelled, and how the two compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from oloproof.evaluators import JudgeEvaluator
from oloproof.execution.driver import Driver
from oloproof.execution.steps import StepsTo
from oloproof.judges.asking import Asking, Kept, said
from oloproof.judges.checks import JudgeCheck
from oloproof.judges.verdicts import Verdict
from oloproof.labels.files import Label
from oloproof.labels.items import Item, asks_the_same
from oloproof.records import State
from oloproof.statistics.agreement import Agreement


def labelled(judge: JudgeEvaluator, labels: Iterable[Label]) -> list[Label]:
    """The labels that say whether the judge is right: of the question that it asks now, and not unsure."""
    return [label for label in labels if label.verdict != "unsure" and asks_the_same(judge, label.item)]


class LabelledAnswers(NamedTuple):
    """A judge with the answers that people labelled for it."""

    judge: JudgeEvaluator
    labels: Sequence[Label]


def ask_about(answers: Iterable[LabelledAnswers], asking: Asking, driver: Driver) -> Counter[str]:
    """Ask judges about the labelled answers of which no answer of theirs is kept; gives how often there was no verdict,
    by the reason."""
    work = (
        (label.item.id, asking.judge(judge, label.item.questions(judge)))
        for judge, labels in answers
        for label in labelled(judge, labels)
    )
    return Counter(
        f"{judgment.reason}: {judgment.detail}" if judgment.detail else str(judgment.reason)
        for _, judgment in driver.run(work)
        if judgment.state is State.MISSING
    )


def check_judge(judge: JudgeEvaluator, labels: Sequence[Label], asking: Asking) -> JudgeCheck:
    """How the judge compares on what its kept answers say; nothing is asked."""
    counts: Counter[str] = Counter()
    unasked = repeated = steady = 0
    usable = labelled(judge, labels)
    for label in usable:
        found = known(asking.judge(judge, label.item.questions(judge)))
        if found is None:
            unasked += 1
            continue
        verdict = "missing" if found.state is not State.OBSERVED else "passed" if found.passed else "failed"
        counts[f"{'good' if label.verdict == 'pass' else 'bad'}_{verdict}"] += 1
        if judge.repeats > 1:
            same = _steady(judge, label.item, asking.kept)
            repeated += same is not None
            steady += same is True
    unsure = sum(label.verdict == "unsure" for label in labels)
    outdated = sum(not asks_the_same(judge, label.item) for label in labels if label.verdict != "unsure")
    agreement = Agreement(**counts)
    return JudgeCheck(judge.criterion_name, agreement, unasked, unsure, outdated, repeated, steady)


def known(steps: StepsTo[Any]) -> Any:
    """What steps end in when nothing has to be asked for it, else None."""
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    steps.close()
    return None


def _steady(judge: JudgeEvaluator, item: Item, kept: Kept) -> bool | None:
    """Whether each sample of each question came out the same; None when a question has fewer than two verdicts."""
    for samples in said(judge, item.questions(judge), kept):
        verdicts = [each.verdict for each in samples if isinstance(each, Verdict)]
        if len(verdicts) < 2:
            return None
        if len(set(verdicts)) > 1:
            return False
    return True


def configured_as(judge: JudgeEvaluator, configured: Iterable[JudgeEvaluator]) -> JudgeEvaluator:
    """The configured judge that judges the same as a recorded one: it knows what changes no verdict, such as where the
    key stands. The recorded one itself when there is none."""
    same = (each for each in configured if each.definition() == judge.definition())
    return next(same, judge)
