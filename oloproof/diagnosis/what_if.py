"""What would become of a whole run under other settings: what recovers, what breaks, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from oloproof.diagnosis.recorded import evaluator_from
from oloproof.diagnosis.replays import ReplayedRun, Replaying, Setting, check_depth
from oloproof.identity.system import Reranker
from oloproof.run_records import Run


@dataclass(frozen=True)
class WhatIf:
    """A run's cases under each of some settings. `left_out` names the cases that errored in the run, so that there is
    no answer to hold another against: they are missing on both sides. Of `unrecorded` others the retrieval is no
    longer in the store: they are missing under every setting. `not_judged` names the criteria that a model would have
    been asked about."""

    run: str
    cases: int
    left_out: tuple[str, ...]
    unrecorded: int
    settings: tuple[ReplayedRun, ...]
    not_judged: tuple[str, ...] = ()


def settings_grid(
    run: Run, top_ks: Sequence[int], budgets: Sequence[int], rerankers: Sequence[Reranker]
) -> tuple[Setting, ...]:
    """Every combination of the values, the run's own where none is given. Raises ConfigurationError for a top_k of
    which nothing was recorded."""
    for top_k in top_ks:
        check_depth(run, top_k)
    own = Setting.of(run)
    budgets_tried: Sequence[int | None] = budgets or [own.token_budget]
    rerankers_tried: Sequence[Reranker | None] = rerankers or [own.reranker]
    tried = product(top_ks or [own.top_k], budgets_tried, rerankers_tried)
    return tuple(dict.fromkeys(Setting(*values) for values in tried))


def affordable_criteria(run: Run, wanted: str | None = None) -> tuple[str, ...]:
    """The criteria that are judged without asking a model, which costs, and the one that is wanted."""
    return tuple(
        each.criterion
        for each in run.evaluators
        if each.criterion == wanted or not evaluator_from(each.definition).asks_model
    )


def try_settings(
    run: Run, replaying: Replaying, settings: Sequence[Setting], confidence: float = 0.95
) -> WhatIf:
    """Replay all cases of the run under each setting, judged by the criteria of `replaying`. Raises RerankerError."""
    judged = {each.criterion for each in replaying.run.evaluators}
    places = [place for place, each in enumerate(run.evaluators) if each.criterion in judged]
    rows = [
        row._replace(judgments=tuple([row.judgments[place] for place in places]))
        for row in replaying.runs.rows(run.id)
    ]
    left_out = tuple(row.case_id for row in rows if row.execution is None)
    tried = replaying.whole_runs(settings, rows, confidence)
    replayed = min((each.replayed for each in tried), default=0)
    return WhatIf(
        run=run.id,
        cases=run.cases,
        left_out=left_out,
        unrecorded=len(rows) - len(left_out) - replayed,
        settings=tried,
        not_judged=tuple(each.criterion for each in run.evaluators if each.criterion not in judged),
    )
