"""Which runs are kept for the jobs of pull requests, and taken by them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oloproof.identity.fingerprint import Fingerprints
from oloproof.identity.system import System
from oloproof.records import Metric
from oloproof.run_records import CacheCounts, EvaluatorRecord, Run, Tally
from oloproof_ci.earlier import is_whole

RUN = Run(
    id="run_1",
    kind="run",
    parent=None,
    created="2026-09-16T00:00:00+00:00",
    project="small",
    config="oloproof.yaml",
    dataset="cases.jsonl",
    dataset_digest="0",
    system=System("small", "1", "app:Rag", 6, 2, 40, "1", Fingerprints("r", "c", "g")),
    evaluators=(EvaluatorRecord("correct", "pass_fail", "answer", {"type": "contains"}),),
    relevance_unit="document",
    slices=(),
    min_slice_support=1,
    cases=3,
    attempted=3,
    errored=0,
    cache=CacheCounts(Tally(), Tally(), Tally(), Tally(), 0),
    metrics=(),
    slice_rows=(),
    seconds=1.0,
    stage_seconds=1.0,
    finished=True,
)


def missing_one(reason: str) -> Run:
    return replace(RUN, metrics=(Metric("correct", "rate", 2.0, 2, 1, {}, 1.0, None, {reason: 1}),))


@pytest.mark.parametrize("run", [RUN, missing_one("output_field_absent")])
def test_a_run_that_would_come_to_the_same_again_is_whole(run: Run) -> None:
    assert is_whole(run)


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, finished=False),
        replace(RUN, attempted=2),
        replace(RUN, errored=1),
        missing_one("judge_unreachable"),
        missing_one("evaluator_exception"),
    ],
)
def test_a_run_that_could_come_out_better_is_not(run: Run) -> None:
    assert not is_whole(run)
