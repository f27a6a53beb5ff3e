"""A judge's verdicts on the answers that people labelled, and how the two compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from oloproof.evaluators import CitationSupportJudge, GroundednessJudge, JudgeEvaluator, RubricJudge
from oloproof.execution.steps import StepsTo
from oloproof.judges.asking import Asking
from oloproof.judges.checks import JudgeCheck
from oloproof.judges.verdicts import Verdict
from oloproof.labels.files import Label
from oloproof.labels.items import Item, asks_the_same
from oloproof.records import Judgment, State
from oloproof.statistics.agreement import Agreement

_JUDGES: dict[str, type[JudgeEvaluator]] = {
    "groundedness_judge": GroundednessJudge,
    "citation_support_judge": CitationSupportJudge,
    "rubric_judge": RubricJudge,
}


def judge_from(definition: Mapping[str, Any]) -> JudgeEvaluator | None:
    """The judge that a run recorded by its definition; None when it was no judge."""
    kind = _JUDGES.get(str(definition.get("type")))
    if kind is None:
        return None
    settings = {name: value for name, value in definition.items() if name not in ("code_version", "rubric")}
    if definition["rubric"] != kind.default_rubric:
        settings["rubric_text"] = definition["rubric"]
    return kind.model_validate(settings)


def labelled(judge: JudgeEvaluator, labels: Iterable[Label]) -> list[Label]:
    """The labels that say whether the judge is right: of the question that it asks now, and not unsure."""
    return [label for label in labels if label.verdict != "unsure" and asks_the_same(judge, label.item)]


def asking_about(
    judge: JudgeEvaluator, labels: Iterable[Label], asking: Asking
) -> Iterator[tuple[Item, StepsTo[Judgment]]]:
    """The steps that ask a judge about each labelled item; their answers are kept."""
    for label in labelled(judge, labels):
        yield label.item, asking.judge(judge, label.item.questions(judge))


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
        said = "missing" if found.state is not State.OBSERVED else "passed" if found.passed else "failed"
        counts[f"{'good' if label.verdict == 'pass' else 'bad'}_{said}"] += 1
        if judge.repeats > 1:
            same = _steady(judge, label.item, asking)
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


def _steady(judge: JudgeEvaluator, item: Item, asking: Asking) -> bool | None:
    """Whether each sample of each question came out the same; None when a question has fewer than two verdicts."""
    for question in item.questions(judge):
        samples = [known(asking.sample(judge, question, number)) for number in range(judge.repeats)]
        verdicts = [each.verdict for each in samples if isinstance(each, Verdict)]
        if len(verdicts) < 2:
            return None
        if len(set(verdicts)) > 1:
            return False
    return True
