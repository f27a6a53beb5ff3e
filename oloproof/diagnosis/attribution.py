"""Attribution by stage swap: which of the changes between base and head a new failure hangs on.

Head is executed again with one factor taken from base, for each factor that differs. What recovers names the change
that is implicated. This is the pure part: outcomes in, attribution out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from oloproof.diagnosis.labels import Outcome


class SwapFactor(StrEnum):
    """What can be taken from base, in the order in which reports print them. Assembly is top_k, token_budget and
    count_tokens."""

    RETRIEVAL = "retrieval"
    ASSEMBLY = "assembly"
    GENERATION = "generation"


class Verdict(StrEnum):
    """What the swaps say of a new failure.

    IMPLICATED: taken from base, exactly one factor makes it pass. NEEDED_TOGETHER: several do, each alone, so each of
    those changes was needed for the failure. NO_SINGLE_CHANGE: none does. UNCHANGED: no factor differs. UNSTABLE: an
    unchanged repeat came out differently, so nothing is attributed. UNRESOLVED: a swap or a repeat gave no result.
    NOT_ATTRIBUTED: it was not looked into.
    """

    IMPLICATED = "IMPLICATED"
    NEEDED_TOGETHER = "NEEDED_TOGETHER"
    NO_SINGLE_CHANGE = "NO_SINGLE_CHANGE"
    UNCHANGED = "UNCHANGED"
    UNSTABLE = "UNSTABLE"
    UNRESOLVED = "UNRESOLVED"
    NOT_ATTRIBUTED = "NOT_ATTRIBUTED"


#: Why a case is NOT_ATTRIBUTED or UNRESOLVED.
OVER_BUDGET = "over_budget"
JUDGES_RETRIEVAL = "criterion_judges_retrieval"
REPEAT_MISSING = "repeat_missing"
SWAP_MISSING = "swap_missing"


@dataclass(frozen=True)
class Swap:
    """Head with one factor taken from base. `outcome` is None when the factor is unchanged, so that there was nothing
    to execute; `error` says why an outcome is missing (`timeout: ...`)."""

    factor: SwapFactor
    outcome: Outcome | None
    error: str | None = None


@dataclass(frozen=True)
class AttributedCase:
    """A new failure with what its swaps came to, one of each factor unless none was made. `reason` is a code, None
    where the verdict says it all."""

    case_id: str
    verdict: Verdict
    reason: str | None
    swaps: tuple[Swap, ...]

    @property
    def implicated(self) -> tuple[SwapFactor, ...]:
        """The factors whose change the failure hangs on: one, or several that were needed together."""
        if self.verdict not in (Verdict.IMPLICATED, Verdict.NEEDED_TOGETHER):
            return ()
        return tuple(swap.factor for swap in self.swaps if swap.outcome == "passed")


@dataclass(frozen=True)
class StageSwap:
    """The new failures of one criterion of a head run against a base run, attributed.

    `changed` names, for each factor that differs between the two systems or in the files that a case depends on, what
    differs. `runs` holds the ids of the child runs by factor, `calls` how many times `generate` was really called.
    `cases` are in the order of the new failures.
    """

    base: str
    head: str
    criterion: str
    changed: Mapping[SwapFactor, tuple[str, ...]]
    runs: Mapping[SwapFactor, str]
    calls: int
    cases: tuple[AttributedCase, ...]

    def case(self, case_id: str) -> AttributedCase | None:
        return next((case for case in self.cases if case.case_id == case_id), None)

    def counts(self) -> Mapping[tuple[SwapFactor, ...], int]:
        """How many cases hang on each change, or on several together; in the order of the factors."""
        order = list(SwapFactor)
        found = Counter(case.implicated for case in self.cases if case.implicated)
        return dict(sorted(found.items(), key=lambda entry: [order.index(factor) for factor in entry[0]]))

    @property
    def looked_into(self) -> int:
        """How many cases the budget reached."""
        return sum(case.verdict is not Verdict.NOT_ATTRIBUTED for case in self.cases)

    @property
    def unstable(self) -> tuple[str, ...]:
        """The cases that do not hold when they are repeated."""
        return tuple(case.case_id for case in self.cases if case.verdict is Verdict.UNSTABLE)


def attribution(case_id: str, swaps: tuple[Swap, ...]) -> AttributedCase:
    """The attribution of a stable new failure. A swap without a result leaves it open, whatever the others say: it
    could have been the only one that recovers, or one of several."""
    outcomes = [swap.outcome for swap in swaps if swap.outcome is not None]
    if "missing" in outcomes:
        return AttributedCase(case_id, Verdict.UNRESOLVED, SWAP_MISSING, swaps)
    recovered = outcomes.count("passed")
    if not outcomes:
        verdict = Verdict.UNCHANGED
    elif not recovered:
        verdict = Verdict.NO_SINGLE_CHANGE
    else:
        verdict = Verdict.IMPLICATED if recovered == 1 else Verdict.NEEDED_TOGETHER
    return AttributedCase(case_id, verdict, None, swaps)


def left_out(case_id: str, head_repeat: Outcome | None, base_repeat: Outcome | None) -> AttributedCase | None:
    """The attribution of a case that its unchanged repeats keep from being swapped, None when they bear it out: the
    head's has to fail again and the base's to pass again."""
    if head_repeat == "passed" or base_repeat == "failed":
        return AttributedCase(case_id, Verdict.UNSTABLE, None, ())
    if head_repeat is None or base_repeat is None:
        return AttributedCase(case_id, Verdict.NOT_ATTRIBUTED, OVER_BUDGET, ())
    if "missing" in (head_repeat, base_repeat):
        return AttributedCase(case_id, Verdict.UNRESOLVED, REPEAT_MISSING, ())
    return None
