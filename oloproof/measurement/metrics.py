"""Metrics of one run: a rate or a mean for each criterion, with its interval."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence

from oloproof.records import Interval, Judgment, Metric, State


class MetricSum:
    """One criterion's judgments, taken in any order; the figures do not depend on it."""

    def __init__(self, criterion: str) -> None:
        self.criterion = criterion
        self.values = array("d")
        self.missing = 0
        self.missing_reasons: Counter[str] = Counter()
        self.excluded: Counter[str] = Counter()
        #: False as soon as one observed case could have had a value between 0 and 1.
        self.binary = True

    def add(self, judgment: Judgment, binary: bool) -> None:
        """`binary`: whether this case's value could only be 0 or 1."""
        if judgment.state is State.OBSERVED:
            assert judgment.value is not None
            self.values.append(judgment.value)
            self.binary = self.binary and binary
        elif judgment.state is State.MISSING:
            self.missing += 1
            self.missing_reasons[judgment.reason or "unstated"] += 1
            self.binary = self.binary and binary
        else:
            self.excluded[judgment.reason or "unstated"] += 1

    def metric(self, confidence: float = 0.95, *, min_support: int = 1) -> Metric:
        """The metric; without an interval when fewer than `min_support` cases were observed or missing."""
        observed = len(self.values)
        total = math.fsum(self.values)
        support = observed + self.missing
        interval = None
        if support >= max(1, min_support):
            interval = interval_of(self.values, self.missing, self.binary, confidence)
        return Metric(
            criterion=self.criterion,
            kind="rate" if self.binary else "mean",
            total=total,
            observed=observed,
            missing=self.missing,
            excluded=dict(sorted(self.excluded.items())),
            estimate=total / observed if observed else None,
            interval=interval,
            missing_reasons=dict(sorted(self.missing_reasons.items())),
        )


def interval_of(values: Sequence[float], missing: int, binary: bool, confidence: float) -> Interval:
    """The interval of a rate (Clopper-Pearson) or of a mean of scores in [0, 1] (betting)."""
    from oloproof.statistics.betting import bounded_mean_betting
    from oloproof.statistics.binomial import clopper_pearson

    if binary:
        return clopper_pearson(round(math.fsum(values)), len(values), missing, confidence)
    return bounded_mean_betting(values, missing, confidence)
