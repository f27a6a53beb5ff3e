"""Judges with known error rates: what is measured of them covers the truth as often as it says."""

from __future__ import annotations

import itertools
import random
from functools import cache

import pytest

from oloproof.statistics import agreement
from oloproof.statistics.agreement import (
    Agreement,
    corrected_rate,
    kappa,
    kappa_interval,
    rate_interval,
)
from oloproof.statistics.binomial import clopper_pearson

#: Share of good answers, how often the judge passes good ones, and fails bad ones.
JUDGES = [(0.5, 0.9, 0.9), (0.7, 0.85, 0.6), (0.95, 0.99, 0.5), (0.3, 0.5, 0.5), (0.9, 0.3, 0.2)]
ROUNDS = 400
#: 95% less three standard errors of 400 rounds.
LEAST = 0.95 - 3 * (0.05 * 0.95 / ROUNDS) ** 0.5


def judged(random: random.Random, count: int, judge: tuple[float, float, float]) -> list[tuple[bool, bool]]:
    """Answers as what people and the judge say of each."""
    share, of_good, of_bad = judge
    found = []
    for _ in range(count):
        good = random.random() < share
        found.append((good, random.random() < (of_good if good else 1 - of_bad)))
    return found


def counted(pairs: list[tuple[bool, bool]]) -> Agreement:
    return Agreement(
        *(pairs.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False)))
    )


def true_kappa(judge: tuple[float, float, float]) -> float:
    share, of_good, of_bad = judge
    passed = share * of_good + (1 - share) * (1 - of_bad)
    observed = share * of_good + (1 - share) * of_bad
    by_chance = share * passed + (1 - share) * (1 - passed)
    return (observed - by_chance) / (1 - by_chance)


@pytest.mark.parametrize("count", [15, 60])
@pytest.mark.parametrize("judge", JUDGES)
def test_agreement_hit_rates_and_kappa_cover_the_truth(judge: tuple[float, float, float], count: int) -> None:
    share, of_good, of_bad = judge
    truth = [share * of_good + (1 - share) * of_bad, of_good, of_bad, true_kappa(judge)]
    covered = [0, 0, 0, 0]
    source = random.Random(20231109)
    for _ in range(ROUNDS):
        counts = counted(judged(source, count, judge))
        good, bad = counts.good_passed + counts.good_failed, counts.bad_passed + counts.bad_failed
        intervals = [
            rate_interval(counts.agreed, counts.compared, 0, 0.95),
            rate_interval(counts.good_passed, good, 0, 0.95),
            rate_interval(counts.bad_failed, bad, 0, 0.95),
            kappa_interval(counts),
        ]
        for number, (interval, value) in enumerate(zip(intervals, truth, strict=True)):
            covered[number] += interval.lower <= value <= interval.upper
    assert min(covered) / ROUNDS >= LEAST


@pytest.mark.parametrize("labels", [20, 160])  # with exact intervals of the errors, and without
@pytest.mark.parametrize("judge", JUDGES)
def test_the_corrected_rate_covers_what_people_would_pass(
    judge: tuple[float, float, float], labels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("exact_paired_difference", "clopper_pearson"):  # the same counts come again and again
        monkeypatch.setattr(agreement, name, cache(getattr(agreement, name)))
    source = random.Random(382)
    covered = raw_covered = 0
    for _ in range(ROUNDS):
        pairs = judged(source, 250, judge)
        labelled = source.sample(pairs, labels)
        passed = sum(said for _, said in pairs)
        too_strict, too_lenient = labelled.count((True, False)), labelled.count((False, True))
        errors = (too_strict, labels - too_strict - too_lenient, too_lenient)
        found = corrected_rate("c", passed, 250, 0, errors, 0)
        assert found is not None
        covered += found.interval.lower <= judge[0] <= found.interval.upper
        raw = clopper_pearson(passed, 250)
        raw_covered += raw.lower <= judge[0] <= raw.upper
    assert covered / ROUNDS >= LEAST
    share, of_good, of_bad = judge
    if abs(share * of_good + (1 - share) * (1 - of_bad) - share) > 0.05:  # else its errors cancel
        assert raw_covered / ROUNDS < 0.9


def test_a_correction_takes_off_what_the_judge_is_wrong_by_on_average() -> None:
    found = corrected_rate("c", 200, 250, 0, (2, 88, 10), 0)
    assert found is not None
    assert (found.raw, found.estimate) == (0.8, pytest.approx(0.72))
    unknown = corrected_rate("c", 200, 250, 0, (2, 88, 10), 20)
    assert unknown is not None
    assert unknown.interval.lower < found.interval.lower < found.estimate < found.interval.upper
    assert unknown.interval.upper > found.interval.upper
    assert corrected_rate("c", 200, 250, 0, (0, 0, 0), 5) is None
    assert corrected_rate("c", 0, 0, 3, (1, 0, 0), 0) is None


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (Agreement(20, 5, 10, 15), 0.4),  # Cohen's own form of example: 70% agree, 50% by chance
        (Agreement(10, 0, 0, 10), 1.0),
        (Agreement(0, 10, 10, 0), -1.0),
        (Agreement(25, 25, 25, 25), 0.0),
        (Agreement(9, 0, 0, 0), None),
        (Agreement(), None),
    ],
)
def test_kappa_is_what_agreement_is_beyond_chance(counts: Agreement, expected: float | None) -> None:
    found, interval = kappa(counts), kappa_interval(counts)
    assert found == (None if expected is None else pytest.approx(expected))
    assert -1.0 <= interval.lower <= (found or 0.0) <= interval.upper <= 1.0


@pytest.mark.parametrize("cells", [(12, 3, 4, 11), (40, 1, 2, 7), (3, 9, 8, 2), (0, 5, 0, 5), (30, 0, 0, 1)])
def test_the_interval_of_kappa_spans_all_that_its_parts_allow(cells: tuple[int, int, int, int]) -> None:
    counts = Agreement(*cells)
    each = 1 - 0.05 / 3
    good, bad = cells[0] + cells[1], cells[2] + cells[3]
    ends = [
        rate_interval(good, good + bad, 0, each),
        rate_interval(cells[0], good, 0, each),
        rate_interval(cells[3], bad, 0, each),
    ]
    steps = [[end.lower + (end.upper - end.lower) * step / 40 for step in range(41)] for end in ends]
    tried = [true_kappa(judge) for judge in itertools.product(*steps) if 0 < judge[0] < 1]
    found = kappa_interval(counts)
    assert found.lower <= min(tried) + 1e-12
    assert found.upper >= max(tried) - 1e-12
    assert found.lower == pytest.approx(min(tried), abs=0.02)
    assert found.upper == pytest.approx(max(tried), abs=0.02)


def test_what_the_judge_did_not_say_widens_every_interval() -> None:
    known, unknown = Agreement(20, 2, 3, 15), Agreement(20, 2, 3, 15, 4, 3)
    for narrow, wide in [
        (kappa_interval(known), kappa_interval(unknown)),
        (rate_interval(35, 40, 0, 0.95), rate_interval(35, 40, 7, 0.95)),
    ]:
        assert wide.lower < narrow.lower
        assert wide.upper >= narrow.upper
