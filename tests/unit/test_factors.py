"""Implicated factors: what the labels of many cases point to, and the experiments that go with it."""

from __future__ import annotations

import pytest

from oloproof.diagnosis.factors import Factor, implicated_factors
from oloproof.diagnosis.labels import Label, Outcome, Strength
from oloproof.diagnosis.records import DiagnosedCase, Diagnosis
from oloproof.report.diagnosis_text import diagnosis_text, implicated_lines

RECOVERING = {
    Label.RETRIEVAL_MISS,
    Label.RANKED_OUT,
    Label.CONTEXT_ASSEMBLY_LOSS,
    Label.CONTEXT_DISTRACTION,
    Label.UNRESOLVED,
}


def diagnosed(
    name: str, label: Label, best: int | None = 1, top_k: int = 2, reason: str = "r"
) -> DiagnosedCase:
    gold: Outcome | None = "passed" if label in RECOVERING else "failed"
    control: Outcome | None = "passed" if label is Label.UNSTABLE else "failed"
    if label is Label.NOT_DIAGNOSED:
        gold = control = None
    return DiagnosedCase(name, label, reason, Strength.NONE, best, top_k, 1, gold, control)


def diagnosis(*labels: Label) -> Diagnosis:
    return of(*(diagnosed(f"c{number}", label) for number, label in enumerate(labels)))


def of(*cases: DiagnosedCase) -> Diagnosis:
    return Diagnosis("run_1", "correct", "gold-context", "run_2", ("run_3",), cases)


def names(found: Diagnosis) -> list[str]:
    return [factor.name for factor in implicated_factors(found)]


MISS, OUT, LOSS, NOISE = (
    Label.RETRIEVAL_MISS,
    Label.RANKED_OUT,
    Label.CONTEXT_ASSEMBLY_LOSS,
    Label.CONTEXT_DISTRACTION,
)
GENERATION, OPEN, UNSTABLE = Label.GENERATION_FAILURE, Label.UNRESOLVED, Label.UNSTABLE


@pytest.mark.parametrize(
    ("label", "name", "experiments"),
    [
        (OUT, "ranking depth", ("a reranker", "a larger top_k")),
        (MISS, "retrieval coverage", ("deeper retrieval", "another index or embedding")),
        (LOSS, "context budget", ("a larger token budget", "smaller chunks")),
        (NOISE, "context noise", ("a smaller top_k", "a reranker")),
    ],
)
def test_each_context_side_label_implicates_its_factor(
    label: Label, name: str, experiments: tuple[str, ...]
) -> None:
    assert implicated_factors(diagnosis(label, label, OPEN)) == (
        Factor(name, 2, 3, "recovered", experiments),
    )


def test_only_the_most_frequent_label_is_implicated() -> None:
    assert names(diagnosis(LOSS, LOSS, MISS)) == ["context budget"]


def test_ties_are_all_implicated_in_a_fixed_order() -> None:
    found = diagnosis(NOISE, LOSS, MISS, OUT)
    assert names(found) == ["ranking depth", "retrieval coverage", "context budget", "context noise"]


def test_context_side_factors_are_counted_out_of_what_recovered_and_generation_out_of_what_was_selected() -> (
    None
):
    found = implicated_factors(diagnosis(MISS, OPEN, GENERATION, GENERATION, GENERATION, Label.NOT_DIAGNOSED))
    assert [(factor.count, factor.total, factor.among) for factor in found] == [
        (1, 2, "recovered"),
        (3, 5, "selected"),
    ]


def test_generation_is_implicated_by_more_than_half_of_the_selected() -> None:
    assert names(diagnosis(GENERATION, MISS)) == ["retrieval coverage"]
    assert names(diagnosis(GENERATION, GENERATION, MISS)) == [
        "retrieval coverage",
        "generation with correct context",
    ]


@pytest.mark.parametrize("labels", [(), (OPEN, OPEN), (UNSTABLE,), (Label.NOT_DIAGNOSED,) * 3])
def test_without_a_label_that_tells_nothing_is_implicated(labels: tuple[Label, ...]) -> None:
    assert implicated_factors(diagnosis(*labels)) == ()


def test_unstable_cases_implicate_nothing_and_make_no_majority() -> None:
    assert names(diagnosis(UNSTABLE, UNSTABLE, GENERATION)) == []


def test_the_experiment_for_ranking_depth_is_the_deepest_best_position_seen() -> None:
    found = of(diagnosed("a", OUT, best=4), diagnosed("b", OUT, best=9), diagnosed("c", MISS, best=None))
    assert implicated_factors(found)[0].experiments == ("a reranker", "top_k = 9")


def test_a_case_that_lost_only_part_below_top_k_never_suggests_a_top_k_that_is_no_larger() -> None:
    part = diagnosed("a", OUT, best=1, reason="part_of_relevant_ranked_below_top_k")
    assert implicated_factors(of(part))[0].experiments == ("a reranker", "a larger top_k")
    assert implicated_factors(of(part, diagnosed("b", OUT, best=3)))[0].experiments == (
        "a reranker",
        "top_k = 3",
    )


def test_nothing_is_called_a_cause_except_to_deny_it() -> None:
    text = "\n".join(implicated_lines(diagnosis(NOISE, LOSS, MISS, OUT)))
    assert text.count("cause") == text.count("not an established cause") == 8
    assert "because" not in text


def test_the_text_speaks_of_parts_only_when_every_case_of_the_label_lost_a_part() -> None:
    part = diagnosed("a", MISS, reason="part_of_relevant_not_retrieved")
    whole = diagnosed("b", MISS, best=None, reason="relevant_not_retrieved")
    assert (
        "RETRIEVAL_MISS: 1 of 1, recovered; part of the relevant evidence was not retrieved"
        in diagnosis_text(of(part))
    )
    assert "RETRIEVAL_MISS: 2 of 2, recovered; no relevant evidence was retrieved" in diagnosis_text(
        of(part, whole)
    )


def test_cases_without_gold_context_are_counted_beside_the_selected() -> None:
    text = diagnosis_text(diagnosis(GENERATION, Label.NOT_DIAGNOSED))
    assert text.startswith("Selected: 1 failed case with gold context (observed; no population claim)\n")
    assert "\nNOT_DIAGNOSED: 1 failed case without gold context\n" in text


def test_a_diagnosis_of_nothing_names_no_child_runs() -> None:
    text = diagnosis_text(Diagnosis("run_1", "correct", "gold-context", None, (), ()))
    assert "Selected: 0 failed cases" in text
    assert "Child runs" not in text


def test_the_id_of_a_diagnosis_depends_on_what_it_found() -> None:
    assert diagnosis(MISS).id == diagnosis(MISS).id
    assert diagnosis(MISS).id != diagnosis(LOSS).id
