"""What so many cases can decide at all, before anything ran.

A rule on an interval is looked at where it is best off: every case passes, or no pair differs. From there failures are
added: how many it bears and still passes, and from how many on it fails. Superiority is looked at the other way around,
by how many pairs have to become better while none becomes worse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from oloproof.decisions.claims import Claim, IntervalRule, claims_of
from oloproof.decisions.evidence import (
    Differences,
    Evidence,
    ExactDifferences,
    Rate,
    Scores,
    Tested,
    Weighted,
)
from oloproof.decisions.standing import standing_of
from oloproof.judges.checks import JudgeCheck
from oloproof.run_records import EvaluatorRecord
from oloproof.settings.policy import Policy, PolicyConfig
from oloproof.settings.rules import (
    AnyRule,
    DifferenceMethod,
    DifferenceRule,
    EquivalenceRule,
    MaxRule,
    MinRule,
    NewFailuresRule,
    ObservedCountRule,
    SuperiorityRule,
)
from oloproof.statistics.exact_difference import MOST_PAIRS

#: With more cases than this nobody's suite passes a rule.
MOST_CASES = 1_000_000

#: What is counted from the best outcome on: cases that fail (or pass, where that is bad; or, of scores, are the worst
#: there is), pairs that become worse, or, of superiority, pairs that become better.
Counted = Literal["failures", "passes", "worst_scores", "worse_pairs", "better_pairs"]


@dataclass(frozen=True)
class Prospect:
    """What `cases` cases, or pairs, can decide of one rule.

    `bears` is the most of what is counted with which it passes, of superiority the fewest that it needs; None when it
    cannot pass. `fails_from` is the fewest with which it fails, None when it cannot fail. `needed` is the fewest cases
    with which it can pass at all, `needed_exact` the same by `difference_method: exact` where that could be chosen;
    None when no number lets it. `reach` is the end of the interval that decides, at the best outcome. Rules that
    count are decided by any number of cases; all of this is then None. `validated` is false of a judge's criterion that
    decides nothing yet.
    """

    rule: str
    metric: str
    kind: str
    asks: str
    scope: str
    cases: int
    counted: Counted | None = None
    bears: int | None = None
    fails_from: int | None = None
    needed: int | None = None
    needed_exact: int | None = None
    reach: float | None = None
    min_support: int | None = None
    requires_manual_review: bool = False
    validated: bool = True

    @property
    def can_pass(self) -> bool:
        if self.requires_manual_review or not self.validated or self.cases < (self.min_support or 0):
            return False
        return self.counted is None or self.bears is not None


def prospects_of(
    policies: Sequence[Policy],
    evaluators: Sequence[EvaluatorRecord],
    cases: int,
    checks: Mapping[str, JudgeCheck] | None = None,
) -> list[Prospect]:
    """What so many cases can decide of each rule of policies that fit the evaluators. `checks` are what is known of
    judges, by criterion."""
    known = {evaluator.criterion: evaluator for evaluator in evaluators}
    found = []
    for policy in policies:
        level = policy.config.confidence_level
        for rule in policy.config.rules:
            evaluator = known[rule.metric]
            prospect = prospect_of(rule, policy.config, evaluator.kind == "pass_fail", cases)
            check = (checks or {}).get(rule.metric, JudgeCheck(rule.metric))
            validated = evaluator.validated or standing_of(check, policy.config.judges, level).met
            found.append(replace(prospect, validated=validated))
    return found


def prospect_of(rule: AnyRule, policy: PolicyConfig, pass_fail: bool, cases: int) -> Prospect:
    """What so many cases can decide of a rule on a pass/fail criterion or on a score."""
    blank = Prospect(
        rule=rule.id,
        metric=rule.metric,
        kind=rule.kind,
        asks=rule.asks(),
        scope=rule.scope,
        cases=cases,
        min_support=rule.min_support,
        requires_manual_review=rule.requires_manual_review,
    )
    if isinstance(rule, ObservedCountRule | NewFailuresRule):
        return blank
    alpha = 1.0 - policy.confidence_level
    if not isinstance(rule, DifferenceRule):
        return _run_prospect(blank, rule, pass_fail, alpha)
    method = policy.method_of(rule)
    found = _pair_prospect(blank, rule, method, alpha)
    if method == "exact" or not pass_fail:
        return found
    return replace(found, needed_exact=_pair_prospect(blank, rule, "exact", alpha).needed)


#: The evidence of some cases of which so many are counted.
_Evidence = Callable[[int, int], Tested]


def _run_prospect(blank: Prospect, rule: MinRule | MaxRule, pass_fail: bool, alpha: float) -> Prospect:
    high = isinstance(rule, MinRule)

    def counted(bad: int, cases: int) -> Tested:
        passed = cases - bad if high else bad
        return Rate(passed, cases) if pass_fail else Weighted([0.0, 1.0], [cases - passed, passed])

    cases = blank.cases
    best: Evidence = Rate(cases if high else 0, cases) if pass_fail else Scores([float(high)] * cases)
    what: Counted = "worst_scores" if not pass_fail else "failures" if high else "passes"
    found = _descending(blank, rule, counted, alpha)
    return replace(found, counted=what, reach=_reach(rule, best, alpha))


def _pair_prospect(blank: Prospect, rule: DifferenceRule, method: DifferenceMethod, alpha: float) -> Prospect:
    assert isinstance(rule, IntervalRule)
    high = isinstance(rule, EquivalenceRule) or rule.direction == "min"

    def pairs(better: int, worse: int, cases: int) -> Tested:
        up, down = (better, worse) if high else (worse, better)
        if method == "exact":
            return ExactDifferences(up, down, cases)
        return Weighted([-1.0, 0.0, 1.0], [down, cases - up - down, up], 0, -1.0)

    if not isinstance(rule, SuperiorityRule):
        best = ExactDifferences(0, 0, blank.cases) if method == "exact" else Differences([0.0] * blank.cases)
        found = _descending(blank, rule, lambda bad, cases: pairs(0, bad, cases), alpha)
        return replace(found, counted="worse_pairs", reach=_reach(rule, best, alpha))
    claims = claims_of(rule)
    cases = blank.cases
    return replace(
        blank,
        counted="better_pairs",
        bears=_first(lambda better: claims.pass_at(alpha, pairs(better, 0, cases)), 0, cases),
        fails_from=_first(lambda worse: claims.fail_at(alpha, pairs(0, worse, cases)), 0, cases),
        needed=_fewest(lambda number: claims.pass_at(alpha, pairs(number, 0, number))),
    )


def _descending(blank: Prospect, rule: IntervalRule, evidence: _Evidence, alpha: float) -> Prospect:
    """The prospect of a rule that passes at best, by how much worse it may get."""
    claims, cases = claims_of(rule), blank.cases
    open_from = _first(lambda bad: not claims.pass_at(alpha, evidence(bad, cases)), 0, cases)
    bears = cases if open_from is None else open_from - 1
    return replace(
        blank,
        bears=None if bears < 0 else bears,
        fails_from=_first(lambda bad: claims.fail_at(alpha, evidence(bad, cases)), 0, cases),
        needed=_fewest(lambda number: claims.pass_at(alpha, evidence(0, number))),
    )


def _reach(rule: IntervalRule, best: Evidence, alpha: float) -> float:
    """The end of the best interval that decides whether the rule passes."""
    claim: Claim = claims_of(rule).passing[0]
    interval = best.interval(1.0 - alpha)
    return interval.lower if claim.side == "above" else interval.upper


def _first(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest number from `low` to `high` from which on something holds, None when it does not even at `high`."""
    if not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _fewest(holds: Callable[[int], bool]) -> int | None:
    """The smallest number of cases at which something holds, without knowing where to look. The most pairs that the
    exact method enumerates come first: with one more its interval is wider."""
    if holds(MOST_PAIRS):
        return _first(holds, 1, MOST_PAIRS)
    high = MOST_PAIRS + 1
    while not holds(high):
        if high >= MOST_CASES:
            return None
        high = min(2 * high, MOST_CASES)
    return _first(holds, max(MOST_PAIRS + 1, high // 2), high)
