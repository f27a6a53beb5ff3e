"""The transcripts of the document that our user wrote come out to the letter, ids aside.

The texts in tests/data/transcripts/ are copied from it. One pass of the commands serves all tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from projects import Finished, Oloproof

TRANSCRIPTS = Path(__file__).parents[1] / "data" / "transcripts"
CRITERIA = ["answer_correct", "hit_rate_at_2", "recall_at_2", "ndcg_at_6", "citations_valid"]


def without_ids(text: str) -> str:
    text = re.sub(r"run_[0-9A-HJKMNP-TV-Z]{26}", "run_ID", text)
    return re.sub(r"sha256:[0-9a-f]{64}", "sha256:ID", text)


def golden(name: str) -> list[str]:
    return without_ids((TRANSCRIPTS / name).read_text(encoding="utf-8")).splitlines()


@dataclass(frozen=True)
class Session:
    """What each command printed."""

    run: Finished
    diagnose: Finished
    inspect: Finished
    top_k: Finished
    rerun: Finished
    compare: Finished


@pytest.fixture(scope="module")
def session(copy_example: Callable[[str], Path], oloproof: Oloproof) -> Session:
    folder = copy_example("support_rag")
    run = oloproof("run", cwd=folder)
    baseline = run.lines[0].split()[1]
    diagnose = oloproof(
        "diagnose", baseline, "--intervention", "gold-context", "--criterion", "answer_correct", cwd=folder
    )
    inspect = oloproof(*diagnose.lines[-1].split()[2:], cwd=folder)  # as its own last line says
    top_k = oloproof(
        "diagnose",
        baseline,
        "--intervention",
        "top-k",
        "--top-k",
        "4",
        "--criterion",
        "answer_correct",
        cwd=folder,
    )
    config = folder / "oloproof.yaml"
    text = config.read_text()
    assert text.count("token_budget: 40") == 1
    config.write_text(text.replace("token_budget: 40", "token_budget: 120"))
    rerun = oloproof("run", cwd=folder)
    candidate = rerun.lines[0].split()[1]
    compare = oloproof("compare", candidate, baseline, "--policy", "compare.yaml", cwd=folder)
    return Session(run, diagnose, inspect, top_k, rerun, compare)


def rows(finished: Finished) -> list[str]:
    return [line for line in finished.lines if line.startswith("│") and line.split()[1] in CRITERIA]


def test_nothing_is_printed_beside_the_results(session: Session) -> None:
    finished = [
        session.run,
        session.diagnose,
        session.inspect,
        session.top_k,
        session.rerun,
        session.compare,
    ]
    assert [each.stderr for each in finished] == [""] * 6
    assert [each.returncode for each in finished] == [0, 0, 0, 0, 0, 3]


def test_run_prints_the_metric_rows_with_their_exact_column_widths(session: Session) -> None:
    wanted = golden("run-rows.txt")
    assert len(wanted) == 3
    assert [row for row in rows(session.run) if "_at_2" not in row] == wanted


def test_run_prints_the_two_rows_between_them(session: Session) -> None:
    cells = "│ 92.3%    │ [63.9%, 99.9%]  │ 12 / 13 observed · 0 missing · 0 excluded    │"
    assert [row for row in rows(session.run) if "_at_2" in row] == [
        f"│ hit_rate_at_2   {cells}",
        f"│ recall_at_2     {cells}",
    ]
    assert [row.split()[1] for row in rows(session.run)] == CRITERIA


def test_run_says_that_nothing_was_reused(session: Session) -> None:
    cache = session.run.lines.index("Cache: execution 0 hit/13 miss; judgment 0 hit/65 miss")
    assert session.run.lines[cache : cache + 2] == golden("run-reuse.txt")


def test_diagnose_prints_the_whole_transcript(session: Session) -> None:
    assert without_ids(session.diagnose.stdout).splitlines() == golden("diagnose.txt")


def test_diagnose_names_the_same_diagnosis_twice_and_two_child_runs(session: Session) -> None:
    named = re.findall(r"sha256:[0-9a-f]{64}", session.diagnose.stdout)
    assert len(named) == 2
    assert len(set(named)) == 1
    assert len(set(re.findall(r"run_\w+", session.diagnose.stdout))) == 2


def test_inspect_lists_the_diagnosed_cases_by_id(session: Session) -> None:
    assert without_ids(session.inspect.stdout).splitlines() == golden("inspect.txt")


def test_a_replay_under_top_k_4_prints_the_whole_transcript(session: Session) -> None:
    assert without_ids(session.top_k.stdout).splitlines() == golden("diagnose-top-k.txt")


def test_the_replay_reads_together_with_the_diagnosis_whose_labels_it_carries(session: Session) -> None:
    (labels,) = set(re.findall(r"sha256:\w+", session.diagnose.stdout))
    named = re.findall(r"sha256:\w+", session.top_k.stdout)
    assert named[0] == labels
    assert named[1] == named[2] != labels
    children = re.findall(r"run_\w+", session.top_k.stdout)
    assert children[:2] == re.findall(r"run_\w+", session.diagnose.stdout)
    assert len(set(children)) == 4


def test_a_larger_budget_reuses_every_retrieval_and_regenerates_the_six_changed_contexts(
    session: Session,
) -> None:
    cache = next(i for i, line in enumerate(session.rerun.lines) if line.startswith("Cache:"))
    assert session.rerun.lines[cache : cache + 2] == golden("rerun-reuse.txt")
    assert rows(session.rerun) == rows(session.run)


def test_compare_prints_the_differences_first(session: Session) -> None:
    wanted = golden("compare-head.txt")
    assert without_ids(session.compare.stdout).splitlines()[: len(wanted)] == wanted


def test_compare_prints_an_exploratory_line_for_every_slice_value_and_metric(session: Session) -> None:
    head, tail = golden("compare-head.txt"), golden("compare-tail.txt")
    heading, *lines = session.compare.lines[len(head) : -len(tail)]
    assert heading == "Slices (exploratory)"
    values = ["metadata.topic=accounts", "metadata.topic=billing", "metadata.topic=plans"]
    values += ["metadata.topic=security", "relevant_position=not_retrieved", "relevant_position=top_k"]
    values += ["context_truncated=false", "context_truncated=true"]
    assert [line.split(": ")[0].split() for line in lines] == [
        [value, criterion] for value in values for criterion in CRITERIA
    ]


def test_compare_ends_with_the_decisions_and_blocks_for_want_of_evidence(session: Session) -> None:
    wanted = golden("compare-tail.txt")
    assert session.compare.lines[-len(wanted) :] == wanted
    assert session.compare.returncode == 3
