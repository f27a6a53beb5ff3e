"""The exact interval of a paired difference: landmarks, every outcome enumerated, and a plain second implementation."""

from __future__ import annotations

import math
import random
import time

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln

from oloproof.statistics.betting import paired_difference_betting
from oloproof.statistics.binomial import clopper_pearson
from oloproof.statistics.exact_difference import (
    MOST_PAIRS,
    exact_lies_above,
    exact_lies_below,
    exact_p_above,
    exact_p_below,
    exact_paired_difference,
)

Floats = NDArray[np.float64]


def clean(pairs: int) -> float:
    return exact_paired_difference(0, 0, pairs).upper


# ---------------------------------------------------------------------------------------------- landmarks


def test_thirteen_equal_pairs_give_the_known_interval() -> None:
    interval = exact_paired_difference(0, 0, 13)
    assert interval.upper == pytest.approx(0.2473, abs=5e-5)
    assert interval.lower == -interval.upper
    assert (interval.confidence, interval.method) == (0.95, "paired_difference_exact")


def test_margins_are_settled_at_the_known_numbers_of_equal_pairs() -> None:
    assert clean(73) < 0.05 < clean(72)
    assert clean(217) < 0.02 < clean(216)


# ------------------------------------------------------------------------- a second, plain implementation


def outcomes(pairs: int) -> list[tuple[int, int]]:
    return [(better, worse) for better in range(pairs + 1) for worse in range(pairs + 1 - better)]


def tango(better: Floats, worse: Floats, pairs: int, difference: float) -> Floats:
    """The score statistic as Tango (1998) gives it, by the constrained maximum likelihood estimate."""
    a = 2.0 * pairs
    b = -better - worse + (2 * pairs - better + worse) * difference
    c = -worse * difference * (1 - difference)
    rate = (np.sqrt(np.maximum(b * b - 4 * a * c, 0)) - b) / (2 * a)
    spread = pairs * (2 * rate + difference * (1 - difference))
    excess = better - worse - pairs * difference
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 1e-300, excess / np.sqrt(spread), 0.0)


def plain_p_values(pairs: int, differences: Floats, better: int, worse: int, nodes: int = 300) -> Floats:
    """The one-sided p-value against smaller differences, from every outcome at every nuisance value."""
    found = np.array(outcomes(pairs), dtype=float)
    same = pairs - found.sum(axis=1)
    orders = gammaln(pairs + 1) - gammaln(found + 1).sum(axis=1) - gammaln(same + 1)
    differing = better + worse
    low = 0.0 if not differing else betaincinv(differing, pairs - differing + 1, 5e-5)
    high = 1.0 if differing == pairs else betaincinv(differing + 1, pairs - differing, 1 - 5e-5)
    values = []
    for difference in differences:
        least = max(0.0, -difference, (low - difference) / 2)
        most = min((1 - difference) / 2, (high - difference) / 2)
        if least > most:
            values.append(1e-4)
            continue
        statistics = tango(found[:, 0], found[:, 1], pairs, difference)
        seen = tango(np.array([better * 1.0]), np.array([worse * 1.0]), pairs, difference)
        extreme = statistics <= seen + 1e-9
        rates = np.linspace(least, most, nodes)
        chances = np.exp(
            orders[extreme, None]
            + found[extreme, 0, None] * np.log(np.maximum(rates + difference, 1e-300))
            + found[extreme, 1, None] * np.log(np.maximum(rates, 1e-300))
            + same[extreme, None] * np.log(np.maximum(1 - difference - 2 * rates, 1e-300))
        )
        values.append(chances.sum(axis=0).max() + 1e-4)
    return np.array(values)


