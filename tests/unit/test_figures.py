"""How numbers are printed."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oloproof.records import Interval
from oloproof.statistics.betting import bounded_mean_betting, paired_difference_betting
from oloproof.statistics.binomial import clopper_pearson
from oloproof.statistics.figures import (
    percent,
    percent_interval,
    points,
    points_interval,
    score,
    score_interval,
    signed_score,
    signed_score_interval,
)

units = st.floats(0, 1)
differences = st.floats(-1, 1)


def interval(lower: float, upper: float) -> Interval:
    return Interval(lower, upper, 0.95, "any")


def ends(printed: str) -> tuple[Decimal, Decimal]:
    lower, upper = printed.strip("[]").replace("%", "").split(", ")
    return Decimal(lower), Decimal(upper)


# ------------------------------------------------------------------------------------- the seed's own figures


@pytest.mark.parametrize(
    ("passed", "rate", "printed"),
    [
        (9, "69.2%", "[38.5%, 91.0%]"),
        (12, "92.3%", "[63.9%, 99.9%]"),
        (13, "100.0%", "[75.2%, 100.0%]"),
    ],
)
def test_rates_of_the_example(passed: int, rate: str, printed: str) -> None:
    assert percent(passed / 13) == rate
    assert percent_interval(clopper_pearson(passed, 13)) == printed


def test_ndcg_of_the_example() -> None:
    values = [1.0] * 10 + [1 / math.log2(3)] * 2 + [0.0]
    assert score(math.fsum(values) / 13) == "0.866"
    assert score_interval(bounded_mean_betting(values)) == "[0.506, 0.990]"


def test_unchanged_pairs_of_the_example() -> None:
    unchanged = paired_difference_betting([0.0] * 13)
    assert points(0.0) == "+0.0"
    assert points_interval(unchanged) == "[-33.6, +33.6]"
    assert signed_score_interval(unchanged) == "[-0.336, +0.336]"


# ------------------------------------------------------------------------------------------------- estimates


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0.8665, "0.866"),
        (0.8675, "0.868"),
        (0.86651, "0.867"),
        (0.0005, "0.000"),
        (0.0, "0.000"),
        (1, "1.000"),
    ],
)
def test_scores_round_half_to_even_on_the_decimal_they_look_like(value: float, printed: str) -> None:
    assert score(value) == printed


@pytest.mark.parametrize(
    ("value", "printed"),
    [(0.0625, "6.2%"), (0.0635, "6.4%"), (0.9995, "100.0%"), (0.9994, "99.9%"), (1e-300, "0.0%")],
)
def test_percentages_have_one_decimal(value: float, printed: str) -> None:
    assert percent(value) == printed


@pytest.mark.parametrize(
    ("value", "printed"),
    [(-0.2305, "-23.0"), (-0.231, "-23.1"), (0.05, "+5.0"), (1.0, "+100.0"), (-1.0, "-100.0")],
)
def test_points_always_carry_a_sign(value: float, printed: str) -> None:
    assert points(value) == printed


@pytest.mark.parametrize("value", [0.0, -0.0, -1e-9, -0.0005, 5e-324])
def test_no_zero_carries_a_minus(value: float) -> None:
    assert points(value) == "+0.0"
    assert signed_score(value) == "+0.000"
    assert score(value) == "0.000"


def test_signed_score_has_three_decimals() -> None:
    assert signed_score(-0.1221) == "-0.122"
    assert signed_score(0.5) == "+0.500"


def test_numpy_floats_print_like_floats() -> None:
    assert score(np.float64(0.8665)) == "0.866"
    assert points(np.float64(-0.25)) == "-25.0"


@given(differences)
def test_a_printed_estimate_is_within_half_a_step(value: float) -> None:
    assert abs(Decimal(points(value)) - 100 * Decimal(value)) <= Decimal("0.0500001")
    assert abs(Decimal(signed_score(value)) - Decimal(value)) <= Decimal("0.000500001")


# ------------------------------------------------------------------------------------------------- intervals


@given(units, units)
def test_a_printed_interval_of_a_rate_contains_the_computed_one(one: float, other: float) -> None:
    computed = interval(min(one, other), max(one, other))
    lower, upper = ends(percent_interval(computed))
    assert 0 <= lower / 100 <= Decimal(computed.lower)
    assert Decimal(computed.upper) <= upper / 100 <= 1
    assert Decimal(computed.lower) - lower / 100 <= Decimal("0.001")
    assert upper / 100 - Decimal(computed.upper) <= Decimal("0.001")


@given(differences, differences)
def test_a_printed_interval_of_a_difference_contains_the_computed_one(one: float, other: float) -> None:
    computed = interval(min(one, other), max(one, other))
    for printed, scale in ((points_interval(computed), 100), (signed_score_interval(computed), 1)):
        lower, upper = ends(printed)
        assert -1 <= lower / scale <= Decimal(computed.lower)
        assert Decimal(computed.upper) <= upper / scale <= 1


def test_ends_are_rounded_on_the_binary_value() -> None:
    below, above = 0.29, 0.1  # the nearest doubles lie below and above these decimals
    assert Decimal(below) < Decimal("0.29")
    assert Decimal(above) > Decimal("0.1")
    assert percent_interval(interval(below, below)) == "[28.9%, 29.0%]"
    assert percent_interval(interval(above, above)) == "[10.0%, 10.1%]"


def test_ends_that_fit_exactly_stay() -> None:
    assert percent_interval(interval(0.25, 0.75)) == "[25.0%, 75.0%]"
    assert score_interval(interval(0.125, 0.875)) == "[0.125, 0.875]"
    assert points_interval(interval(-1.0, 1.0)) == "[-100.0, +100.0]"


def test_an_end_near_zero_keeps_its_side_and_never_prints_minus_zero() -> None:
    assert points_interval(interval(-1e-300, 1e-300)) == "[-0.1, +0.1]"
    assert points_interval(interval(-0.5, -1e-300)) == "[-50.0, +0.0]"
    assert signed_score_interval(interval(-0.0, 0.0)) == "[+0.000, +0.000]"


def test_decimal_settings_of_the_program_change_no_figure() -> None:
    with decimal.localcontext() as context:
        context.prec = 2
        context.rounding = decimal.ROUND_UP
        context.traps[decimal.Inexact] = True
        assert percent_interval(clopper_pearson(9, 13)) == "[38.5%, 91.0%]"
        assert percent(9 / 13) == "69.2%"
        assert points(-0.23079) == "-23.1"


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_never_printed(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        percent(value)
    with pytest.raises(ValueError, match="finite"):
        score_interval(interval(0.0, value))
