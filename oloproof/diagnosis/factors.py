"""Implicated factors and candidate experiments: what the labels of many cases point to, and what could be tried.

A factor is implicated, never a cause: that cases recover under an intervention does not show why they failed.
"""

from __future__ import annotations

from dataclasses import dataclass

from oloproof.diagnosis.labels import Label
from oloproof.diagnosis.records import Diagnosis


@dataclass(frozen=True)
class Factor:
    """An implicated factor: in `count` of the `total` failures that `among` names (recovered or selected)."""

    name: str
    count: int
    total: int
    among: str
    experiments: tuple[str, ...]


RANKING_DEPTH = "ranking depth"
#: The context side, in the order in which factors are printed.
_CONTEXT_SIDE = (
    (Label.RANKED_OUT, RANKING_DEPTH),
    (Label.RETRIEVAL_MISS, "retrieval coverage"),
    (Label.CONTEXT_ASSEMBLY_LOSS, "context budget"),
    (Label.CONTEXT_DISTRACTION, "context noise"),
)


def implicated_factors(diagnosis: Diagnosis) -> tuple[Factor, ...]:
    """The most frequent context-side labels (ties count), and generation when more than half of the selected
    failed with the gold context."""
    counts = diagnosis.counts()
    recovered = diagnosis.recovered
    most = max((counts.get(label, 0) for label, _ in _CONTEXT_SIDE), default=0)
    factors = [
        Factor(name, counts[label], recovered, "recovered", _experiments(label, diagnosis))
        for label, name in _CONTEXT_SIDE
        if most and counts.get(label, 0) == most
    ]
    generation = counts.get(Label.GENERATION_FAILURE, 0)
    selected = len(diagnosis.selected)
    if 2 * generation > selected:
        experiments = ("a prompt or model change",)
        factors.append(
            Factor("generation with correct context", generation, selected, "selected", experiments)
        )
    return tuple(factors)


def sufficient_top_k(diagnosis: Diagnosis) -> int | None:
    """The smallest top_k that reaches the best relevant unit of every case that was ranked out; None when that is not
    known: where only part of the relevant units was ranked out, the best position is within top_k and says nothing."""
    beyond = [
        case.best_position
        for case in diagnosis.cases
        if case.label is Label.RANKED_OUT
        and case.best_position is not None
        and case.best_position > case.top_k
    ]
    return max(beyond, default=None)


def _experiments(label: Label, diagnosis: Diagnosis) -> tuple[str, ...]:
    if label is Label.RANKED_OUT:
        top_k = sufficient_top_k(diagnosis)
        return ("a reranker", "a larger top_k" if top_k is None else f"top_k = {top_k}")
    if label is Label.RETRIEVAL_MISS:
        return ("deeper retrieval", "another index or embedding")
    if label is Label.CONTEXT_ASSEMBLY_LOSS:
        return ("a larger token budget", "smaller chunks")
    return ("a smaller top_k", "a reranker")