@pytest.mark.parametrize(
    ("pairs", "better", "worse"),
    [(1, 0, 0), (6, 2, 2), (13, 0, 0), (13, 3, 1), (20, 7, 5), (20, 5, 7), (20, 0, 11), (35, 1, 4)],
)
def test_the_upper_end_is_the_last_difference_that_is_not_refuted(
    pairs: int, better: int, worse: int
) -> None:
    """6 of 2 and 2, and 20 of 7 and 5, have holes: what is accepted beyond one belongs to the interval."""
    upper = exact_paired_difference(better, worse, pairs).upper
    step = 2e-4
    beyond = np.arange(upper, min(upper + 0.06, 0.999), step)
    assert (plain_p_values(pairs, beyond, better, worse) <= 0.025 + 2e-6).all()
    (inside,) = plain_p_values(pairs, np.array([upper - 2e-6]), better, worse)
    assert inside > 0.025 - 2e-6


def test_the_lower_end_mirrors_the_upper_one() -> None:
    one, other = exact_paired_difference(5, 2, 19), exact_paired_difference(2, 5, 19)
    assert (one.lower, one.upper) == (-other.upper, -other.lower)


# ------------------------------------------------------------------------------------------------ coverage


def covered(pairs: int, confidence: float) -> float:
    """The smallest probability, over a fine grid of both discordance rates, that the interval holds the truth."""
    found = np.array(outcomes(pairs))
    uppers = {
        (better, worse): exact_paired_difference(better, worse, pairs, 0, confidence).upper
        for better, worse in outcomes(pairs)
    }
    upper = np.array([uppers[better, worse] for better, worse in outcomes(pairs)])
    lower = np.array([-uppers[worse, better] for better, worse in outcomes(pairs)])
    orders = math.lgamma(pairs + 1) - gammaln(found + 1).sum(axis=1) - gammaln(pairs - found.sum(axis=1) + 1)
    worst = 1.0
    fine = np.unique(np.concatenate([np.linspace(0, 1, 81), np.geomspace(1e-3, 0.2, 25)]))
    for rate in fine:
        others = fine[fine <= 1 - rate]
        logs = np.log(np.maximum(np.stack([np.full_like(others, rate), others, 1 - rate - others]), 1e-300))
        same = pairs - found.sum(axis=1, keepdims=True)
        chances = np.exp(orders[:, None] + np.hstack([found, same]) @ logs)
        truth = rate - others
        holds = (lower[:, None] <= truth) & (truth <= upper[:, None])
        worst = min(worst, float((chances * holds).sum(axis=0).min()))
    return worst


@pytest.mark.parametrize(
    ("pairs", "confidence"),
    [(1, 0.95), (2, 0.95), (3, 0.9), (5, 0.95), (8, 0.99), (13, 0.95), (13, 0.8), (20, 0.95), (40, 0.95)],
)
def test_every_outcome_enumerated_the_interval_holds_the_truth_often_enough(
    pairs: int, confidence: float
) -> None:
    assert covered(pairs, confidence) >= confidence


@pytest.mark.parametrize("better_rate", [0.0, 0.01, 0.1, 0.4])
@pytest.mark.parametrize("worse_rate", [0.0, 0.02, 0.3])
def test_the_closed_form_of_many_pairs_holds_the_truth_often_enough(
    better_rate: float, worse_rate: float
) -> None:
    drawing = np.random.default_rng(20261129)
    rates = [better_rate, worse_rate, 1 - better_rate - worse_rate]
    held = 0
    for better, worse, _ in drawing.multinomial(200, rates, size=400):
        interval = exact_paired_difference(int(better), int(worse), 200)
        held += interval.lower <= better_rate - worse_rate <= interval.upper
    assert held >= 400 * 0.95 - 3 * math.sqrt(400 * 0.95 * 0.05)


# ------------------------------------------------------------------------------------ what must always hold

SOME = [(better, worse, 24) for better, worse in random.Random(4).sample(outcomes(24), 12)]


@pytest.mark.parametrize(
    ("better", "worse", "pairs"), [*SOME, (0, 0, 1), (40, 60, 140), (75, 75, 150), (1, 0, 1), (0, 0, 3000)]
)
def test_it_holds_the_estimate_and_is_narrower_than_by_betting(better: int, worse: int, pairs: int) -> None:
    interval = exact_paired_difference(better, worse, pairs)
    values = np.repeat([1.0, -1.0, 0.0], [better, worse, pairs - better - worse])
    betting = paired_difference_betting(values)
    assert -1 <= interval.lower <= (better - worse) / pairs <= interval.upper <= 1
    assert interval.upper - interval.lower < betting.upper - betting.lower


