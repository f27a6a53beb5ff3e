"""The label of a failed case: one row of the design's table after the other, in the table's order."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from oloproof.diagnosis.labels import (
    JUDGES_RETRIEVAL,
    NO_GOLD_CONTEXT,
    CaseFacts,
    Label,
    Outcome,
    Strength,
    best_relevant_position,
    facts_of,
    label_of,
)
from oloproof.evaluators.relevance import RelevanceUnit
from oloproof.records import Candidate, Case, Execution, GoldPassage, Relevant

#: A case that recovered, with its one relevant unit in first place, in the context, beside another passage.
RECOVERED = CaseFacts(
    gold="passed",
    control="failed",
    positions=(1,),
    unit_mismatch=False,
    top_k=2,
    kept=2,
    others_in_context=True,
    gold_in_context=True,
)
RECOVERY = Strength.INTERVENTION_RECOVERY

TABLE: list[tuple[str, dict[str, Any], Label, str, Strength]] = [
    (
        "the gold run errored",
        {"gold": "missing"},
        Label.UNRESOLVED,
        "intervention_evidence_missing",
        Strength.NONE,
    ),
    (
        "the control errored",
        {"control": "missing"},
        Label.UNRESOLVED,
        "intervention_evidence_missing",
        Strength.NONE,
    ),
    ("the control passed", {"control": "passed"}, Label.UNSTABLE, "unstable_under_control", Strength.NONE),
    (
        "the control passed, and gold failed",
        {"control": "passed", "gold": "failed"},
        Label.UNSTABLE,
        "unstable_under_control",
        Strength.NONE,
    ),
    (
        "still fails with the gold passage",
        {"gold": "failed"},
        Label.GENERATION_FAILURE,
        "fails_with_gold_context",
        Strength.INTERVENTION_NON_RECOVERY,
    ),
    (
        "still fails, though nothing was retrieved",
        {"gold": "failed", "positions": (None,)},
        Label.GENERATION_FAILURE,
        "fails_with_gold_context",
        Strength.INTERVENTION_NON_RECOVERY,
    ),
    ("no labels", {"positions": ()}, Label.UNRESOLVED, "no_relevance_labels", Strength.NONE),
    (
        "chunk labels, retrieval without chunk ids",
        {"unit_mismatch": True, "positions": (None,)},
        Label.UNRESOLVED,
        "relevance_unit_mismatch",
        Strength.NONE,
    ),
    ("none retrieved", {"positions": (None, None)}, Label.RETRIEVAL_MISS, "relevant_not_retrieved", RECOVERY),
    ("the best below top_k", {"positions": (3,)}, Label.RANKED_OUT, "relevant_ranked_below_top_k", RECOVERY),
    (
        "the best below top_k, another not retrieved",
        {"positions": (None, 4)},
        Label.RANKED_OUT,
        "relevant_ranked_below_top_k",
        RECOVERY,
    ),
    (
        "within top_k, not in the context",
        {"positions": (2,), "kept": 1},
        Label.CONTEXT_ASSEMBLY_LOSS,
        "relevant_dropped_from_context",
        RECOVERY,
    ),
    (
        "within top_k, and the context is empty",
        {"positions": (1,), "kept": 0},
        Label.CONTEXT_ASSEMBLY_LOSS,
        "relevant_dropped_from_context",
        RECOVERY,
    ),
    (
        "dropped from the context, another not retrieved",
        {"positions": (None, 2), "kept": 1},
        Label.CONTEXT_ASSEMBLY_LOSS,
        "relevant_dropped_from_context",
        RECOVERY,
    ),
    (
        "part in the context, part not retrieved",
        {"positions": (1, None)},
        Label.RETRIEVAL_MISS,
        "part_of_relevant_not_retrieved",
        RECOVERY,
    ),
    (
        "part in the context, part ranked out",
        {"positions": (5, 1)},
        Label.RANKED_OUT,
        "part_of_relevant_ranked_below_top_k",
        RECOVERY,
    ),
    (
        "part in the context, part dropped",
        {"positions": (1, 2), "kept": 1},
        Label.CONTEXT_ASSEMBLY_LOSS,
        "part_of_relevant_dropped_from_context",
        RECOVERY,
    ),
    (
        "of several losses the earliest counts",
        {"positions": (1, 2, 7, None), "kept": 1},
        Label.RETRIEVAL_MISS,
        "part_of_relevant_not_retrieved",
        RECOVERY,
    ),
    (
        "ranked out comes before dropped",
        {"positions": (1, 2, 7), "kept": 1},
        Label.RANKED_OUT,
        "part_of_relevant_ranked_below_top_k",
        RECOVERY,
    ),
    (
        "all in the context, but another chunk of the document",
        {"gold_in_context": False},
        Label.UNRESOLVED,
        "gold_text_not_in_context",
        Strength.NONE,
    ),
    (
        "another chunk, and nothing else in the context",
        {"gold_in_context": False, "others_in_context": False},
        Label.UNRESOLVED,
        "gold_text_not_in_context",
        Strength.NONE,
    ),
    (
        "all in the context beside other passages",
        {},
        Label.CONTEXT_DISTRACTION,
        "recovered_with_relevant_in_context",
        RECOVERY,
    ),
    (
        "the context was the relevant passage alone",
        {"others_in_context": False},
        Label.UNRESOLVED,
        "recovered_with_relevant_alone",
        Strength.NONE,
    ),
]


@pytest.mark.parametrize(
    ("changes", "label", "reason", "strength"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE]
)
def test_each_row_of_the_table_gives_its_label(
    changes: dict[str, Any], label: Label, reason: str, strength: Strength
) -> None:
    assert label_of(replace(RECOVERED, **changes)) == (label, reason, strength)


def test_a_case_without_gold_context_is_not_diagnosed() -> None:
    assert NO_GOLD_CONTEXT == (Label.NOT_DIAGNOSED, "no_gold_context", Strength.NONE)


def test_a_criterion_of_the_retrieval_is_not_diagnosed() -> None:
    assert JUDGES_RETRIEVAL == (Label.NOT_DIAGNOSED, "criterion_judges_retrieval", Strength.NONE)


def test_every_combination_of_facts_has_exactly_one_label() -> None:
    outcomes: tuple[Outcome, ...] = ("passed", "failed", "missing")
    places = (None, 1, 2, 3)
    sets = [(), *((p,) for p in places), *product(places, places)]
    seen = set()
    for gold, control, positions, mismatch, kept, others, inside in product(
        outcomes, outcomes, sets, (True, False), (0, 1, 2), (True, False), (True, False)
    ):
        facts = CaseFacts(gold, control, positions, mismatch, 2, kept, others, inside)
        verdict = label_of(facts)
        assert (verdict.strength is Strength.NONE) == (verdict.label in (Label.UNRESOLVED, Label.UNSTABLE))
        if verdict.strength is RECOVERY:
            assert gold == "passed"
            assert control == "failed"
        seen.add(verdict.reason)
    assert seen == {row[3] for row in TABLE}


# ----------------------------------------------------------------------------------------- facts of a case


def make_case(relevant: list[Relevant] | None, gold: str = "the gold text") -> Case:
    passages = (GoldPassage("d1", gold, None),)
    return Case("c", {}, {}, {}, None if relevant is None else tuple(relevant), passages)


def make_execution(*names: str, top_k: int = 2, kept: int = 2) -> Execution:
    """Candidates by name, `d1` or `d1#a`."""
    candidates = []
    for name in names:
        doc_id, _, chunk_id = name.partition("#")
        candidates.append(Candidate(doc_id, chunk_id or None, None, None))
    return Execution(b"", tuple(candidates), top_k, kept, {})


def facts(
    case: Case, execution: Execution, unit: RelevanceUnit = "document", texts: tuple[str | None, ...] = ()
) -> CaseFacts:
    return facts_of(case, execution, texts, unit, "passed", "failed")


def document(name: str, grade: float = 1.0) -> Relevant:
    return Relevant(name, None, grade)


def test_positions_are_those_of_the_units_with_a_grade_above_zero() -> None:
    case = make_case([document("d9"), document("d2", 3.0), document("d1", 0.0)])
    assert facts(case, make_execution("d1", "d2", "d3")).positions == (None, 2)


def test_a_document_stands_where_its_first_chunk_stands() -> None:
    execution = make_execution("d1#a", "d2#a", "d2#b")
    assert facts(make_case([document("d2")]), execution).positions == (2,)


def test_with_chunk_units_another_chunk_of_the_document_is_another_unit() -> None:
    case = make_case([Relevant("d1", "b", 1.0)])
    found = facts(case, make_execution("d1#a", "d2#a", "d1#b"), "chunk")
    assert (found.positions, found.unit_mismatch, found.others_in_context) == ((3,), False, True)
    assert label_of(found).label is Label.RANKED_OUT


def test_chunk_labels_on_a_retrieval_of_whole_documents_are_a_mismatch() -> None:
    case = make_case([Relevant("d1", "b", 1.0)])
    found = facts(case, make_execution("d1", "d2"), "chunk")
    assert found.unit_mismatch
    assert label_of(found).reason == "relevance_unit_mismatch"


def test_an_empty_retrieval_is_a_miss_and_no_mismatch() -> None:
    case = make_case([Relevant("d1", "b", 1.0)])
    found = facts(case, make_execution(kept=0), "chunk")
    assert label_of(found).reason == "relevant_not_retrieved"


def test_labels_of_grade_zero_alone_are_no_labels() -> None:
    found = facts(make_case([document("d1", 0.0)]), make_execution("d1"))
    assert label_of(found).reason == "no_relevance_labels"


@pytest.mark.parametrize("relevant", [None, []])
def test_a_case_without_labels_has_no_positions(relevant: list[Relevant] | None) -> None:
    assert facts(make_case(relevant), make_execution("d1")).positions == ()


def test_others_in_the_context_are_passages_of_no_relevant_unit() -> None:
    case = make_case([document("d1"), document("d2")])
    assert not facts(case, make_execution("d1", "d2", "d3")).others_in_context
    assert facts(case, make_execution("d1", "d3", "d2")).others_in_context
    assert not facts(case, make_execution("d1", "d3", kept=1)).others_in_context


def test_a_gold_text_is_found_inside_a_passage_whatever_its_line_breaks() -> None:
    case = make_case([document("d1")])
    wrapped = "Before.  the gold\n   text, and after"
    assert facts(case, make_execution("d1"), texts=(None, wrapped)).gold_in_context
    assert not facts(case, make_execution("d1"), texts=("the gold", "text")).gold_in_context
    assert not facts(case, make_execution("d1"), texts=()).gold_in_context


def test_every_gold_text_has_to_stand_in_some_passage() -> None:
    two = (GoldPassage("d1", "first", None), GoldPassage("d2", "second", None))
    case = Case("c", {}, {}, {}, (document("d1"),), two)
    assert not facts(case, make_execution("d1"), texts=("first",)).gold_in_context
    assert facts(case, make_execution("d1", "d2"), texts=("the second", "the first")).gold_in_context


def test_the_best_relevant_position_is_the_smallest_of_any_relevant_unit() -> None:
    execution = make_execution("d3", "d2", "d1", "d2")
    assert (
        best_relevant_position(make_case([document("d1"), document("d2")]), execution.candidates, "document")
        == 2
    )
    assert best_relevant_position(make_case([document("d9")]), execution.candidates, "document") is None
    assert best_relevant_position(make_case(None), execution.candidates, "document") is None
