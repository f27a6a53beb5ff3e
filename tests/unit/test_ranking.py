"""Retrieval metrics: equal to trec_eval where both are defined, and our conventions where they differ."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import pytrec_eval
from pydantic import TypeAdapter, ValidationError

from oloproof.canonical import canonical_json
from oloproof.evaluators import AnyEvaluator, HitRate, Mrr, Ndcg, RankingEvaluator, Recall
from oloproof.evaluators.relevance import best_position, unit_mismatch, unit_positions
from oloproof.records import Candidate, Case, Execution, Judgment, Relevant, StageError, State


def passages(*names: str) -> tuple[Candidate, ...]:
    """Candidates in order, each `doc` or `doc#chunk`; all scores equal, so any re-sorting would show."""
    split = [name.partition("#") for name in names]
    return tuple(Candidate(doc, chunk or None, 0.5, None) for doc, _, chunk in split)


def labels(*names: str, **grades: float) -> tuple[Relevant, ...]:
    split = [name.partition("#") for name in names]
    return (
        *(Relevant(doc, chunk or None, 1.0) for doc, _, chunk in split),
        *(Relevant(doc, None, grade) for doc, grade in grades.items()),
    )


def case(relevant: tuple[Relevant, ...] | None) -> Case:
    return Case("a", {"question": "?"}, {}, {}, relevant, None)


def execution(candidates: tuple[Candidate, ...], **changes: Any) -> Execution:
    settings = {"top_k": 2, "kept": 2, "output": {"answer": "yes"}, **changes}
    return Execution(b"", candidates, **settings)


def judge(
    evaluator: RankingEvaluator, candidates: tuple[Candidate, ...], relevant: tuple[Relevant, ...] | None
) -> Judgment:
    return evaluator.judge(case(relevant), execution(candidates))


def value(
    evaluator: RankingEvaluator, candidates: tuple[Candidate, ...], relevant: tuple[Relevant, ...]
) -> float:
    judgment = judge(evaluator, candidates, relevant)
    assert judgment.state is State.OBSERVED
    assert judgment.value is not None
    return judgment.value


ALL_AT_3 = [HitRate(k=3), Recall(k=3), Mrr(k=3), Ndcg(k=3)]
every_metric = pytest.mark.parametrize("evaluator", ALL_AT_3, ids=lambda evaluator: evaluator.type)


# --------------------------------------------------------------------------------------- equal to trec_eval


def random_query(rng: random.Random) -> tuple[dict[str, int], list[str]]:
    """Graded judgments with a relevant document, and a ranking of judged and unjudged documents."""
    pool = [f"d{number}" for number in range(40)]
    judged = rng.sample(pool, rng.randint(1, 15))
    grades = {name: rng.choice([0, 0, 1, 1, 2, 3, 7]) for name in judged}
    grades[judged[0]] = rng.randint(1, 4)
    return grades, rng.sample(pool, rng.randint(1, 30))


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10, 50])
def test_metrics_equal_trec_eval_on_random_graded_data(k: int) -> None:
    rng = random.Random(k)
    queries = {f"q{number}": random_query(rng) for number in range(300)}
    measures = {f"success.{k}", f"recall.{k}", f"ndcg_cut.{k}", "recip_rank"}
    reference = pytrec_eval.RelevanceEvaluator({q: grades for q, (grades, _) in queries.items()}, measures)
    expected = reference.evaluate(
        {
            query: {name: float(-position) for position, name in enumerate(ranking)}
            for query, (_, ranking) in queries.items()
        }
    )
    for query, (grades, ranking) in queries.items():
        candidates, relevant = passages(*ranking), labels(**grades)
        reciprocal = expected[query]["recip_rank"]
        reciprocal_within_k = reciprocal if reciprocal * k > 1 - 1e-9 else 0.0
        for evaluator, figure in (
            (HitRate(k=k), expected[query][f"success_{k}"]),
            (Recall(k=k), expected[query][f"recall_{k}"]),
            (Mrr(k=k), reciprocal_within_k),
            (Ndcg(k=k), expected[query][f"ndcg_cut_{k}"]),
        ):
            assert value(evaluator, candidates, relevant) == pytest.approx(figure, abs=1e-12)


# ------------------------------------------------------------------------------- the conventions, row by row


def test_gain_is_the_grade_itself() -> None:
    got = value(Ndcg(k=2), passages("low", "high"), labels(low=1.0, high=3.0))
    assert got == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)), abs=1e-15)


def test_discount_is_one_over_log2_of_rank_plus_one() -> None:
    for position in range(1, 7):
        ranking = ["x"] * (position - 1) + ["a"]
        got = value(Ndcg(k=6), passages(*ranking), labels("a"))
        assert got == pytest.approx(1 / math.log2(position + 1), abs=1e-15)


def test_ideal_is_over_all_judged_units_also_those_never_retrieved() -> None:
    got = value(Ndcg(k=2), passages("a"), labels("a", "b", "c"))
    assert got == pytest.approx(1 / (1 + 1 / math.log2(3)), abs=1e-15)


def test_ideal_is_cut_at_k() -> None:
    assert value(Ndcg(k=2), passages("a", "b"), labels("a", "b", "c")) == 1.0


def test_several_chunks_of_a_document_count_once_at_the_best_rank() -> None:
    candidates = passages("x#1", "a#7", "a#8", "b#1")
    relevant = labels("a", "b")
    assert value(Recall(k=3), candidates, relevant) == 0.5
    assert value(Mrr(k=3), candidates, relevant) == 0.5
    got = value(Ndcg(k=4), candidates, relevant)
    assert got == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3)), abs=1e-15)


def test_repeated_passages_never_lift_ndcg_above_one() -> None:
    assert value(Ndcg(k=4), passages("a#1", "a#1", "a#2", "a#3"), labels("a")) == 1.0


def test_labels_naming_several_chunks_of_a_document_are_one_unit_with_the_highest_grade() -> None:
    relevant = (Relevant("a", "1", 1.0), Relevant("a", "2", 3.0), Relevant("b", "1", 2.0))
    assert value(Recall(k=1), passages("a#9", "b#1"), relevant) == 0.5
    assert value(Ndcg(k=2), passages("a#9", "b#1"), relevant) == 1.0


def test_with_unit_chunk_every_chunk_is_its_own_unit() -> None:
    candidates, relevant = passages("a#1", "a#2", "a#3"), labels("a#1", "a#3", "b#1")
    assert value(Recall(k=2, relevance_unit="chunk"), candidates, relevant) == pytest.approx(1 / 3)
    assert value(Recall(k=3, relevance_unit="chunk"), candidates, relevant) == pytest.approx(2 / 3)
    assert value(HitRate(k=1, relevance_unit="chunk"), candidates, labels("a#2")) == 0.0


def test_recall_is_over_all_relevant_units_not_capped_at_k() -> None:
    assert value(Recall(k=2), passages("a", "b"), labels("a", "b", "c", "d")) == 0.5


def test_reciprocal_rank_is_zero_beyond_k() -> None:
    assert value(Mrr(k=3), passages("x", "y", "a"), labels("a")) == pytest.approx(1 / 3)
    assert value(Mrr(k=2), passages("x", "y", "a"), labels("a")) == 0.0


@every_metric
def test_k_beyond_the_ranking_is_no_obstacle(evaluator: RankingEvaluator) -> None:
    deeper = evaluator.model_copy(update={"k": 1000})
    assert value(deeper, passages("a"), labels("a")) == 1.0


@every_metric
@pytest.mark.parametrize("relevant", [None, ()])
def test_case_without_labels_is_excluded(
    evaluator: RankingEvaluator, relevant: tuple[Relevant, ...] | None
) -> None:
    assert judge(evaluator, passages("a"), relevant) == Judgment(State.EXCLUDED, None, "no_relevance_labels")


@every_metric
def test_case_with_only_grade_zero_is_excluded(evaluator: RankingEvaluator) -> None:
    judgment = judge(evaluator, passages("a"), labels(a=0.0, b=0.0))
    assert judgment == Judgment(State.EXCLUDED, None, "no_positive_relevance")


@every_metric
def test_empty_retrieval_is_scored_zero(evaluator: RankingEvaluator) -> None:
    assert value(evaluator, (), labels("a")) == 0.0
    assert value(evaluator.with_unit("chunk"), (), labels("a#1")) == 0.0


@every_metric
def test_unjudged_and_grade_zero_units_are_not_relevant(evaluator: RankingEvaluator) -> None:
    assert value(evaluator, passages("unjudged", "b", "x"), labels(a=1.0, b=0.0)) == 0.0


@every_metric
@pytest.mark.parametrize("other", ["KB-1", "kb-1 ", "kb-01", "kb-1\u200b"])
def test_ids_are_compared_as_exact_strings(evaluator: RankingEvaluator, other: str) -> None:
    assert value(evaluator, passages(other), labels("kb-1")) == 0.0


@every_metric
def test_scores_never_reorder(evaluator: RankingEvaluator) -> None:
    candidates = (Candidate("a", None, 0.1, None), Candidate("b", None, 0.9, None))
    assert value(evaluator.model_copy(update={"k": 1}), candidates, labels("a")) == 1.0


# ------------------------------------------------------------------------------------- what else must hold


def test_perfect_order_is_exactly_one_whatever_the_grades() -> None:
    rng = random.Random(4)
    for _ in range(300):
        grades = {
            f"d{number}": rng.choice([0.1, 0.3, 1.0, 1e-320, 1e308]) for number in range(rng.randint(1, 9))
        }
        best = sorted(grades, key=lambda name: -grades[name])
        assert value(Ndcg(k=rng.randint(1, 12)), passages(*best), labels(**grades)) == 1.0


def test_every_value_lies_between_zero_and_one() -> None:
    rng = random.Random(5)
    for _ in range(300):
        grades, ranking = random_query(rng)
        for evaluator in ALL_AT_3:
            assert 0.0 <= value(evaluator, passages(*ranking), labels(**grades)) <= 1.0


def test_order_of_the_labels_changes_no_digit() -> None:
    rng = random.Random(6)
    for _ in range(100):
        grades, ranking = random_query(rng)
        relevant = list(labels(**grades))
        one = value(Ndcg(k=10), passages(*ranking), tuple(relevant))
        rng.shuffle(relevant)
        assert value(Ndcg(k=10), passages(*ranking), tuple(relevant)) == one


@every_metric
def test_labels_by_chunk_and_a_retrieval_without_chunk_ids_cannot_be_compared(
    evaluator: RankingEvaluator,
) -> None:
    judgment = judge(evaluator.with_unit("chunk"), passages("a", "b"), labels("a#1"))
    assert judgment == Judgment(State.MISSING, None, "relevance_unit_mismatch")
    assert value(evaluator.with_unit("chunk"), passages("a", "b#1"), labels("a#1")) == 0.0
    assert value(evaluator, passages("a", "b"), labels("a#1")) == 1.0


@every_metric
def test_generate_that_errored_does_not_hide_the_retrieval(evaluator: RankingEvaluator) -> None:
    error = StageError("generate", "timeout", "no answer within 30 s")
    errored = execution(passages("a"), output=None, error=error)
    assert evaluator.judge(case(labels("a")), errored) == Judgment(State.OBSERVED, 1.0)


@every_metric
def test_retrieve_that_errored_is_missing_with_the_kind_of_error(evaluator: RankingEvaluator) -> None:
    error = StageError("retrieve", "crash", "the worker died")
    errored = execution((), output=None, error=error, retrieved=False)
    assert evaluator.judge(case(labels("a")), errored) == Judgment(State.MISSING, None, "crash")


def test_criteria_name_themselves() -> None:
    assert HitRate(k=2).criterion_name == "hit_rate_at_2"
    assert Recall(k=2).criterion_name == "recall_at_2"
    assert Mrr(k=10).criterion_name == "mrr_at_10"
    assert Ndcg(k=6).criterion_name == "ndcg_at_6"
    assert Ndcg(k=6, criterion="ranking").criterion_name == "ranking"


def test_project_default_unit_fills_in_only_where_none_is_set() -> None:
    assert Ndcg(k=6).with_unit("chunk").unit == "chunk"
    assert Ndcg(k=6, relevance_unit="document").with_unit("chunk").unit == "document"
    assert Ndcg(k=6).unit == "document"


def test_definition_does_not_depend_on_whether_a_default_was_spelled_out() -> None:
    spelled = Ndcg(k=6, relevance_unit="document", criterion="ndcg_at_6")
    assert spelled.definition() == Ndcg(k=6).definition()
    assert Ndcg(k=6).definition() == {
        "type": "ndcg",
        "criterion": "ndcg_at_6",
        "k": 6,
        "relevance_unit": "document",
        "code_version": 1,
    }
    different = [Ndcg(k=5), Ndcg(k=6).with_unit("chunk"), Mrr(k=6), Ndcg(k=6, criterion="other")]
    texts = {canonical_json(evaluator.definition()) for evaluator in [Ndcg(k=6), *different]}
    assert len(texts) == 5


def test_judgment_depends_on_the_labels_only() -> None:
    one = Case("a", 1, {"answer": "x", "relevant": []}, {}, labels("a"), None)
    other = Case("b", 2, {"answer": "y"}, {"topic": "z"}, labels("a"), None)
    assert Ndcg(k=6).expected_key(one) == Ndcg(k=6).expected_key(other)
    assert Ndcg(k=6).expected_key(one) != Ndcg(k=6).expected_key(case(labels("b")))
    assert Ndcg(k=6).case_problem(case(None)) is None


def test_a_criterion_is_a_rate_only_where_values_can_only_be_zero_or_one() -> None:
    one, two, none = case(labels("a#1", "a#2")), case(labels("a#1", "b#1")), case(None)
    assert HitRate(k=2).binary_on(two)
    assert Recall(k=2).binary_on(one)
    assert not Recall(k=2, relevance_unit="chunk").binary_on(one)
    assert not Recall(k=2).binary_on(two)
    assert Recall(k=2).binary_on(none)  # excluded: it has no value that could be anything else
    assert Mrr(k=1).binary_on(two)
    assert not Mrr(k=2).binary_on(one)
    assert not Ndcg(k=1).binary_on(one)


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "ndcg"},
        {"type": "ndcg", "k": 0},
        {"type": "ndcg", "k": True},
        {"type": "ndcg", "k": "2"},
        {"type": "ndcg", "k": 2, "relevance_unit": "page"},
        {"type": "ndcg", "k": 2, "cutoff": 3},
        {"type": "ndgc", "k": 2},
        {"k": 2},
        {"type": "ndcg", "k": 2, "criterion": "a b"},
    ],
)
def test_wrong_settings_are_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(AnyEvaluator).validate_python(entry)


@pytest.mark.parametrize("entry", [{"type": "hit_rate", "k": 2}, {"type": "mrr", "k": 10}])
def test_an_entry_of_the_configuration_becomes_its_evaluator(entry: dict[str, Any]) -> None:
    assert TypeAdapter(AnyEvaluator).validate_python(entry).type == entry["type"]


def test_type_is_required_in_the_schema_of_a_configuration() -> None:
    definitions = TypeAdapter(AnyEvaluator).json_schema()["$defs"]
    assert definitions["HitRate"]["required"] == ["type", "k"]


# --------------------------------------------------------------------------------- positions of units


def test_positions_of_units_follow_the_order_returned() -> None:
    candidates = passages("x#1", "a#2", "a#1", "b#1")
    relevant = labels("a#1", "b#1", "c#1")
    assert unit_positions(candidates, relevant, "document") == {"a": 2, "b": 4, "c": None}
    chunks = unit_positions(candidates, relevant, "chunk")
    assert chunks == {("a", "1"): 3, ("b", "1"): 4, ("c", "1"): None}


def test_units_with_grade_zero_have_no_position() -> None:
    assert unit_positions(passages("a", "b"), labels(a=0.0, b=0.5), "document") == {"b": 2}


def test_best_position_is_the_smallest_or_none() -> None:
    assert best_position(passages("x", "b", "a"), labels("a", "b"), "document") == 2
    assert best_position(passages("x"), labels("a"), "document") is None
    assert best_position(passages("x"), None, "document") is None


def test_units_mismatch_only_when_one_side_alone_has_chunk_ids() -> None:
    assert unit_mismatch(passages("a"), labels("a#1"), "chunk")
    assert unit_mismatch(passages("a#1"), labels("a"), "chunk")
    assert not unit_mismatch(passages("a"), labels("a#1"), "document")
    assert not unit_mismatch(passages("a", "b#1"), labels("a#1"), "chunk")
    assert not unit_mismatch((), labels("a#1"), "chunk")
    assert not unit_mismatch(passages("a"), None, "chunk")
