"""What the report says of each side's run by itself."""

from __future__ import annotations

from oloproof.report.run_text import programs_sentence, stale_sentence
from oloproof.run_records import Run
from oloproof_ci.report import Commit, Side, Warning


def retrieval_warnings(head: Run, base: Run | None) -> tuple[Warning, ...]:
    """What a reader must know of the runs' retrievals."""
    warnings = []
    if head.stale is not None:
        warnings.append(Warning("stale_index", stale_sentence(head) + "."))
    if head.programs:
        warnings.append(Warning("unseen_reads", programs_sentence(head) + "."))
    if base is None:
        return tuple(warnings)
    ran = base.cache.retrieve.miss
    then, now = base.system.index_version, head.system.index_version
    if ran and then != now:
        text = (
            f"{ran} base retrievals ran now under index_version {then}, while the head's is {now}: if the index has "
            "been replaced, they may not show what the base retrieved."
        )
        warnings.append(Warning("base_index_version", text))
    return tuple(warnings)


def side_of(run: Run, commit: Commit, dirty: bool) -> Side:
    """What the report says of one side's run."""
    cache = run.cache
    avoided = cache.retrieve.hit + cache.generate.hit + 2 * cache.execution.hit
    return Side(
        sha=commit.sha,
        ref=commit.ref,
        dirty=dirty,
        run=run.id,
        system=run.system,
        cases=run.cases,
        errored=run.errored,
        metrics=run.metrics,
        cache=cache,
        calls=cache.retrieve.miss + cache.generate.miss,
        calls_avoided=avoided,
        stage_seconds=run.stage_seconds,
        corrected=run.corrected,
    )
