"""The intervals: golden vectors, what must hold for any data, and simulated coverage."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import comb

from oloproof.records import Interval
from oloproof.statistics.betting import (
    betting_p_above,
    betting_p_below,
    bounded_mean_betting,
    paired_difference_betting,
)
from oloproof.statistics.binomial import (
    clopper_pearson,
    clopper_pearson_p_above,
    clopper_pearson_p_below,
)

# A copy of the vectors made by a separate 40-digit program.
VECTORS = json.loads((Path(__file__).parents[1] / "data" / "intervals.json").read_text())

shares = st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.5, 1 / math.log2(3), 5e-324, 1e-17, 1 - 2**-53])
samples = st.lists(shares, min_size=1, max_size=40)
differences = st.lists(st.floats(-1, 1) | st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=40)
missing_counts = st.integers(0, 5)
confidences = st.floats(0.5, 0.999)


def interval_of(vector: dict) -> Interval:
    if vector["method"] == "clopper_pearson":
        return clopper_pearson(vector["passed"], vector["observed"], vector["missing"], vector["confidence"])
    if vector["method"] == "bounded_mean_betting":
        return bounded_mean_betting(
            vector["values"], vector["missing"], vector["confidence"], *map(float, vector["range"])
        )
    return paired_difference_betting(vector["values"], vector["missing"], vector["confidence"])


# ------------------------------------------------------------------------------------------------- vectors


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['method']}-{v['lower']:.6f}")
def test_golden_vector_is_reproduced(vector: dict) -> None:
    interval = interval_of(vector)
    assert interval.method == vector["method"]
    assert interval.confidence == vector["confidence"]
    assert interval.lower == pytest.approx(vector["lower"], abs=1e-12)
    assert interval.upper == pytest.approx(vector["upper"], abs=1e-12)


def test_one_value_has_a_closed_form() -> None:
    # The mean of 1 - f + f * x / m over the bets, whose fractions average 1/2, is 40 at the lower end.
    interval = bounded_mean_betting([0.3])
    assert interval.lower == pytest.approx(0.5 * 0.3 / 39.5, rel=1e-14)
    assert 1 - interval.upper == pytest.approx(0.5 * 0.7 / 39.5, rel=1e-13)


def log_wealth(values: np.ndarray, mean: float) -> float:
    """The hedged bet on a larger mean, straight from its definition."""
    wealths = [
        np.log1p(bet / 21 / mean * (values - mean)).sum() if mean else math.inf for bet in range(1, 21)
    ]
    top = max(wealths)
    return top + math.log(sum(math.exp(wealth - top) for wealth in wealths) / 20)


@pytest.mark.parametrize("spread", [0.02, 1.0, 30.0])
@pytest.mark.parametrize("size", [300, 600, 5000])
def test_many_distinct_values_end_exactly_where_the_wealth_reaches_the_threshold(
    size: int, spread: float
) -> None:
    """Leaving out negligible bets, above 512 distinct values, must not move an end."""
    values = np.random.default_rng(5).random(size) ** spread
    interval = bounded_mean_betting(values)
    assert log_wealth(values, interval.lower) == pytest.approx(math.log(40), abs=1e-7)
    assert log_wealth(1 - values, 1 - interval.upper) == pytest.approx(math.log(40), abs=1e-7)


# ---------------------------------------------------------------------------------- what holds for any data


@given(samples, missing_counts, confidences)
def test_interval_contains_the_mean_and_has_width(
    values: list[float], missing: int, confidence: float
) -> None:
    interval = bounded_mean_betting(values, missing, confidence)
    assert 0.0 <= interval.lower <= math.fsum(values) / len(values) <= interval.upper <= 1.0
    assert interval.lower < interval.upper


@given(differences, missing_counts, confidences)
def test_difference_interval_contains_the_mean_and_has_width(
    values: list[float], missing: int, confidence: float
) -> None:
    interval = paired_difference_betting(values, missing, confidence)
    assert -1.0 <= interval.lower < interval.upper <= 1.0
    mean = math.fsum(values) / len(values)
    assert interval.lower <= mean <= interval.upper


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), missing_counts)
def test_rate_interval_contains_the_rate_and_has_width(counts: tuple[int, int], missing: int) -> None:
    passed, observed = counts
    interval = clopper_pearson(passed, observed, missing)
    assert 0.0 <= interval.lower <= passed / observed <= interval.upper <= 1.0
    assert interval.lower < interval.upper


@given(samples, st.randoms())
def test_order_of_the_cases_changes_no_digit(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert bounded_mean_betting(shuffled) == bounded_mean_betting(values)


def test_order_of_thousands_of_cases_changes_no_digit() -> None:
    rng = np.random.default_rng(11)
    values = rng.random(3000)
    assert bounded_mean_betting(rng.permutation(values)) == bounded_mean_betting(values)


@given(samples, confidences, confidences)
def test_more_confidence_never_narrows(values: list[float], one: float, other: float) -> None:
    narrow = bounded_mean_betting(values, confidence=min(one, other))
    wide = bounded_mean_betting(values, confidence=max(one, other))
    assert wide.lower <= narrow.lower + 1e-12
    assert wide.upper >= narrow.upper - 1e-12


@given(st.integers(0, 30), confidences, confidences)
def test_more_confidence_never_narrows_a_rate(passed: int, one: float, other: float) -> None:
    narrow = clopper_pearson(passed, 30, confidence=min(one, other))
    wide = clopper_pearson(passed, 30, confidence=max(one, other))
    assert wide.lower <= narrow.lower + 1e-12
    assert wide.upper >= narrow.upper - 1e-12


@given(samples, missing_counts)
def test_a_missing_case_never_narrows(values: list[float], missing: int) -> None:
    fewer = bounded_mean_betting(values, missing)
    more = bounded_mean_betting(values, missing + 1)
    assert more.lower <= fewer.lower
    assert more.upper >= fewer.upper


@given(samples, missing_counts)
def test_missing_counts_as_the_worst_for_the_lower_end_and_the_best_for_the_upper(
    values: list[float], missing: int
) -> None:
    interval = bounded_mean_betting(values, missing)
    assert interval.lower == bounded_mean_betting([*values, *[0.0] * missing]).lower
    assert interval.upper == bounded_mean_betting([*values, *[1.0] * missing]).upper


@given(differences, missing_counts)
def test_missing_pair_counts_as_minus_one_and_plus_one(values: list[float], missing: int) -> None:
    interval = paired_difference_betting(values, missing)
    assert interval.lower == paired_difference_betting([*values, *[-1.0] * missing]).lower
    assert interval.upper == paired_difference_betting([*values, *[1.0] * missing]).upper


@given(st.integers(0, 20), missing_counts)
def test_missing_case_of_a_rate_counts_as_failed_and_as_passed(passed: int, missing: int) -> None:
    interval = clopper_pearson(passed, 20, missing)
    assert interval.lower == clopper_pearson(passed, 20 + missing).lower
    assert interval.upper == clopper_pearson(passed + missing, 20 + missing).upper


@given(differences)
def test_swapping_baseline_and_candidate_mirrors_the_interval_exactly(values: list[float]) -> None:
    interval = paired_difference_betting(values)
    swapped = paired_difference_betting([-value for value in values])
    assert (swapped.lower, swapped.upper) == (-interval.upper, -interval.lower)


@given(samples)
def test_scale_of_the_scores_does_not_matter(values: list[float]) -> None:
    interval = bounded_mean_betting(values)
    scaled = bounded_mean_betting([4 * value + 1 for value in values], lower=1.0, upper=5.0)
    assert scaled.lower == pytest.approx(4 * interval.lower + 1, abs=1e-12)
    assert scaled.upper == pytest.approx(4 * interval.upper + 1, abs=1e-12)


# ------------------------------------------------------------------------------------------ degenerate input


@pytest.mark.parametrize("size", [1, 2, 13, 5000, 100_000])
def test_all_zeros_reach_down_to_zero_and_leave_room_above(size: int) -> None:
    interval = bounded_mean_betting([0.0] * size)
    assert interval.lower == 0.0
    assert 0.0 < interval.upper < 1.0


@pytest.mark.parametrize("size", [1, 2, 13, 5000, 100_000])
def test_all_ones_reach_up_to_one_and_leave_room_below(size: int) -> None:
    interval = bounded_mean_betting([1.0] * size)
    assert interval.upper == 1.0
    assert 0.0 < interval.lower < 1.0


@pytest.mark.parametrize("value", [5e-324, 2.3e-308, 1e-200, 1e-17, 0.5, 1 - 2**-53])
@pytest.mark.parametrize("zeros", [0, 1, 1000, 99_999])
def test_extreme_values_end_without_overflow_or_nan(value: float, zeros: int) -> None:
    interval = bounded_mean_betting([value] + [0.0] * zeros)
    assert 0.0 <= interval.lower <= value / (zeros + 1) <= interval.upper <= 1.0
    assert interval.upper < 1.0 or value > 0.99


def test_a_hundred_thousand_distinct_values_end() -> None:
    values = np.random.default_rng(2).random(100_000)
    interval = bounded_mean_betting(values)
    assert interval.lower < values.mean() < interval.upper
    assert interval.upper - interval.lower < 0.012


def test_minus_zero_is_zero() -> None:
    assert bounded_mean_betting([-0.0, 1.0]) == bounded_mean_betting([0.0, 1.0])


def test_only_missing_cases_say_nothing() -> None:
    assert bounded_mean_betting([], missing=3)[:2] == (0.0, 1.0)
    assert paired_difference_betting([], missing=3)[:2] == (-1.0, 1.0)
    assert clopper_pearson(0, 0, missing=3)[:2] == (0.0, 1.0)


def test_no_case_at_all_is_refused() -> None:
    for make in (
        lambda: bounded_mean_betting([]),
        lambda: paired_difference_betting([]),
        lambda: clopper_pearson(0, 0),
    ):
        with pytest.raises(ValueError, match="at least one case"):
            make()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e-9, 1.0000001])
def test_value_out_of_range_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="must lie in"):
        bounded_mean_betting([0.5, value])


def test_difference_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="must lie in"):
        paired_difference_betting([0.0, -1.1])


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 95.0, math.nan])
def test_confidence_outside_zero_and_one_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        bounded_mean_betting([0.5], confidence=confidence)
    with pytest.raises(ValueError, match="confidence"):
        clopper_pearson(1, 2, confidence=confidence)


def test_counts_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(ValueError, match="passed"):
        clopper_pearson(3, 2)
    with pytest.raises(ValueError, match="passed"):
        clopper_pearson(-1, 2)
    with pytest.raises(ValueError, match="missing"):
        clopper_pearson(1, 2, missing=-1)
    with pytest.raises(ValueError, match="missing"):
        bounded_mean_betting([0.5], missing=-1)
    with pytest.raises(ValueError, match="range"):
        bounded_mean_betting([0.5], lower=1.0, upper=1.0)
    with pytest.raises(ValueError, match="one-dimensional"):
        bounded_mean_betting(np.zeros((2, 2)))


# ------------------------------------------------------------------------------------------------ p-values


@given(samples, missing_counts, st.floats(0.001, 0.999))
def test_a_p_value_is_the_alpha_at_which_the_interval_leaves_the_bound(
    values: list[float], missing: int, bound: float
) -> None:
    above, below = betting_p_above(values, missing, bound), betting_p_below(values, missing, bound)
    assert max(above, below) == 1.0
    if 1e-9 < above < 0.99:
        assert bounded_mean_betting(values, missing, 1 - above * 0.99).lower <= bound
        assert bounded_mean_betting(values, missing, 1 - above * 1.01).lower >= bound
    if 1e-9 < below < 0.99:
        assert bounded_mean_betting(values, missing, 1 - below * 0.99).upper >= bound
        assert bounded_mean_betting(values, missing, 1 - below * 1.01).upper <= bound


@given(
    st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    missing_counts,
    st.floats(0.001, 0.999),
)
def test_a_p_value_of_a_rate_is_the_alpha_at_which_the_interval_leaves_the_bound(
    counts: tuple[int, int], missing: int, bound: float
) -> None:
    above = clopper_pearson_p_above(*counts, missing, bound)
    below = clopper_pearson_p_below(*counts, missing, bound)
    assert max(above, below) == 1.0
    if 1e-9 < above < 0.99:
        assert clopper_pearson(*counts, missing, 1 - above * 0.99).lower <= bound
        assert clopper_pearson(*counts, missing, 1 - above * 1.01).lower >= bound
    if 1e-9 < below < 0.99:
        assert clopper_pearson(*counts, missing, 1 - below * 0.99).upper >= bound
        assert clopper_pearson(*counts, missing, 1 - below * 1.01).upper <= bound


def test_at_the_ends_of_the_scale_p_values_are_exact() -> None:
    assert clopper_pearson_p_above(1, 5, 0, 0.0) == betting_p_above([0, 1.0], 0, 0.0) == 0.0
    assert clopper_pearson_p_above(0, 5, 2, 0.0) == betting_p_above([0.0], 3, 0.0) == 1.0
    assert clopper_pearson_p_below(4, 5, 0, 1.0) == betting_p_below([0.5], 0, 1.0) == 0.0
    assert clopper_pearson_p_below(5, 5, 1, 1.0) == betting_p_below([1.0], 1, 1.0) == 1.0
    assert betting_p_below([-1.0, 0.0], 0, 1.0, -1.0, 1.0) == 0.0


# --------------------------------------------------------------------------------------------------- speed


def test_importing_the_module_loads_neither_numpy_nor_scipy() -> None:
    program = (
        "import sys, oloproof.statistics.betting, oloproof.statistics.exact_difference\n"
        "import oloproof.statistics.binomial, oloproof.statistics.figures\n"
        "sys.exit(bool({'numpy', 'scipy'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_ten_thousand_distinct_values_take_milliseconds() -> None:
    """20 ms is promised; the best of several runs, so that a busy machine does not fail the test."""
    values = np.random.default_rng(1).random(10_000).tolist()
    bounded_mean_betting(values)
    seconds = []
    for _ in range(7):
        start = time.perf_counter()
        bounded_mean_betting(values)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.020


# ------------------------------------------------------------------------------------------------ coverage

CONFIDENCE = 0.9
SIZES = [5, 13, 50, 200]
REPEATS = 1500
#: Four standard errors of a simulated coverage at the nominal level.
MONTE_CARLO = 4 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / REPEATS)


def binomial_weights(size: int, rate: float) -> np.ndarray:
    counts = np.arange(size + 1)
    return comb(size, counts) * rate**counts * (1 - rate) ** (size - counts)


def covered(interval: Interval, truth: float) -> bool:
    return interval.lower <= truth <= interval.upper


@pytest.mark.parametrize("size", SIZES)
def test_rate_interval_covers_every_rate(size: int) -> None:
    """Exact: every number of passes, weighted with its probability."""
    intervals = [clopper_pearson(passed, size, confidence=CONFIDENCE) for passed in range(size + 1)]
    for rate in np.linspace(0.001, 0.999, 333):
        hits = [covered(interval, rate) for interval in intervals]
        assert binomial_weights(size, rate) @ hits >= CONFIDENCE


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.0, 0.02), (0.98, 1.0), (0.3, 0.9)])
def test_betting_interval_covers_every_two_point_distribution(size: int, low: float, high: float) -> None:
    """Exact as well: two-point distributions are what breaks intervals made from a variance estimate."""
    intervals = [
        bounded_mean_betting([low] * (size - count) + [high] * count, confidence=CONFIDENCE)
        for count in range(size + 1)
    ]
    for rate in np.linspace(0.001, 0.999, 333):
        hits = [covered(interval, low + rate * (high - low)) for interval in intervals]
        assert binomial_weights(size, rate) @ hits >= CONFIDENCE


DISTRIBUTIONS = {
    "uniform": (lambda rng, size: rng.random(size), 0.5),
    "mostly near 0": (lambda rng, size: rng.beta(0.2, 6.0, size), 0.2 / 6.2),
    "mostly near 1": (lambda rng, size: rng.beta(8.0, 0.5, size), 8.0 / 8.5),
    "both ends": (lambda rng, size: rng.beta(0.1, 0.1, size), 0.5),
    "reciprocal ranks": (
        lambda rng, size: 1.0 / rng.integers(1, 11, size),
        sum(1 / k for k in range(1, 11)) / 10,
    ),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_betting_interval_covers_in_simulation(name: str, size: int) -> None:
    draw, mean = DISTRIBUTIONS[name]
    rng = np.random.default_rng([size, *name.encode()])
    hits = sum(
        covered(bounded_mean_betting(draw(rng, size), confidence=CONFIDENCE), mean) for _ in range(REPEATS)
    )
    assert hits / REPEATS >= CONFIDENCE - MONTE_CARLO


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("worse", "better"), [(0.02, 0.02), (0.2, 0.05), (0.0, 0.6)])
def test_difference_interval_covers_in_simulation(size: int, worse: float, better: float) -> None:
    rng = np.random.default_rng([size, int(100 * worse), int(100 * better)])
    hits = 0
    for _ in range(REPEATS):
        pairs = rng.choice([-1.0, 0.0, 1.0], size, p=[worse, 1 - worse - better, better])
        hits += covered(paired_difference_betting(pairs, confidence=CONFIDENCE), better - worse)
    assert hits / REPEATS >= CONFIDENCE - MONTE_CARLO
