"""What the swaps of a new failure say of it: one pure table, whatever the swaps came to."""

from __future__ import annotations

from itertools import product

import pytest

from oloproof.diagnosis.attribution import Swap, SwapFactor, Verdict, attribution, left_out
from oloproof.diagnosis.budget import CallBudget, ranked, sample

OUTCOMES = ("passed", "failed", "missing", None)


@pytest.mark.parametrize("outcomes", list(product(OUTCOMES, repeat=3)))
def test_every_combination_of_outcomes_has_the_verdict_of_the_design(
    outcomes: tuple[str | None, ...],
) -> None:
    swaps = tuple(Swap(factor, outcome) for factor, outcome in zip(SwapFactor, outcomes, strict=True))
    found = attribution("a", swaps)
    recovered = tuple(swap.factor for swap in swaps if swap.outcome == "passed")
    if "missing" in outcomes:
        expected, recovered = Verdict.UNRESOLVED, ()
    elif set(outcomes) == {None}:
        expected = Verdict.UNCHANGED
    else:
        expected = [Verdict.NO_SINGLE_CHANGE, Verdict.IMPLICATED, *[Verdict.NEEDED_TOGETHER] * 2][
            len(recovered)
        ]
    assert (found.verdict, found.implicated) == (expected, recovered)


@pytest.mark.parametrize(
    ("head", "base", "verdict"),
    [
        ("failed", "passed", None),
        ("passed", "passed", Verdict.UNSTABLE),
        ("failed", "failed", Verdict.UNSTABLE),
        ("passed", "missing", Verdict.UNSTABLE),
        ("passed", None, Verdict.UNSTABLE),
        (None, "failed", Verdict.UNSTABLE),
        ("missing", "passed", Verdict.UNRESOLVED),
        ("failed", "missing", Verdict.UNRESOLVED),
        (None, "passed", Verdict.NOT_ATTRIBUTED),
        ("failed", None, Verdict.NOT_ATTRIBUTED),
        (None, None, Verdict.NOT_ATTRIBUTED),
    ],
)
def test_only_a_failure_that_both_repeats_bear_out_is_swapped(
    head: str | None, base: str | None, verdict: Verdict | None
) -> None:
    found = left_out("a", head, base)
    assert (None if found is None else found.verdict) is verdict


def test_a_budget_is_for_calls_that_may_each_be_repeated() -> None:
    budget = CallBudget(limit=100, attempts=3)
    assert budget.cases(3) == 11
    budget.spent += 97
    assert (budget.left, budget.cases(1)) == (3, 1)
    budget.spent += 10
    assert (budget.left, budget.cases(1)) == (0, 0)


def test_a_sample_depends_on_the_ids_alone_and_grows_without_losing_any() -> None:
    names = [f"case {n}" for n in range(200)]
    few, more = sample(names, 20), sample(names, 50)
    assert len(few) == 20
    assert set(few) < set(more)
    assert few == tuple(name for name in names if name in few)
    assert set(sample(names[::-1], 20)) == set(few)
    assert sample(names, 200) == tuple(names)
    assert sample(["\ud800", "b"], 1) in (("\ud800",), ("b",))
    assert sorted(ranked(names)) == sorted(names)
    assert ranked(names) != names
