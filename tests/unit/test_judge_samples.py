"""What several samples of a question, and several questions about an answer, come to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from oloproof.evaluators.judges import CitationSupportJudge
from oloproof.judges.asking import concluded, settled
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
