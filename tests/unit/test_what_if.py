"""Settings of replays, and the text that says what whole runs come to under them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oloproof.comparison import Flips, PairedMetric
from oloproof.diagnosis.child_runs import ChildCase
from oloproof.diagnosis.controls import Controlled
from oloproof.diagnosis.replays import ReplayedRun, Setting
from oloproof.diagnosis.what_if import WhatIf, affordable_criteria, settings_grid
from oloproof.errors import ConfigurationError
from oloproof.identity.fingerprint import Fingerprints
from oloproof.identity.system import Reranker, System
from oloproof.records import FAILED, PASSED, Interval, Judgment, StageError, missing
from oloproof.report.what_if_text import what_if_text
from oloproof.run_records import CacheCounts, EvaluatorRecord, Run, Tally
from oloproof.store.unstable import UnstableCase

SYSTEM = System("small", "1", "app:Rag", 6, 2, 40, "1", Fingerprints("r", "c", "g"))
NO_HITS = CacheCounts(Tally(), Tally(), Tally(), Tally(), 0)
RUN = Run(
    id="run_1",
    kind="run",
    parent=None,
    created="2026-09-16T00:00:00+00:00",
    project="small",
    config="oloproof.yaml",
    dataset="cases.jsonl",
    dataset_digest="0",
    system=SYSTEM,
    evaluators=(EvaluatorRecord("correct", "pass_fail", "answer", {"type": "contains"}),),
    relevance_unit="document",
    slices=(),
    min_slice_support=1,
    cases=13,
    attempted=13,
    errored=0,
    cache=NO_HITS,
    metrics=(),
    slice_rows=(),
    seconds=1.0,
    stage_seconds=1.0,
    finished=True,
)
BEST = Reranker("rank:best", "0" * 64)


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        (Setting(4, 40), "top-k 4"),
        (Setting(2, 80), "token-budget 80"),
        (Setting(2, 40, BEST), "reranker rank:best"),
        (Setting(4, 80, BEST), "reranker rank:best, top-k 4, token-budget 80"),
        (Setting(2, 40), "unchanged"),
    ],
)
def test_a_setting_is_named_by_what_differs_from_the_run(setting: Setting, name: str) -> None:
    assert setting.name(RUN) == name


def test_a_grid_has_every_combination_once_and_the_run_s_own_value_where_none_is_given() -> None:
    assert settings_grid(RUN, [3, 4, 3], [], []) == (Setting(3, 40), Setting(4, 40))
    assert settings_grid(RUN, [3, 2], [60, 40], [BEST]) == (
        Setting(3, 60, BEST),
        Setting(3, 40, BEST),
        Setting(2, 60, BEST),
        Setting(2, 40, BEST),
    )
    assert settings_grid(RUN, [6], [], []) == (Setting(6, 40),)
    with pytest.raises(
        ConfigurationError, match="--top-k 7: run_1 recorded no more than 6 candidates a case"
    ):
        settings_grid(RUN, [3, 7], [], [])


def came(judgment: Judgment, differs: bool = False) -> ChildCase:
    error = None if judgment.value is not None else StageError("generate", "timeout", "took too long")
    return ChildCase(judgment, error, differs)


LOST = missing("timeout")


@pytest.mark.parametrize(
    ("repeats", "outcome", "passes", "observed"),
    [
        ([FAILED], "failed", 0, 1),
        ([PASSED], "passed", 1, 1),
        ([LOST], "missing", 0, 0),
        ([FAILED, PASSED, FAILED], "passed", 1, 3),
        ([FAILED, LOST, FAILED], "missing", 0, 2),
        ([LOST, PASSED], "passed", 1, 1),
        ([PASSED, PASSED], "passed", 2, 2),
    ],
)
def test_a_control_passes_when_any_repeat_does_and_says_nothing_when_one_is_lost(
    repeats: list[Judgment], outcome: str, passes: int, observed: int
) -> None:
    assert Controlled.of([came(each) for each in repeats]) == Controlled(outcome, passes, observed, 0)  # type: ignore[arg-type]


def test_retrievals_that_differed_are_counted() -> None:
    assert Controlled.of([came(FAILED, True), came(FAILED), came(PASSED, True)]).differed == 2


def paired(criterion: str, difference: float | None, lost: int = 0) -> PairedMetric:
    interval = None if difference is None else Interval(-0.25, 0.5, 0.95, "paired")
    return PairedMetric(criterion, "pass_fail", None, None, difference, interval, 13 - lost, lost, {})


TRIED = ReplayedRun(
    setting=Setting(4, 40),
    replayed=12,
    changed=3,
    generated=2,
    errored=(),
    metrics=(paired("correct", 1 / 13, lost=1), paired("cited", 0.0)),
    flips=(
        Flips("correct", ("good",), ("bad", "worse"), ("worst",), 8),
        Flips("cited", (), (), (), 13),
    ),
)


def text(tried: ReplayedRun = TRIED, known: tuple[UnstableCase, ...] = (), **changes: object) -> list[str]:
    found = replace(WhatIf("run_1", 13, ("dead",), 0, (tried,)), **changes)  # type: ignore[arg-type]
    return what_if_text(found, RUN, "correct", ["top_k"], known).splitlines()


def test_what_recovers_and_what_breaks_stands_in_one_row_and_by_name_below() -> None:
    lines = text()
    row = next(line for line in lines if "top_k 4" in line)
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == ["top_k 4", "3 of 12", "2 of 3", "1 of 9", "+7.7 points [-25.0, +50.0] · 1 missing"]
    assert "top_k 4 · correct: recovered bad, worse; broken good" in lines
    assert not any("cited" in line for line in lines)
    assert "Errored in the run, so is missing on both sides: 1 case, dead" in lines


def test_another_criterion_is_told_of_when_it_moves() -> None:
    moved = replace(
        TRIED,
        metrics=(*TRIED.metrics[:1], paired("cited", -1 / 13)),
        flips=(*TRIED.flips[:1], Flips("cited", ("good",), (), (), 12)),
    )
    assert "top_k 4 · cited: -7.7 points [-25.0, +50.0]; broken good" in text(moved)


def test_nothing_is_called_a_hypothesis_when_nothing_moved() -> None:
    still = replace(TRIED, metrics=(paired("correct", 0.0),), flips=(Flips("correct", (), (), (), 13),))
    assert "hypothesis" not in "".join(text(still))
    assert text()[-1] == "What moved here is a hypothesis to test on new cases."


def test_cases_without_a_stored_retrieval_are_counted() -> None:
    assert "Not replayed, so missing: 2 cases whose retrieval is no longer stored" in text(unrecorded=2)


def test_no_model_is_asked_unless_its_criterion_is_wanted() -> None:
    model = {"provider": "openai_compatible", "model": "m", "base_url": "http://127.0.0.1:8000/v1"}
    records = (
        EvaluatorRecord("grounded", "pass_fail", "answer", {"type": "groundedness_judge", **model}),
        EvaluatorRecord("cited", "pass_fail", "answer", {"type": "citation_validity"}),
        EvaluatorRecord("supported", "score", "answer", {"type": "citation_support_judge", **model}),
    )
    run = replace(RUN, evaluators=records)
    assert affordable_criteria(run) == ("cited",)
    assert affordable_criteria(run, "grounded") == ("grounded", "cited")
    told = "Not judged, since a model would be asked: grounded, supported (see --criterion)"
    assert told in text(not_judged=("grounded", "supported"))


def test_unstable_cases_are_marked_where_they_moved() -> None:
    known = (UnstableCase("bad", "correct", 1, 3), UnstableCase("else", "correct", 1, 1))
    assert "Unstable when repeated before: bad (differed in 1 of 3 repeats)" in text(known=known)


def test_names_of_cases_cannot_forge_lines() -> None:
    forged = replace(
        TRIED, flips=(Flips("correct", (), ("a\ntop_k 9 · all well",), (), 12),), errored=("e\x1b[2J",)
    )
    lines = text(forged, left_out=("b\r\n",))
    assert "top_k 4 · correct: recovered a\\ntop_k 9 · all well" in lines
    assert "top_k 4 · gave no answer: e\\x1b[2J" in lines
