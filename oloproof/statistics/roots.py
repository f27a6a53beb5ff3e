"""The ends of intervals as roots of convex functions, and what every interval checks of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

#: exp(700) is close to the largest double; an end that far below the largest value counts as 0.
DEEPEST = 700.0
#: Newton steps on a convex function with a bracket to fall back on; 60 bisections alone would be enough.
_MAX_STEPS = 200
#: A last step this small (relative change of the end) leaves an error of its square.
_LAST_STEP = 1e-9

#: From the depth s of a mean or rate m = exp(-s) below the largest value to how far it is beyond what the data
#: allow, as a difference of logarithms; and the derivative. Convex and increasing in s. For a mean: the logarithm of
#: the wealth that bets on a larger mean, less that of the threshold.
Excess: TypeAlias = Callable[[float], tuple[float, float]]


def root(excess: Excess, shallow: float) -> float:
    """Where a convex increasing function crosses zero, between `shallow` (there it is negative) and DEEPEST.

    Newton's method; from a point with positive excess its steps approach the root from one side. A step that
    leaves the bracket is replaced by a bisection. Returns DEEPEST when the root lies beyond it.
    """
    if excess(DEEPEST)[0] <= 0.0:
        return DEEPEST
    low, high = max(shallow, 0.0), DEEPEST
    depth = low
    for _ in range(_MAX_STEPS):
        value, slope = excess(depth)
        if value < 0.0:
            low = depth
        else:
            high = depth
        step = value / slope if slope > 0.0 else math.inf
        if abs(step) <= _LAST_STEP:
            return depth - step
        depth -= step
        if not low < depth < high:
            depth = (low + high) / 2
    return depth


def alpha_of(confidence: float) -> float:
    """How often an interval of a confidence may miss. Raises ValueError when the confidence is none."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be strictly between 0 and 1, got {confidence}")
    return 1.0 - confidence


def check_cases(observed: int, missing: float) -> None:
    """Raises ValueError when there is no case that an interval could be of."""
    if missing < 0:
        raise ValueError(f"missing must not be negative, got {missing}")
    if observed + missing == 0:
        raise ValueError("an interval needs at least one case, observed or missing")
