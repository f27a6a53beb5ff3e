"""What an interval is made from: the results of a criterion over some cases, or its differences over some pairs.

Each kind gives its interval at any confidence and the p-values of a bound, which are the smallest alpha at which the
interval lies wholly above or below it. `missing` ones widen both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from oloproof.records import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Values: TypeAlias = "Sequence[float] | NDArray[np.float64]"


class Tested(Protocol):
    """What has p-values."""

    def p_above(self, bound: float) -> float: ...
    def p_below(self, bound: float) -> float: ...


class Evidence(Tested, Protocol):
    """See this module. `observed` counts what the estimate, None of nothing, is the mean of."""

    @property
    def observed(self) -> int: ...
    @property
    def missing(self) -> int: ...
    @property
    def estimate(self) -> float | None: ...
    def interval(self, confidence: float) -> Interval: ...


@dataclass(frozen=True)
class Rate:
    """How many of the observed cases passed."""

    passed: int
    observed: int
    missing: int = 0

    @property
    def estimate(self) -> float | None:
        return self.passed / self.observed if self.observed else None

    def interval(self, confidence: float) -> Interval:
        from oloproof.statistics.binomial import clopper_pearson

        return clopper_pearson(self.passed, self.observed, self.missing, confidence)

    def p_above(self, bound: float) -> float:
        from oloproof.statistics.binomial import clopper_pearson_p_above

        return clopper_pearson_p_above(self.passed, self.observed, self.missing, bound)

    def p_below(self, bound: float) -> float:
        from oloproof.statistics.binomial import clopper_pearson_p_below

        return clopper_pearson_p_below(self.passed, self.observed, self.missing, bound)


class Scores:
    """Scores in [0, 1], by betting."""

    #: The smallest value there can be; the largest is 1.
    lower = 0.0

    def __init__(self, values: Values, missing: int = 0) -> None:
        self.values, self.missing = values, missing

    @property
    def observed(self) -> int:
        return len(self.values)

    @property
    def estimate(self) -> float | None:
        values: Any = self.values
        return math.fsum(values) / len(values) if len(values) else None

    def interval(self, confidence: float) -> Interval:
        from oloproof.statistics.betting import bounded_mean_betting

        return bounded_mean_betting(self.values, self.missing, confidence)

    def p_above(self, bound: float) -> float:
        from oloproof.statistics.betting import betting_p_above

        return betting_p_above(self.values, self.missing, bound, self.lower, 1.0)

    def p_below(self, bound: float) -> float:
        from oloproof.statistics.betting import betting_p_below

        return betting_p_below(self.values, self.missing, bound, self.lower, 1.0)


class Differences(Scores):
    """Differences of pairs in [-1, 1], of scores or of pass/fail criteria."""

    lower = -1.0

    def interval(self, confidence: float) -> Interval:
        from oloproof.statistics.betting import paired_difference_betting

        return paired_difference_betting(self.values, self.missing, confidence)


@dataclass(frozen=True)
class Weighted:
    """Distinct scores or differences in ascending order, each as often as its count says; its p-values alone."""

    values: Values
    counts: Sequence[int]
    missing: int = 0
    lower: float = 0.0

    def p_above(self, bound: float) -> float:
        import numpy as np

        from oloproof.statistics.betting import betting_p_above

        counts = np.asarray(self.counts, dtype=float)
        return betting_p_above(self.values, self.missing, bound, self.lower, 1.0, counts)

    def p_below(self, bound: float) -> float:
        import numpy as np

        from oloproof.statistics.betting import betting_p_below

        counts = np.asarray(self.counts, dtype=float)
        return betting_p_below(self.values, self.missing, bound, self.lower, 1.0, counts)


@dataclass(frozen=True)
class ExactDifferences:
    """Pairs of a pass/fail criterion: how many became better and worse of those observed on both sides."""

    better: int
    worse: int
    observed: int
    missing: int = 0

    @property
    def estimate(self) -> float | None:
        return (self.better - self.worse) / self.observed if self.observed else None

    def interval(self, confidence: float) -> Interval:
        from oloproof.statistics.exact_difference import exact_paired_difference

        return exact_paired_difference(self.better, self.worse, self.observed, self.missing, confidence)

    def p_above(self, bound: float) -> float:
        from oloproof.statistics.exact_difference import exact_p_above

        return exact_p_above(self.better, self.worse, self.observed, self.missing, bound)

    def p_below(self, bound: float) -> float:
        from oloproof.statistics.exact_difference import exact_p_below

        return exact_p_below(self.better, self.worse, self.observed, self.missing, bound)


def lies_beyond(evidence: Tested, side: Literal["above", "below"], bound: float, alpha: float) -> bool:
    """Whether the whole interval that may miss with probability alpha lies above or below a bound."""
    if isinstance(evidence, ExactDifferences):
        from oloproof.statistics.exact_difference import exact_lies_above, exact_lies_below

        lies = exact_lies_above if side == "above" else exact_lies_below
        return lies(evidence.better, evidence.worse, evidence.observed, evidence.missing, bound, alpha)
    return (evidence.p_above if side == "above" else evidence.p_below)(bound) <= alpha
