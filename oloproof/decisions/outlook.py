"""What would settle a rule that is open: about how many more cases, or that no number will.

The cases to come are taken to be like those that were seen. Their number is where the interval of as many cases in the
same proportions first meets or misses what the rule asks. How often that settles it is then counted over draws of the
cases to come from those seen, with a fixed seed: at the very number it is often no more than every other time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oloproof.decisions.claims import Claims, claims_of
from oloproof.decisions.evidence import Evidence, ExactDifferences, Rate, Scores, Tested, Weighted
from oloproof.decisions.grounds import Grounds
from oloproof.decisions.records import Outlook, RuleState
from oloproof.settings.rules import AnyRule, NewFailuresRule, ObservedCountRule
from oloproof.statistics.exact_difference import MOST_PAIRS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

#: A rule that is open with so many cases counts as open for ever.
MOST_CASES = 1_000_000
_DRAWS = 200
_MOST_VALUES = 250
_SEED = 20260916

#: Why more cases do not help a rule that is open for a reason.
_OBSTACLES = {
    "no_observations": "nothing_observed",
    "missingness_exceeds_policy": "too_many_missing",
    "missing_could_change_outcome": "too_many_missing",
    "unstable_could_change_outcome": "unstable_cases",
    "evaluator_not_validated": "evaluator_not_validated",
}
#: The obstacle when it is the estimate that keeps a rule open for ever.
NEAR_BOUND = "estimate_near_bound"


def outlook_of(
    rule: AnyRule, grounds: Grounds, confidence: float, reason: str, questions: int = 1
) -> Outlook:
    """What would settle an open rule, decided at `confidence` for `reason`; its family asks so many `questions`."""
    if reason in _OBSTACLES:
        return Outlook(obstacle=_OBSTACLES[reason])
    support = rule.min_support or 0
    if isinstance(rule, ObservedCountRule | NewFailuresRule):
        return Outlook(RuleState.PASS, support - grounds.evidence.observed)
    alpha = 1.0 - confidence
    return _Question(
        _population(grounds.evidence), claims_of(rule), alpha, alpha / questions, support
    ).outlook()


@dataclass(frozen=True)
class _Population:
    """What the cases to come are drawn from: how many were seen of each kind, the last of them being the missing; and
    the evidence that such counts are."""

    seen: Counts
    evidence: Callable[[Sequence[int]], Tested]

    def grown(self, total: int) -> Sequence[int]:
        """So many cases in the same proportions, rounded by largest remainders."""
        import numpy as np

        shares = self.seen * (total / self.seen.sum())
        counts = np.floor(shares).astype(int)
        left = total - int(counts.sum())
        counts[np.argsort(counts - shares, kind="stable")[:left]] += 1
        return [int(count) for count in counts]


def _population(evidence: Evidence) -> _Population:
    import numpy as np

    if isinstance(evidence, Rate):
        counts = [evidence.passed, evidence.observed - evidence.passed, evidence.missing]
        return _Population(np.array(counts, dtype=float), lambda c: Rate(c[0], c[0] + c[1], c[2]))
    if isinstance(evidence, ExactDifferences):
        same = evidence.observed - evidence.better - evidence.worse
        counts = [evidence.better, evidence.worse, same, evidence.missing]
        return _Population(
            np.array(counts, dtype=float), lambda c: ExactDifferences(c[0], c[1], sum(c[:3]), c[3])
        )
    assert isinstance(evidence, Scores)
    values, found = _distinct(np.asarray(evidence.values, dtype=float))
    lower = evidence.lower
    return _Population(
        np.append(found.astype(float), evidence.missing), lambda c: Weighted(values, c[:-1], c[-1], lower)
    )


def _distinct(values: Counts) -> tuple[Counts, NDArray[np.int64]]:
    """The distinct values and their counts; of very many the means of neighbours, which is as good for a plan."""
    import numpy as np

    distinct, counts = np.unique(values, return_counts=True)
    if distinct.size <= _MOST_VALUES:
        return distinct, counts
    groups = np.array_split(np.sort(values), _MOST_VALUES)
    return np.unique([group.mean() for group in groups for _ in group], return_counts=True)


@dataclass(frozen=True)
class _Question:
    """One rule's question to a population; it passes at one alpha and fails at another, which its family has made
    smaller. Nothing counts below `support` observed cases."""

    population: _Population
    claims: Claims
    passing_alpha: float
    failing_alpha: float
    support: int

    def outlook(self) -> Outlook:
        seen = int(self.population.seen.sum())
        total = self._settling(seen)
        if total is None:
            return Outlook(obstacle="too_many_missing" if self._without_missing(seen) else NEAR_BOUND)
        return Outlook(self._state(self.population.grown(total)), total - seen, self._chance(total - seen))

    def _settling(self, seen: int) -> int | None:
        """About the smallest number of cases that settles it: doubled until it does, then halved in between. On the way
        stands the most pairs that the exact method enumerates, since with one more its interval is wider."""
        open_at, total = seen, seen + 1
        while self._state(self.population.grown(total)) is None:
            if total >= MOST_CASES:
                return None
            open_at, total = total, min(2 * total, MOST_CASES)
            if open_at < MOST_PAIRS < total:
                total = MOST_PAIRS
        while total - open_at > 1:
            middle = (open_at + total) // 2
            if self._state(self.population.grown(middle)) is None:
                open_at = middle
            else:
                total = middle
        return total

    def _without_missing(self, seen: int) -> bool:
        """Whether it could be settled if nothing were missing."""
        missing = self.population.seen[-1]
        if not missing:
            return False
        observed = self.population.seen.copy()
        observed[-1] = 0.0
        population = _Population(observed, self.population.evidence)
        rest = _Question(population, self.claims, self.passing_alpha, self.failing_alpha, self.support)
        return rest._settling(int(observed.sum())) is not None

    def _chance(self, more: int) -> float:
        """How often so many more cases, drawn from those seen, settle it."""
        import numpy as np

        shares = self.population.seen / self.population.seen.sum()
        draws = np.random.RandomState(_SEED).multinomial(more, shares, size=_DRAWS)
        seen = self.population.seen.astype(int)
        settled: dict[bytes, bool] = {}
        count = 0
        for draw in draws:
            counts = seen + draw
            key = counts.tobytes()
            if key not in settled:
                settled[key] = self._state([int(each) for each in counts]) is not None
            count += settled[key]
        return count / _DRAWS

    def _state(self, counts: Sequence[int]) -> RuleState | None:
        if sum(counts[:-1]) < self.support:
            return None
        evidence = self.population.evidence(counts)
        if self.claims.pass_at(self.passing_alpha, evidence):
            return RuleState.PASS
        return RuleState.FAIL if self.claims.fail_at(self.failing_alpha, evidence) else None
