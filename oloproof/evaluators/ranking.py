"""Retrieval metrics: hit rate, recall, reciprocal rank, normalised discounted cumulative gain, all at k.

The conventions are those of trec_eval (linear gain, ideal over all judged units cut at k, uncapped recall),
with two differences: a case without relevant units is excluded with a reason, never scored 0, and a
retrieval that returned nothing is scored 0, never skipped. Positions are those of the order returned,
also when passages of the same document stand between them.

Sources: Manning, Raghavan & Schütze, "Introduction to Information Retrieval", 2008, ch. 8 (recall); Voorhees,
"The TREC-8 Question Answering Track Report", 1999 (reciprocal rank); Järvelin & Kekäläinen, "Cumulated
gain-based evaluation of IR techniques", ACM TOIS 2002 (ndcg), with the discount 1/log2(rank + 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from oloproof.evaluators.base import Evaluator, Kind, Reads
from oloproof.evaluators.relevance import (
    RelevanceUnit,
    Unit,
    find_positions,
    smallest,
    unit_grades,
    unit_mismatch,
)
from oloproof.records import FAILED, PASSED, Case, Execution, Judgment, State, excluded, missing

_NO_LABELS = excluded("no_relevance_labels")
_NO_POSITIVE = excluded("no_positive_relevance")
_MISMATCH = missing("relevance_unit_mismatch")


class RankingEvaluator(Evaluator):
    """What the retrieval metrics share. `k` is the number of top positions looked at.

    `relevance_unit` None stands for the project's default, which `with_unit` fills in; until then it means
    documents.
    """

    values: ClassVar[Kind] = "score"
    reads: ClassVar[Reads] = "retrieval"

    k: int = Field(ge=1)
    relevance_unit: RelevanceUnit | None = None

    @property
    def criterion_name(self) -> str:
        return self.criterion or f"{self.type}_at_{self.k}"

    @property
    def unit(self) -> RelevanceUnit:
        """The unit in effect."""
        return self.relevance_unit or "document"

    def with_unit(self, unit: RelevanceUnit) -> Self:
        """A copy in which the unit is fixed: its own where it has one, else the given one."""
        return self.model_copy(update={"relevance_unit": self.relevance_unit or unit})

    def definition(self) -> dict[str, Any]:
        return {**super().definition(), "relevance_unit": self.unit}

    def expected_key(self, case: Case) -> str:
        return case.relevant_json

    def assess(self, case: Case, execution: Execution) -> Judgment:
        if not case.relevant:
            return _NO_LABELS
        unit = self.unit
        grades = unit_grades(case.relevant, unit)
        if not grades:
            return _NO_POSITIVE
        positions = find_positions(execution.candidates[: self.k], grades, unit)
        value = self.value(positions, grades)
        if value == 0.0:
            mismatch = unit_mismatch(execution.candidates, case.relevant, unit)
            return _MISMATCH if mismatch else FAILED
        return PASSED if value == 1.0 else Judgment(State.OBSERVED, value)

    def value(self, positions: Mapping[Unit, int | None], grades: Mapping[Unit, float]) -> float:
        """The metric, in [0, 1], from the positions within k and the grades (> 0) of the relevant units."""
        raise NotImplementedError


class HitRate(RankingEvaluator):
    """Whether any relevant unit is within k; trec_eval's success."""

    values: ClassVar[Kind] = "pass_fail"

    type: Literal["hit_rate"] = "hit_rate"

    def value(self, positions: Mapping[Unit, int | None], grades: Mapping[Unit, float]) -> float:
        return 0.0 if smallest(positions) is None else 1.0


class Recall(RankingEvaluator):
    """The share of all relevant units that is within k; not capped at k / relevant."""

    type: Literal["recall"] = "recall"

    def value(self, positions: Mapping[Unit, int | None], grades: Mapping[Unit, float]) -> float:
        found = sum(position is not None for position in positions.values())
        return found / len(grades)

    def binary_on(self, case: Case) -> bool:
        return len(unit_grades(case.relevant, self.unit)) <= 1


class Mrr(RankingEvaluator):
    """1 / position of the first relevant unit within k, else 0; its mean is the mean reciprocal rank."""

    type: Literal["mrr"] = "mrr"

    def value(self, positions: Mapping[Unit, int | None], grades: Mapping[Unit, float]) -> float:
        first = smallest(positions)
        return 0.0 if first is None else 1.0 / first

    def binary_on(self, case: Case) -> bool:
        return self.k == 1


class Ndcg(RankingEvaluator):
    """Discounted gain of the first k, over that of the best possible order of all judged units.

    The gain is the grade itself. A perfect order gives exactly 1.0.
    """

    type: Literal["ndcg"] = "ndcg"

    def value(self, positions: Mapping[Unit, int | None], grades: Mapping[Unit, float]) -> float:
        largest = max(grades.values())  # gains relative to it: grades of any size cannot overflow the sum
        found = [
            (position, grades[unit] / largest) for unit, position in positions.items() if position is not None
        ]
        ideal = sorted(grades.values(), reverse=True)[: self.k]
        best = _discounted_gain((position, grade / largest) for position, grade in enumerate(ideal, start=1))
        return min(1.0, _discounted_gain(found) / best)


def _discounted_gain(gains: Iterable[tuple[int, float]]) -> float:
    """The sum of gain / log2(position + 1), exactly rounded, so that the order of the units is no matter."""
    return math.fsum(gain / math.log2(position + 1) for position, gain in gains)
