"""Candidate experiments that can be tried at once: those that need nothing but the recorded retrieval.

What recovers under one is a hypothesis that held on these cases, not an established cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from oloproof.diagnosis.budget import CallBudget, ranked
from oloproof.diagnosis.factors import RANKING_DEPTH, implicated_factors, sufficient_top_k
from oloproof.diagnosis.labels import Label
from oloproof.diagnosis.recorded import recorded_cases
from oloproof.diagnosis.records import DiagnosedCase, Diagnosis
from oloproof.diagnosis.replays import Replaying, RerankerError, Setting
from oloproof.identity.system import Reranker
from oloproof.run_records import CaseRow, Run


@dataclass(frozen=True)
class TriedExperiment:
    """A setting that was replayed on recorded retrievals.

    Of `failures` cases `recovered` pass under it, of `passing` ones `broken` fail; `all_failures` and `all_passing` say
    how many there are, which is more where the budget of calls allowed a sample only. `without_result` counts cases
    that gave none under the setting. `calls` is how many times `generate` was called. `error` says why the setting
    could not be tried; then nothing is known of it.
    """

    setting: str
    recovered: tuple[str, ...]
    failures: int
    all_failures: int
    broken: tuple[str, ...]
    passing: int
    all_passing: int
    without_result: int
    calls: int
    error: str | None = None


def candidate_settings(
    diagnosis: Diagnosis, replaying: Replaying, rerankers: Sequence[Reranker]
) -> list[Setting]:
    """The settings that the implicated factors suggest: a top_k that reaches the passages that rank below it, a token
    budget that holds those it dropped, a smaller top_k against noise, and the rerankers against wrong ranks and
    noise."""
    run = replaying.run
    names = {factor.name for factor in implicated_factors(diagnosis)}
    found = []
    if RANKING_DEPTH in names:
        found += _larger_top_k(diagnosis, run)
    if "context budget" in names:
        found += _larger_budget(diagnosis, replaying)
    if "context noise" in names:
        found += _smaller_top_k(diagnosis, run)
    if names & {RANKING_DEPTH, "context noise"}:
        found += [Setting.of(run, reranker=reranker) for reranker in rerankers]
    return list(dict.fromkeys(found))


def try_experiments(
    replaying: Replaying,
    settings: Sequence[Setting],
    index: int,
    failures: Iterable[str],
    budget: CallBudget,
) -> tuple[TriedExperiment, ...]:
    """Replay these failures of the run and all cases that pass its criterion under each setting, as far as the budget
    reaches: each setting has its share of what is left. `replaying` judges by that criterion alone, whose judgments
    stand at `index` in the stored run."""
    wanted = set(failures)
    rows = [
        row._replace(judgments=(row.judgments[index],))
        for row in replaying.runs.rows(replaying.run.id)
        if row.case_id in wanted or row.judgments[index].passed
    ]
    tried = []
    for number, setting in enumerate(settings):
        share = budget.left // (len(settings) - number) // budget.attempts
        found = _try(replaying, setting, wanted, rows, share)
        budget.spent += found.calls
        tried.append(found)
    return tuple(tried)


def _try(
    replaying: Replaying,
    setting: Setting,
    failures: set[str],
    rows: Sequence[CaseRow],
    most: int,
) -> TriedExperiment:
    """One setting on the given cases, at most `most` of those whose context it changes."""
    before = replaying.steps.calls["generate"]
    recovered: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    without_result, error = 0, None
    chosen = _affordable(replaying, setting, failures, rows, most) if most else []
    try:
        replayed = replaying.whole_run(setting, chosen)
    except RerankerError as problem:
        chosen, error = [], str(problem)
    else:
        if not most:
            error = "no call of generate is left of the budget"
        (flips,) = replayed.flips
        recovered, broken = flips.fixed, flips.new_failures
        without_result = len(replayed.errored)
    tried = sum(row.case_id in failures for row in chosen)
    return TriedExperiment(
        setting=setting.name(replaying.run),
        recovered=recovered,
        failures=tried,
        all_failures=len(failures),
        broken=broken,
        passing=len(chosen) - tried,
        all_passing=len(rows) - len(failures),
        without_result=without_result,
        calls=replaying.steps.calls["generate"] - before,
        error=error,
    )


def _affordable(
    replaying: Replaying, setting: Setting, failures: set[str], rows: Sequence[CaseRow], most: int
) -> list[CaseRow]:
    """The cases that can be replayed with so many calls: all whose context stays, and of the others the failures before
    the rest, which ones being told by their ids alone."""
    if len(rows) <= most:
        return list(rows)
    changed = set(replaying.changed(setting, rows))
    order = sorted(ranked(list(changed)), key=lambda name: name not in failures)
    left_out = set(order[most:])
    return [row for row in rows if row.case_id not in left_out]


def _larger_top_k(diagnosis: Diagnosis, run: Run) -> list[Setting]:
    top_k = sufficient_top_k(diagnosis)
    return [] if top_k is None else [Setting.of(run, top_k=top_k)]


def _smaller_top_k(diagnosis: Diagnosis, run: Run) -> list[Setting]:
    """As few passages as still hold the best relevant one of each case, if that is fewer than now."""
    positions = _positions(diagnosis, Label.CONTEXT_DISTRACTION)
    if not positions or max(positions) >= run.system.top_k:
        return []
    return [Setting.of(run, top_k=max(positions))]


def _larger_budget(diagnosis: Diagnosis, replaying: Replaying) -> list[Setting]:
    """The tokens of what stands within top_k down to the best relevant passage, at most; of a case that lost only a
    part, of all that stands within top_k."""
    run = replaying.run
    lost = {case.case_id: case for case in diagnosis.cases if case.label is Label.CONTEXT_ASSEMBLY_LOSS}
    rows = replaying.runs.rows(run.id, list(lost))
    work = (
        (each.case.id, replaying.steps.tokens(each.execution.candidates[: _down_to(lost[each.case.id])]))
        for each in recorded_cases(rows, replaying.runs, replaying.results)
    )
    needed = [tokens for _, tokens in replaying.driver.run(work)]
    present = run.system.token_budget
    if present is None or not needed or max(needed) <= present:
        return []
    return [Setting.of(run, token_budget=max(needed))]


def _down_to(case: DiagnosedCase) -> int:
    best = case.best_position
    return case.top_k if best is None or case.reason.startswith("part_of_") else best


def _positions(diagnosis: Diagnosis, label: Label) -> list[int]:
    return [c.best_position for c in diagnosis.cases if c.label is label and c.best_position is not None]