def test_the_ends_of_the_scale_are_reached_and_never_passed() -> None:
    assert exact_paired_difference(7, 0, 7).upper == 1.0
    assert exact_paired_difference(0, 7, 7).lower == -1.0
    assert exact_paired_difference(0, 200, 200).lower == -1.0


def test_a_missing_pair_is_worse_for_the_lower_end_and_better_for_the_upper() -> None:
    interval = exact_paired_difference(2, 1, 18, missing=2)
    assert interval.lower == exact_paired_difference(2, 3, 20).lower
    assert interval.upper == exact_paired_difference(4, 1, 20).upper
    nothing = exact_paired_difference(0, 0, 0, missing=3)
    assert (nothing.lower, nothing.upper) == (-1.0, 1.0)


def test_above_150_pairs_the_closed_form_takes_over() -> None:
    assert MOST_PAIRS == 150
    interval = exact_paired_difference(8, 3, 151)
    better, worse = clopper_pearson(8, 151, 0, 0.975), clopper_pearson(3, 151, 0, 0.975)
    assert interval.lower == pytest.approx(better.lower - worse.upper, abs=1e-15)
    assert interval.upper == pytest.approx(better.upper - worse.lower, abs=1e-15)


def test_next_to_certainty_there_is_an_interval_too() -> None:
    usual, certain = exact_paired_difference(1, 2, 30), exact_paired_difference(1, 2, 30, 0, 0.99999)
    assert -1 < certain.lower < usual.lower
    assert usual.upper < certain.upper < 1


@pytest.mark.parametrize(
    ("better", "worse", "paired", "missing"), [(2, 2, 3, 0), (-1, 0, 3, 0), (0, 0, 0, 0)]
)
def test_counts_that_do_not_fit_are_refused(better: int, worse: int, paired: int, missing: int) -> None:
    with pytest.raises(ValueError):
        exact_paired_difference(better, worse, paired, missing)


def test_a_metric_of_the_most_pairs_takes_well_below_a_second() -> None:
    took = []
    for better, worse in ((0, 0), (3, 4), (60, 75)):
        start = time.perf_counter()
        exact_paired_difference(better, worse, MOST_PAIRS)
        took.append(time.perf_counter() - start)
    assert min(took) < 0.5
    assert max(took) < 1.0


# ------------------------------------------------------------------------------------------------ p-values


@pytest.mark.parametrize(
    ("better", "worse", "paired", "missing", "bound"),
    [
        (0, 3, 13, 0, 0.1),
        (1, 10, 150, 0, 0.0),
        (0, 0, 13, 1, 0.35),
        (7, 5, 20, 0, 0.433),
        (3, 40, 400, 0, 0.0),
        (1, 40, 100, 0, 0.0),  # so small that the closed form decides
    ],
)
def test_the_p_value_is_the_alpha_at_which_the_interval_leaves_the_bound(
    better: int, worse: int, paired: int, missing: int, bound: float
) -> None:
    p = exact_p_below(better, worse, paired, missing, bound)
    counts = better, worse, paired, missing
    assert exact_paired_difference(*counts, 1 - 0.98 * p).upper > bound
    assert exact_paired_difference(*counts, 1 - 1.02 * p).upper < bound
    assert exact_p_above(worse, better, paired, missing, -bound) == p
    assert not exact_lies_below(*counts, bound, 0.98 * p)
    assert exact_lies_below(*counts, bound, 1.02 * p)
    assert exact_lies_above(worse, better, paired, missing, -bound, 1.02 * p)


def test_a_bound_within_what_was_observed_has_no_p_value() -> None:
    assert exact_p_below(3, 1, 20, 0, 0.1) == 1.0
    assert exact_p_above(3, 1, 20, 0, 0.1) == 1.0
