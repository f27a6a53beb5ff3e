"""Stage swaps as text: totals by factor, what is implicated, and the cases behind it."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.diagnosis.attribution import AttributedCase, StageSwap, Swap, SwapFactor, Verdict
from oloproof.report.terminal import plain

#: How many differing names of a factor are given.
MAX_NAMED = 6


def swap_lines(swap: StageSwap) -> list[str]:
    """The lines of one criterion's swaps."""
    total = len(swap.cases)
    swapped = [case for case in swap.cases if case.swaps]
    lines = [
        f"Stage swap of {plain(swap.criterion)}: {len(swapped)} of {total} new {_failures(total)} executed again with "
        f"one factor of {swap.base}"
    ]
    lines += [_factor_line(position, factor, swapped, swap) for position, factor in enumerate(SwapFactor)]
    for factors, count in swap.counts().items():
        names = " and ".join(factor.value for factor in factors)
        what = f"the change in {names}" if len(factors) == 1 else f"the changes in {names}, each needed"
        some = swap.looked_into
        of = f"{total} new {_failures(total)}" if some == total else f"the {some} looked into"
        lines.append(f"Implicated: {what}, in {count} of {of}")
    lines += [attributed_case_line(case) for case in swap.cases]
    if swap.runs:
        runs = ", ".join(f"{factor.value} {run}" for factor, run in swap.runs.items())
        lines.append(f"Child runs: {runs}")
    return lines


def attributed_case_line(case: AttributedCase) -> str:
    """One case with its verdict and what each swap came to."""
    verdict = case.verdict.value
    if case.implicated:
        verdict = f"{verdict} {' and '.join(factor.value for factor in case.implicated)}"
    elif case.reason is not None:
        verdict = f"{verdict} {case.reason}"
    elif case.verdict is Verdict.UNSTABLE:
        verdict = f"{verdict}, an unchanged repeat came out differently"
    came = "; ".join(_came_to(swap) for swap in case.swaps)
    return f"  {plain(case.case_id)}: {verdict}{f' ({came})' if came else ''}"


def _factor_line(
    position: int, factor: SwapFactor, swapped: Sequence[AttributedCase], swap: StageSwap
) -> str:
    outcomes = [case.swaps[position].outcome for case in swapped]
    tried = [outcome for outcome in outcomes if outcome is not None]
    if not tried:
        return (
            f"  {factor.value}: unchanged"
            if factor not in swap.changed
            else f"  {factor.value}: not executed"
        )
    names = swap.changed.get(factor, ())
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    differs = f"; differs in {', '.join(map(plain, names[:MAX_NAMED]))}{more}" if names else ""
    return f"  {factor.value}: {tried.count('passed')} of {len(tried)} pass{differs}"


def _came_to(swap: Swap) -> str:
    error = f", {plain(swap.error)}" if swap.error else ""
    return f"{swap.factor.value} {swap.outcome or 'unchanged'}{error}"


def _failures(count: int) -> str:
    return "failure" if count == 1 else "failures"
