"""The label of a failed case from what was observed: one pure decision table, first match wins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from oloproof.evaluators.relevance import RelevanceUnit, smallest, unit_mismatch, unit_of, unit_positions
from oloproof.records import Candidate, Case, Execution


class Label(StrEnum):
    """What is said of a failed case, in the order in which reports print them."""

    RETRIEVAL_MISS = "RETRIEVAL_MISS"
    RANKED_OUT = "RANKED_OUT"
    CONTEXT_ASSEMBLY_LOSS = "CONTEXT_ASSEMBLY_LOSS"
    CONTEXT_DISTRACTION = "CONTEXT_DISTRACTION"
    GENERATION_FAILURE = "GENERATION_FAILURE"
    UNSTABLE = "UNSTABLE"
    UNRESOLVED = "UNRESOLVED"
    NOT_DIAGNOSED = "NOT_DIAGNOSED"


class Strength(StrEnum):
    """How strong the evidence for a label is."""

    NONE = "none"
    INTERVENTION_RECOVERY = "intervention_recovery"
    INTERVENTION_NON_RECOVERY = "intervention_non_recovery"
    REPLAY_CONFIRMED = "replay_confirmed"


#: What a re-execution came to. "missing": it errored, or gave nothing that could be judged.
Outcome = Literal["passed", "failed", "missing"]


class Verdict(NamedTuple):
    """A label with its reason code and strength."""

    label: Label
    reason: str
    strength: Strength


@dataclass(frozen=True)
class CaseFacts:
    """What the table reads of one failed case.

    `positions` holds the best 1-based position of each relevant unit, None for one that was not retrieved; it is
    empty when the case declares none. `kept` of the candidates made the context. `others_in_context` says whether
    a passage of no relevant unit stood in the context, `gold_in_context` whether each gold text stood in some
    passage of it.
    """

    gold: Outcome
    control: Outcome
    positions: tuple[int | None, ...]
    unit_mismatch: bool
    top_k: int
    kept: int
    others_in_context: bool
    gold_in_context: bool


NO_GOLD_CONTEXT = Verdict(Label.NOT_DIAGNOSED, "no_gold_context", Strength.NONE)
#: A gold context takes the place of the retrieval, so it says nothing of a criterion that judges the retrieval.
JUDGES_RETRIEVAL = Verdict(Label.NOT_DIAGNOSED, "criterion_judges_retrieval", Strength.NONE)

UNSTABLE = Verdict(Label.UNSTABLE, "unstable_under_control", Strength.NONE)


def label_of(facts: CaseFacts) -> Verdict:
    """The one label that the facts support."""
    if facts.gold == "missing" or facts.control == "missing":
        return Verdict(Label.UNRESOLVED, "intervention_evidence_missing", Strength.NONE)
    if facts.control == "passed":
        return UNSTABLE
    if facts.gold == "failed":
        return Verdict(
            Label.GENERATION_FAILURE, "fails_with_gold_context", Strength.INTERVENTION_NON_RECOVERY
        )
    if not facts.positions:
        return Verdict(Label.UNRESOLVED, "no_relevance_labels", Strength.NONE)
    if facts.unit_mismatch:
        return Verdict(Label.UNRESOLVED, "relevance_unit_mismatch", Strength.NONE)
    return _recovered(facts)


def _recovered(facts: CaseFacts) -> Verdict:
    """The case recovered with the gold context: at which stage was the evidence lost?"""
    found = [position for position in facts.positions if position is not None]
    if not found:
        return _lost(Label.RETRIEVAL_MISS, "relevant_not_retrieved")
    if min(found) > facts.top_k:
        return _lost(Label.RANKED_OUT, "relevant_ranked_below_top_k")
    if min(found) > facts.kept:
        return _lost(Label.CONTEXT_ASSEMBLY_LOSS, "relevant_dropped_from_context")
    if len(found) < len(facts.positions):
        return _lost(Label.RETRIEVAL_MISS, "part_of_relevant_not_retrieved")
    if max(found) > facts.top_k:
        return _lost(Label.RANKED_OUT, "part_of_relevant_ranked_below_top_k")
    if max(found) > facts.kept:
        return _lost(Label.CONTEXT_ASSEMBLY_LOSS, "part_of_relevant_dropped_from_context")
    if not facts.gold_in_context:
        return Verdict(Label.UNRESOLVED, "gold_text_not_in_context", Strength.NONE)
    if facts.others_in_context:
        return _lost(Label.CONTEXT_DISTRACTION, "recovered_with_relevant_in_context")
    return Verdict(Label.UNRESOLVED, "recovered_with_relevant_alone", Strength.NONE)


def _lost(label: Label, reason: str) -> Verdict:
    return Verdict(label, reason, Strength.INTERVENTION_RECOVERY)


def facts_of(
    case: Case,
    execution: Execution,
    context_texts: Iterable[str | None],
    unit: RelevanceUnit,
    gold: Outcome,
    control: Outcome,
) -> CaseFacts:
    """The facts of a failed case from its recorded execution and the outcomes of the re-executions."""
    positions = unit_positions(execution.candidates, case.relevant, unit)
    texts = [_folded(text) for text in context_texts if text]
    return CaseFacts(
        gold=gold,
        control=control,
        positions=tuple(positions.values()),
        unit_mismatch=unit_mismatch(execution.candidates, case.relevant, unit),
        top_k=execution.top_k,
        kept=execution.kept,
        others_in_context=any(unit_of(c, unit) not in positions for c in execution.context),
        gold_in_context=all(
            any(_folded(passage.text) in text for text in texts) for passage in case.gold_context or ()
        ),
    )


def best_relevant_position(case: Case, candidates: tuple[Candidate, ...], unit: RelevanceUnit) -> int | None:
    """The smallest position of any relevant unit in the recorded retrieval."""
    return smallest(unit_positions(candidates, case.relevant, unit))


def _folded(text: str) -> str:
    return " ".join(text.split())
