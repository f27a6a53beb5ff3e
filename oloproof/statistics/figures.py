"""How numbers are printed: estimates to the nearest, intervals outwards.

A printed interval always contains the computed one: lower ends are rounded down, upper ends up, and both
exactly, on the binary value of the float. Estimates are rounded half to even on the shortest decimal that
stands for the float, so 0.8665 is what it looks like. A zero never carries a minus sign.

Percentages and points (a difference times 100) have one decimal, scores three. NaN and infinities raise
ValueError.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from oloproof.records import Interval

#: Both kinds of figures are cut at the third decimal of the unscaled number; percent and points then move
#: the decimal point by two.
_STEP = Decimal("0.001")
#: Own context: what the surrounding program set for decimal must not change a figure.
_CONTEXT = Context(prec=400)


def percent(rate: float) -> str:
    """A rate in [0, 1] as `69.2%`."""
    return f"{_hundredfold(_nearest(rate))}%"


def score(value: float) -> str:
    """A score as `0.866`."""
    return f"{_nearest(value)}"


def points(difference: float) -> str:
    """A difference in [-1, 1] in points, as `+0.0` or `-23.1`."""
    return f"{_hundredfold(_nearest(difference)):+}"


def signed_score(difference: float) -> str:
    """A difference of scores as `-0.122`."""
    return f"{_nearest(difference):+}"


def percent_floor(rate: float) -> str:
    """A lower end of a rate as `75.2%`: rounded down, as in `percent_interval`."""
    return f"{_hundredfold(_rounded(Decimal(_finite(rate)), ROUND_FLOOR))}%"


def percent_ceiling(rate: float) -> str:
    """An upper end of a rate, rounded up."""
    return f"{_hundredfold(_rounded(Decimal(_finite(rate)), ROUND_CEILING))}%"


def points_ceiling(difference: float) -> str:
    """How far an interval of a difference reaches, in points without a sign, as `33.6`: rounded up."""
    return f"{_hundredfold(_rounded(Decimal(_finite(difference)), ROUND_CEILING))}"


def percent_interval(interval: Interval) -> str:
    """An interval of a rate as `[38.5%, 91.0%]`."""
    lower, upper = _outwards(interval)
    return f"[{_hundredfold(lower)}%, {_hundredfold(upper)}%]"


def score_interval(interval: Interval) -> str:
    """An interval of a mean score as `[0.506, 0.990]`."""
    lower, upper = _outwards(interval)
    return f"[{lower}, {upper}]"


def points_interval(interval: Interval) -> str:
    """An interval of a mean difference in points, as `[-33.6, +33.6]`."""
    lower, upper = _outwards(interval)
    return f"[{_hundredfold(lower):+}, {_hundredfold(upper):+}]"


def signed_score_interval(interval: Interval) -> str:
    """An interval of a mean difference of scores, as `[-0.336, +0.336]`."""
    lower, upper = _outwards(interval)
    return f"[{lower:+}, {upper:+}]"


def _nearest(value: float) -> Decimal:
    return _rounded(Decimal(repr(_finite(value))), ROUND_HALF_EVEN)


def _outwards(interval: Interval) -> tuple[Decimal, Decimal]:
    lower = _rounded(Decimal(_finite(interval.lower)), ROUND_FLOOR)
    return lower, _rounded(Decimal(_finite(interval.upper)), ROUND_CEILING)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"only finite numbers can be printed, got {value}")
    return float(value)  # without numpy's own repr


def _rounded(number: Decimal, rounding: str) -> Decimal:
    cut = number.quantize(_STEP, rounding=rounding, context=_CONTEXT)
    return cut if cut else cut.copy_abs()


def _hundredfold(number: Decimal) -> Decimal:
    return number.scaleb(2, context=_CONTEXT)
