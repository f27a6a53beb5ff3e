"""What several samples of a question, and several questions about an answer, come to."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from oloproof.evaluators.judges import CitationSupportJudge
from oloproof.judges.asking import concluded, question_id, said, settled
from oloproof.judges.prompts import evidence
from oloproof.judges.providers import Answered
from oloproof.judges.verdicts import Verdict
from oloproof.records import FAILED, PASSED, Judgment, missing

YES, NO = Verdict("supported", "", ()), Verdict("not_supported", "", ())
UNUSABLE = missing("judge_unusable", "no JSON")
JUDGE = CitationSupportJudge(provider="openai", model="m")


@pytest.mark.parametrize(
    ("samples", "came"),
    [
        ([YES], "supported"),
        ([YES, YES, NO], "supported"),
        ([NO, UNUSABLE, NO], "not_supported"),
        ([YES, NO, UNUSABLE], missing("judge_undecided", "1 not_supported, 1 supported")),
        ([YES, NO], missing("judge_undecided", "1 not_supported, 1 supported")),
        ([UNUSABLE], UNUSABLE),
        ([YES, UNUSABLE], UNUSABLE),
        ([YES, UNUSABLE, UNUSABLE], UNUSABLE),
    ],
)
def test_most_samples_decide_and_too_few_do_not(
    samples: Sequence[Judgment | Verdict], came: Judgment | str
) -> None:
    assert settled(samples) == came


@pytest.mark.parametrize(
    ("found", "came"),
    [
        (["supported", "supported"], PASSED),
        (["supported", "not_supported"], FAILED),
        (["supported", UNUSABLE], UNUSABLE),
        ([UNUSABLE, "not_supported"], FAILED),
        ([UNUSABLE], UNUSABLE),
    ],
)
def test_what_is_not_known_of_one_passage_hides_no_failure_and_makes_no_pass(
    found: Sequence[Judgment | str], came: Judgment
) -> None:
    assert concluded(JUDGE, found) == came


class Shelf(dict[bytes, Answered]):
    """Kept answers."""

    def find(self, ids: Sequence[bytes]) -> dict[bytes, Answered]:
        return {each: self[each] for each in ids if each in self}

    def put(self, identity: bytes, model: str, answered: Answered, *, anew: bool) -> Answered:
        raise AssertionError

    def claim(self, identity: bytes) -> bool:
        raise AssertionError

    def unclaim(self, identity: bytes) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [("not_supported", "supported", "not_supported"), ("none", "supported", "supported"), ("none", "", None)],
)
def test_what_is_told_of_a_sample_is_what_counts_also_when_an_earlier_second_try_is_kept(
    first: str, second: str, counts: str | None
) -> None:
    """As after the first try was made anew."""
    passages = evidence([["kb", None, 1.0, "yes"]])
    question = JUDGE.question("q", "a", passages)
    kept = Shelf()
    for attempt, verdict in enumerate((first, second)):
        if verdict:
            text = json.dumps({"verdict": verdict, "quotes": [{"passage": 1, "text": "yes"}]})
            identity = question_id(JUDGE.asked_model(), question.prompt, 0, attempt)
            kept[identity] = Answered(text)
    ((told,),) = said(JUDGE, [question], kept)
    assert (told.verdict if isinstance(told, Verdict) else None) == counts
