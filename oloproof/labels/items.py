"""What a person and a judge both look at: an answer with its input and the passages that it is held against.

An item's digest covers what the verdict depends on: the question, the input, the answer, the passages, and the expected
value where the judge is shown it. It does not cover the model, nor the order in which the passages stood. So a label
stays valid as long as the same content is judged, by whichever model, in whichever run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from oloproof.canonical import canonical_json, digest
from oloproof.evaluators.judges import JudgeEvaluator, Question
from oloproof.judges.prompts import Evidence
from oloproof.records import Case, Execution, Judgment

#: What people are asked where the rubric is ours.
QUESTIONS = {
    "groundedness_judge": "Is every factual claim of the answer supported by the passages? Knowledge of your own does "
    "not count. pass: yes; fail: at least one claim is not; unsure: you cannot tell, or the answer claims nothing.",
    "citation_support_judge": "Does each cited passage support the claims for which the answer cites it? pass: yes; "
    "fail: at least one does not; unsure: you cannot tell.",
    "rubric_judge": "Does the answer meet the rubric? pass: yes; fail: no; unsure: you cannot tell.",
}


@dataclass(frozen=True)
class Item:
    """One answer to be judged. `judge` is the type of the judge, `rubric` the user's own or "". `groups` holds the
    passages of each question that the judge is asked: one group for groundedness, one a citation, an empty one for a
    rubric. `expected` is None unless the judge is shown it."""

    judge: str
    rubric: str
    input: Any
    answer: str
    groups: tuple[tuple[Evidence, ...], ...]
    expected: Any = None

    @cached_property
    def id(self) -> str:
        """The digest of what is judged, in hex."""
        groups = [sorted([each.name, each.text] for each in group) for group in self.groups]
        content = [self.judge, self.rubric, self.input, self.answer, sorted(groups), self.expected]
        return digest("judged item", canonical_json(content)).hex()

    @property
    def question(self) -> str:
        """What a person is asked."""
        asked = QUESTIONS[self.judge]
        return f"{asked}\n\nThe rubric:\n{self.rubric}" if self.rubric else asked

    @property
    def passages(self) -> list[Evidence]:
        """All passages of all questions, in their order."""
        found = {each.number: each for group in self.groups for each in group}
        return [found[number] for number in sorted(found)]

    def questions(self, judge: JudgeEvaluator) -> list[Question]:
        """What a judge is asked about it."""
        return [judge.question(self.input, self.answer, group, self.expected) for group in self.groups]

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"item": self.id, "judge": self.judge, "rubric": self.rubric}
        record |= {"input": self.input, "answer": self.answer}
        if self.expected is not None:
            record["expected"] = self.expected
        record["passages"] = [[each.number, each.name, each.text] for each in self.passages]
        record["groups"] = [[each.number for each in group] for group in self.groups]
        return record


def asks_the_same(judge: JudgeEvaluator, item: Item) -> bool:
    """Whether an item is about the question that the judge asks now."""
    shown = item.expected is not None
    return (item.judge, item.rubric, shown) == (judge.type, judge.own_rubric, judge.shows_expected)


def item_of(
    judge: JudgeEvaluator, case: Case, execution: Execution, context: Sequence[Sequence[Any]]
) -> Item | None:
    """What a judge looks at in an execution; None when there is nothing to ask. `context` holds doc_id, chunk_id, score
    and text of each passage."""
    questions = judge.questions(case, execution, context)
    answer = judge.answer_of(execution)
    if isinstance(questions, Judgment) or answer is None:
        return None
    groups = tuple(question.passages for question in questions)
    return Item(judge.type, judge.own_rubric, case.input, answer, groups, judge.shown_expected(case))


def item_from_json(record: Mapping[str, Any]) -> Item:
    """The item in a line of a sheet or of a file of labels. Raises ValueError that says what is wrong with it."""
    texts = {name: record.get(name) for name in ("item", "judge", "rubric", "answer")}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise ValueError(f"{name} is missing, or is no text")
    if texts["judge"] not in QUESTIONS:
        raise ValueError(f"judge must be one of {', '.join(QUESTIONS)}")
    if "input" not in record:
        raise ValueError("input is missing")
    passages = _passages(record.get("passages"))
    groups = record.get("groups")
    if not _is_groups(groups, passages):
        raise ValueError("groups must list the numbers of its passages")
    item = Item(
        str(texts["judge"]),
        str(texts["rubric"]),
        record["input"],
        str(texts["answer"]),
        tuple(tuple(passages[number] for number in group) for group in groups or ()),
        record.get("expected"),
    )
    if item.id != texts["item"]:
        raise ValueError(
            "what was judged differs from what its digest says; leave everything but verdicts as it is"
        )
    return item


def _passages(listed: Any) -> dict[int, Evidence]:
    found = {}
    for each in listed if isinstance(listed, list) else [()]:
        match each:
            case [int(number), str(name), str(text)] if type(number) is int and number not in found:
                found[number] = Evidence(number, name, text)
            case _:
                raise ValueError(
                    "passages must be a list of [number, name, text], each with a number of its own"
                )
    return found


def _is_groups(groups: Any, passages: Mapping[int, Evidence]) -> bool:
    return (
        isinstance(groups, list)
        and bool(groups)
        and all(isinstance(group, list) and all(_names(each, passages) for each in group) for group in groups)
    )


def _names(number: Any, passages: Mapping[int, Evidence]) -> bool:
    return type(number) is int and number in passages
