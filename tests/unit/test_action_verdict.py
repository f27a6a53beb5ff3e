"""The verdict over all suites of a job, and the words in which it is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from test_comment import PASSING, blocked_report, errored_report
from test_markdown import PARSERS, Page

from oloproof.decisions.records import Gate, GateState
from oloproof.jsonform import from_json, to_json
from oloproof_ci.action import rendering
from oloproof_ci.action.job import Job
from oloproof_ci.action.rendering import (
    drafts,
    leg_name,
    log_lines,
    outputs,
    status_context,
    status_description,
    summary,
)
from oloproof_ci.action.secrets import secrets_of, without_secrets
from oloproof_ci.action.verdict import FailOn, Verdict, decide
from oloproof_ci.comment import MAX_SUMMARY_BYTES
from oloproof_ci.github.marked import Section, write
from oloproof_ci.outcome import OUTCOME_VERSION, Failure, JobOutcome, SuiteOutcome

ALLOW, WARN, BLOCK = GateState.ALLOW, GateState.WARN, GateState.BLOCK
BAD_INPUT = SuiteOutcome("b.yaml", None, Failure(2, "b.yaml:1: version: expected 1\nsecond line"))
CRASHED = SuiteOutcome("c.yaml", None, Failure(5, "internal error"))


def suite(state: GateState = ALLOW, code: int = 0, **changes: object) -> SuiteOutcome:
    gate = PASSING if state is ALLOW else Gate(state, code, blocked_report().gate.decisions)
    return SuiteOutcome("a.yaml", blocked_report(gate=gate, **changes), None)


def job(*suites: SuiteOutcome, leg: str = "") -> JobOutcome:
    return JobOutcome(OUTCOME_VERSION, "a" * 40, 12, 7, 1, "CI / evaluate", leg, suites)


def test_the_summary_of_very_many_suites_keeps_gates_and_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "MAX_SUMMARY_BYTES", 60_000)
    blocked = SuiteOutcome("z.yaml", blocked_report(), None)
    outcome = job(*[replace(suite(), config=f"{n}.yaml") for n in range(40)], blocked)
    told = summary(outcome)
    assert len(told.encode()) <= 60_000
    assert told.count("\n## ✅") + told.startswith("## ✅") == 40
    (part,) = [part for part in told.split("## ") if part.startswith("⛔")]
    assert "| `no-new-failures` |" in part


def test_cases_that_error_now_are_counted_in_log_and_status() -> None:
    outcome = job(SuiteOutcome("a.yaml", errored_report(), None))
    verdict = decide(outcome.suites, "block")
    assert status_description(outcome, verdict).endswith(" · 3 newly errored")
    assert log_lines(outcome, verdict)[0].endswith("; 0 new failures, 3 newly errored, 1 fixed")


@pytest.mark.parametrize(
    ("gates", "fail_on", "expected"),
    [
        ([(ALLOW, 0)], "block", (ALLOW, 0, "success", True)),
        ([(WARN, 0)], "block", (WARN, 0, "success", True)),
        ([(WARN, 0)], "warn", (WARN, 1, "failure", True)),
        ([(BLOCK, 3)], "block", (BLOCK, 3, "failure", True)),
        ([(BLOCK, 4)], "warn", (BLOCK, 4, "failure", True)),
        ([(BLOCK, 1)], "never", (BLOCK, 0, "success", False)),
        ([(BLOCK, 5)], "never", (BLOCK, 0, "success", False)),
        ([(ALLOW, 0), (BLOCK, 3), (BLOCK, 1)], "block", (BLOCK, 1, "failure", True)),
        ([(BLOCK, 3), (BLOCK, 4)], "block", (BLOCK, 4, "failure", True)),
    ],
)
def test_the_worst_suite_decides_and_fail_on_says_what_fails(
    gates: list[tuple[GateState, int]], fail_on: FailOn, expected: tuple[object, ...]
) -> None:
    verdict = decide([suite(*gate) for gate in gates], fail_on)
    assert (verdict.gate, verdict.exit_code, verdict.status, verdict.enforced) == expected


@pytest.mark.parametrize("fail_on", ["block", "warn", "never"])
def test_what_could_not_be_evaluated_fails_whatever_is_let_through(fail_on: FailOn) -> None:
    verdict = decide([suite(), CRASHED, BAD_INPUT], fail_on)
    assert verdict == Verdict(BLOCK, "failed", 2, "error", True)
    assert decide([suite(BLOCK, 1), CRASHED], fail_on).exit_code == 5


def test_the_reason_names_the_rules_that_block_or_the_gate_s_own() -> None:
    assert suite(BLOCK, 1).reason == "no-new-failures"
    assert suite(BLOCK, 3).reason == "answers-not-worse"
    assert suite().reason == ""
    absent = replace(PASSING, state=WARN, reason="baseline_absent")
    assert replace(suite(), report=blocked_report(gate=absent)).reason == "baseline_absent"


def test_a_status_says_in_140_characters_why() -> None:
    outcome = job(suite(BLOCK, 1))
    assert status_description(outcome, decide(outcome.suites, "block")) == (
        "BLOCK: no-new-failures · 3 new failures"
    )
    failed = job(BAD_INPUT)
    assert status_description(failed, decide(failed.suites, "block")) == (
        "b.yaml: b.yaml:1: version: expected 1 second line"
    )
    long = job(SuiteOutcome("a.yaml", None, Failure(5, "x\u202e" * 500)))
    described = status_description(long, decide(long.suites, "block"))
    assert len(described) == 140
    assert "\u202e" not in described


@pytest.mark.parametrize(
    ("run", "older"),
    [
        ("8/attempts/1", True),
        ("7/attempts/3", True),
        ("7/attempts/2", False),
        ("6/attempts/9", False),
        ("9/attempts/1/x", False),
        ("", False),
        ("9" * 5000 + "/attempts/1", False),
    ],
)
def test_a_run_is_older_than_those_that_began_after_it(run: str, older: bool) -> None:
    names = ("REPOSITORY", "EVENT_NAME", "SHA", "API_URL", "SERVER_URL", "WORKSPACE")
    environment = {f"GITHUB_{name}": "x" for name in names}
    this = Job.read({**environment, "GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "2"})
    assert this.is_older_than(f"https://ghe.example/octo/app/actions/runs/{run}") is older


@pytest.mark.parametrize(
    ("name", "leg", "context"),
    [
        ("oloproof/gate", "", "oloproof/gate"),
        ("oloproof/gate", '{"python": "3.12", "os": "linux"}', "oloproof/gate (3.12, linux)"),
        ("gate of 3.12", '{"python": "3.12"}', "gate of 3.12"),
    ],
)
def test_no_leg_of_a_matrix_hides_the_status_of_another(name: str, leg: str, context: str) -> None:
    assert status_context(name, leg) == context
    assert len(status_context("oloproof/gate", "x" * 1000)) == 255


def test_outputs_of_several_suites_stand_one_a_line_in_their_order() -> None:
    outcome = job(suite(BLOCK, 1), BAD_INPUT, suite(BLOCK, 1))
    found = outputs(outcome, decide(outcome.suites, "block"), "r/report.json")
    first = outcome.suites[0].report
    assert first is not None
    assert found["run-id"].split("\n") == [first.head.run, "", first.head.run]
    assert (found["new-failures"], found["report-path"]) == ("6", "r/report.json")


def test_the_log_has_a_line_for_each_suite_and_the_gate() -> None:
    outcome = job(suite(BLOCK, 1), CRASHED)
    lines = log_lines(outcome, decide(outcome.suites, "never"))
    assert lines == [
        "a.yaml: BLOCK (no-new-failures); 3 new failures, 1 fixed",
        "c.yaml: not evaluated: internal error",
        "gate: BLOCK",
    ]
    let_through = job(suite(BLOCK, 1))
    assert log_lines(let_through, decide(let_through.suites, "never"))[-1] == (
        "gate: BLOCK, which fail-on lets through"
    )


@pytest.mark.parametrize(
    ("leg", "name"),
    [
        ('{"python": "3.12", "os": "linux"}', "3.12, linux"),
        ('{"n": 3, "flags": [1, true]}', "3, [1, true]"),
        ('"alone"', "alone"),
        ("my own name", "my own name"),
        ("[1, 2]", "[1, 2]"),
    ],
)
def test_a_matrix_job_is_called_by_its_values(leg: str, name: str) -> None:
    assert leg_name(leg) == name


def test_sections_and_the_summary_say_everything_of_every_suite() -> None:
    outcome = job(suite(BLOCK, 1), BAD_INPUT, leg='{"python": "3.12"}')
    made = drafts(outcome, "https://ghe.example/run")
    job_and_leg = 'CI / evaluate {"python": "3.12"}'
    assert [draft.mark.key for draft in made] == [("a.yaml", job_and_leg), ("b.yaml", job_and_leg)]
    texts = [draft.render(60_000) for draft in made]
    assert all("[job](https://ghe.example/run) `CI / evaluate`, with" in text for text in texts)
    assert texts[0].startswith("## ⛔ Oloproof · support-rag · BLOCK · `3.12`\n")
    assert "**The input is wrong**" in texts[1]
    assert all(title in summary(outcome) for title in ("support-rag · BLOCK", "`b.yaml` · BLOCK"))


@pytest.mark.parametrize("parse", PARSERS)
def test_github_shows_each_section_under_its_heading_and_no_mark(parse: Callable[[str], str]) -> None:
    """A mark stands right above a heading and right below a paragraph, which must end there."""
    made = drafts(job(suite(BLOCK, 1), BAD_INPUT, suite()), "https://ghe.example/run")
    body = write([Section(draft.mark, draft.render(20_000).strip("\n")) for draft in made])
    page = Page(parse(body))
    assert page.elements.count("h2") == 3
    assert len(page.comments) == 6
    assert not any("oloproof:1" in node.text or "/oloproof" in node.text for node in page.nodes)
    assert [node.text for node in page.nodes if node.inside[-1:] == ("a",)] == ["job"] * 3


def test_the_summary_of_however_many_suites_is_below_what_the_runner_takes() -> None:
    case = blocked_report().failures[0].new_failures[0]
    many = replace(blocked_report().failures[0], new_failures=(replace(case, head_answer="x" * 300),) * 1000)
    outcome = job(*[suite(BLOCK, 1, failures=(many,))] * 20)
    assert len(summary(job(outcome.suites[0])).encode()) > 100_000, "one alone is shown whole"
    assert len(summary(outcome).encode()) < MAX_SUMMARY_BYTES


def test_a_section_keeps_to_its_room() -> None:
    (draft,) = drafts(job(suite(BLOCK, 1)), "https://ghe.example/run")
    assert len(draft.render(3_000).encode()) <= 3_000


def test_the_record_reads_back_as_it_was_written() -> None:
    outcome = job(suite(BLOCK, 1), BAD_INPUT)
    assert from_json(JobOutcome, json.dumps(to_json(outcome)).encode()) == outcome


# ------------------------------------------------------------------------------------------ secrets


def test_secrets_are_known_by_the_names_of_their_variables() -> None:
    environment = {
        "OPENAI_API_KEY": "sk-0123456789",
        "INPUT_GITHUB-TOKEN": "ghs_0123456789",
        "DB_PASSWORD": "line one is long\nline two is long",
        "PAT": "pat-0123456789",
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "MONKEY": "0123456789",
        "SHORT_KEY": "1234567",
        "KEY_FILE": "/etc/some/path",
    }
    assert set(secrets_of(environment)) == {
        "sk-0123456789",
        "ghs_0123456789",
        "line one is long",
        "line two is long",
        "pat-0123456789",
    }


def test_a_secret_is_hidden_wherever_a_report_holds_it() -> None:
    secret = 'sk-"0123\\456789'
    failure = Failure(5, f"the provider said: key {secret} is invalid")
    found = without_secrets(job(SuiteOutcome(f"{secret}.yaml", None, failure)), [secret])
    (hidden,) = found.suites
    assert hidden.config == "***.yaml"
    assert hidden.failure == Failure(5, "the provider said: key *** is invalid")


def test_a_report_without_secrets_is_left_as_it_is() -> None:
    outcome = job(suite())
    assert without_secrets(outcome, ["sk-0123456789"]) is outcome
