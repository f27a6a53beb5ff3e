"""The label of a failed case: one row of the design's table after the other, in the table's order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

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


#: The table once more, as the design has it: the first row whose condition holds says what is said. Recovered
#: are all that come so far down.
ROWS: list[tuple[Callable[[CaseFacts], bool], Label, str]] = [
    (
        lambda f: "missing" in (f.gold, f.control),
        Label.UNRESOLVED,
        "intervention_evidence_missing",
    ),
    (lambda f: f.control == "passed", Label.UNSTABLE, "unstable_under_control"),
    (lambda f: f.gold == "failed", Label.GENERATION_FAILURE, "fails_with_gold_context"),
    (lambda f: f.positions == (), Label.UNRESOLVED, "no_relevance_labels"),
    (lambda f: f.unit_mismatch, Label.UNRESOLVED, "relevance_unit_mismatch"),
    (lambda f: within(f, 99) == 0, Label.RETRIEVAL_MISS, "relevant_not_retrieved"),
    (lambda f: within(f, f.top_k) == 0, Label.RANKED_OUT, "relevant_ranked_below_top_k"),
    (lambda f: within(f, f.kept) == 0, Label.CONTEXT_ASSEMBLY_LOSS, "relevant_dropped_from_context"),
    (lambda f: within(f, 99) < len(f.positions), Label.RETRIEVAL_MISS, "part_of_relevant_not_retrieved"),
    (
        lambda f: within(f, f.top_k) < len(f.positions),
        Label.RANKED_OUT,
        "part_of_relevant_ranked_below_top_k",
    ),
    (
        lambda f: within(f, f.kept) < len(f.positions),
        Label.CONTEXT_ASSEMBLY_LOSS,
        "part_of_relevant_dropped_from_context",
    ),
    (lambda f: not f.gold_in_context, Label.UNRESOLVED, "gold_text_not_in_context"),
    (lambda f: f.others_in_context, Label.CONTEXT_DISTRACTION, "recovered_with_relevant_in_context"),
    (lambda f: True, Label.UNRESOLVED, "recovered_with_relevant_alone"),
]
STRENGTHS = {
    Label.UNRESOLVED: Strength.NONE,
    Label.UNSTABLE: Strength.NONE,
    Label.GENERATION_FAILURE: Strength.INTERVENTION_NON_RECOVERY,
}


def within(facts: CaseFacts, depth: int) -> int:
    """How many of the relevant units stand among the first `depth` candidates."""
    return sum(position is not None and position <= depth for position in facts.positions)


def test_every_combination_of_facts_has_the_label_of_the_first_row_that_holds() -> None:
    outcomes: tuple[Outcome, ...] = ("passed", "failed", "missing")
    places = (None, 1, 2, 3, 4)
    sets = [units for size in range(4) for units in product(places, repeat=size)]
    seen = set()
    for gold, control, positions, mismatch, kept, others, inside in product(
        outcomes, outcomes, sets, (True, False), (0, 1, 2, 3), (True, False), (True, False)
    ):
        facts = CaseFacts(gold, control, positions, mismatch, 3, kept, others, inside)
        label, reason = next((label, reason) for holds, label, reason in ROWS if holds(facts))
        assert label_of(facts) == (label, reason, STRENGTHS.get(label, RECOVERY)), facts
        seen.add(reason)
    assert seen == {row[3] for row in TABLE} == {reason for _, _, reason in ROWS}


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


# ------------------------------------------------------------------------------------------- properties

DOCUMENTS = ("d1", "d2", "d3", "d4")
CHUNKS = ("a", "b")


@st.composite
def recovered_cases(draw: st.DrawFn, unit: RelevanceUnit) -> tuple[Case, Execution, RelevanceUnit]:
    """A case with labels, and an execution of it, in documents or in chunks."""
    names = [(d, c) for d in DOCUMENTS for c in (CHUNKS if unit == "chunk" else (None,))]
    found = draw(st.lists(st.sampled_from(names), unique=True))
    wanted = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    top_k = draw(st.integers(1, 4))
    kept = draw(st.integers(0, min(top_k, len(found))))
    candidates = tuple(Candidate(d, c, None, None) for d, c in found)
    case = make_case([Relevant(d, c, 1.0) for d, c in wanted])
    return case, Execution(b"", candidates, top_k, kept, {}), unit


CASES = st.sampled_from(["document", "chunk"]).flatmap(recovered_cases)  # type: ignore[arg-type]


@given(CASES)
def test_a_label_never_contradicts_where_the_relevant_units_stand(
    drawn: tuple[Case, Execution, RelevanceUnit],
) -> None:
    case, execution, unit = drawn
    names = [(c.doc_id, c.chunk_id) for c in execution.candidates]
    ranks = [
        names.index((r.doc_id, r.chunk_id)) + 1 if (r.doc_id, r.chunk_id) in names else None
        for r in case.relevant or ()
    ]
    found = [rank for rank in ranks if rank is not None]
    in_context = sum(rank <= execution.kept for rank in found)
    verdict = label_of(facts(case, execution, unit, ("the gold text",)))
    if verdict.label is Label.RETRIEVAL_MISS:
        assert None in ranks
    if verdict.label is Label.RANKED_OUT:
        assert max(found) > execution.top_k
    if verdict.label is Label.CONTEXT_ASSEMBLY_LOSS:
        assert any(execution.kept < rank <= execution.top_k for rank in found)
    if verdict.label is Label.CONTEXT_DISTRACTION:
        assert in_context == len(ranks) < execution.kept
    if verdict.strength is RECOVERY:
        assert verdict.reason.startswith("part_of_") == (0 < in_context < len(ranks))
    assert best_relevant_position(case, execution.candidates, unit) == min(found, default=None)


@given(CASES, st.integers(0, 10))
def test_an_irrelevant_passage_below_top_k_changes_nothing(
    drawn: tuple[Case, Execution, RelevanceUnit], further: int
) -> None:
    case, execution, unit = drawn
    candidates = execution.candidates
    assume(len(candidates) >= execution.top_k)
    place = min(execution.top_k + further, len(candidates))
    another = Candidate("elsewhere", "a" if unit == "chunk" else None, None, None)
    more = replace(execution, candidates=(*candidates[:place], another, *candidates[place:]))
    for texts in ((), ("the gold text",)):
        assert label_of(facts(case, more, unit, texts)) == label_of(facts(case, execution, unit, texts))
