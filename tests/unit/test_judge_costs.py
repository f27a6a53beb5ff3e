"""What judging takes, and what the answers that are kept from before spare."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oloproof.evaluators.judges import CitationSupportJudge, JudgeEvaluator, Question, RubricJudge
from oloproof.judges.asking import MAX_SPARED, Asking, question_id
from oloproof.judges.costs import JudgeCosts, Ledger, Price
from oloproof.judges.prompts import evidence
from oloproof.judges.providers import Answered, Tokens
from oloproof.records import FAILED
from oloproof.store.database import Database
from oloproof.store.judge_calls import JudgeCalls

RUBRIC = RubricJudge(
    provider="openai", model="large", criterion="short", rubric_text="One sentence.", repeats=2
)
CITATIONS = CitationSupportJudge(provider="openai", model="small")
PRICES = {"large": Price(2.0, 10.0)}
PASSAGES = evidence([["kb-1", None, 1.0, "Refunds take 14 days."]])


def keep(kept: JudgeCalls, judge: JudgeEvaluator, question: Question, sample: int, attempt: int) -> None:
    identity = question_id(judge.asked_model(), question.prompt, sample, attempt)
    kept.put(identity, judge.model, Answered("{}", Tokens(1000, 10)), anew=False)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[JudgeCalls]:
    database = Database(tmp_path / "store.sqlite3")
    yield JudgeCalls(database, lambda: 0.0)
    database.close()


def test_each_answer_that_a_judgment_rests_on_is_counted_once_however_many_there_are(
    kept: JudgeCalls,
) -> None:
    whole = Ledger(PRICES)
    asking = Asking(kept, Ledger(PRICES, whole))
    judgments = MAX_SPARED
    for number in range(judgments):
        question = RUBRIC.question({"question": str(number)}, "Yes.", ())
        for sample in range(2):
            keep(kept, RUBRIC, question, sample, 0)
        if not number:
            keep(kept, RUBRIC, question, 1, 1)  # the second sample was of no use at first
        asking.spared(RUBRIC, [question])
    answers = 2 * judgments + 1
    expected = JudgeCosts(avoided=answers, saved=pytest.approx(answers * (2000 + 100) / 1e6))
    assert whole.costs == expected
    assert asking.ledger.costs == expected


def test_a_question_that_two_judgments_rest_on_is_spared_twice_and_one_asked_twice_in_a_judgment_once(
    kept: JudgeCalls,
) -> None:
    asking = Asking(kept, Ledger(PRICES))
    question = CITATIONS.question("How long?", "14 days.", PASSAGES)
    keep(kept, CITATIONS, question, 0, 0)
    asking.spared(CITATIONS, [question, question])
    asking.spared(CITATIONS, [question])
    asking.spared(CITATIONS, FAILED)  # stood without a question
    assert asking.ledger.costs == JudgeCosts(avoided=2)
    asking.spared(CITATIONS, [question])
    assert asking.ledger.costs == JudgeCosts(avoided=3)


def test_answers_that_are_kept_no_more_are_not_counted(kept: JudgeCalls) -> None:
    asking = Asking(kept, Ledger(PRICES))
    asking.spared(CITATIONS, [CITATIONS.question("How long?", "14 days.", PASSAGES)])
    assert asking.ledger.costs == JudgeCosts()


def test_what_models_have_no_price_for_costs_nothing_that_is_known() -> None:
    ledger = Ledger(PRICES)
    ledger.paid("large", 2, Tokens(1_000_000, 100_000))
    ledger.paid("small", 1, Tokens(1_000_000, 0))
    ledger.paid("small", 1, Tokens())
    assert ledger.costs == JudgeCosts(calls=4, input=2_000_000, output=100_000, cost=3.0, unpriced=1)
