"""`oloproof check`: everything that can be known before a case is run."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from oloproof.cli.output import complain, emit, emit_record
from oloproof.cli.stored import project_checks
from oloproof.decisions.deciding import check_policies
from oloproof.decisions.prospects import Prospect, prospects_of
from oloproof.errors import EXIT_CONFIGURATION, EXIT_OK, ConfigurationError
from oloproof.evaluators import JudgeEvaluator
from oloproof.execution.host import AppHost
from oloproof.hosting import hosted
from oloproof.jsonform import to_json
from oloproof.judge_checks import labels_of
from oloproof.report.plan_text import prospects_text
from oloproof.report.terminal import plain
from oloproof.run_records import EvaluatorRecord
from oloproof.settings.policy import Policy, load_policy
from oloproof.settings.project import Project, load_project
from oloproof.suite import evaluator_records
from oloproof.workplace import COMPARE_POLICY, RELEASE_POLICY, scan_suite

T = TypeVar("T")

#: The policies that are found beside a configuration, and what the rules of each may read.
POLICIES = {RELEASE_POLICY: ("run",), COMPARE_POLICY: ("run", "pair")}


class Findings:
    """What was found good, in sentences, every problem, and what may be meant so. A check that fails stops none of the
    others."""

    def __init__(self) -> None:
        self.good: list[str] = []
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def of(self, check: Callable[[], tuple[str, T]]) -> T | None:
        """What a check gives beside its sentence; None when it raises ConfigurationError."""
        try:
            sentence, value = check()
        except ConfigurationError as error:
            self.problems += error.problems
            return None
        self.good.append(sentence)
        return value


def command(given: argparse.Namespace) -> int:
    project = load_project(given.config)
    found = Findings()
    found.good.append(f"{project.path}: read")
    with hosted(project) as host:
        cases = found.of(lambda: _cases(project))
        if found.of(lambda: _app(host)):
            found.of(lambda: _evaluators(host))
        policies = _policies(project, given.config.parent, found)
    found.warnings += _keyless(project, os.environ)
    records = evaluator_records(project.config.evaluators)
    _labels(project, records, found)
    prospects: list[Prospect] = []
    if cases and not found.problems:
        prospects = prospects_of(policies, records, cases, project_checks(project, records))
    if given.json:
        record = {
            "ok": not found.problems,
            "good": found.good,
            "problems": found.problems,
            "warnings": found.warnings,
        }
        emit_record({**record, "cases": cases, "rules": [to_json(each) for each in prospects]})
    else:
        emit("\n".join(plain(sentence) for sentence in found.good))
        if prospects and cases:
            emit(f"\n{prospects_text(cases, prospects)}")
        for warning in found.warnings:
            complain("oloproof: warning", warning)
        for problem in found.problems:
            complain("oloproof", problem)
    return EXIT_CONFIGURATION if found.problems else EXIT_OK


def _cases(project: Project) -> tuple[str, int]:
    facts = scan_suite(project)
    return f"{facts.shown}: {_counted(facts.cases, 'case')}", facts.cases


def _labels(project: Project, records: Sequence[EvaluatorRecord], found: Findings) -> None:
    for record in records:
        if not record.validated:
            found.of(lambda record=record: _labels_of(project, record))  # type: ignore[misc]


def _labels_of(project: Project, record: EvaluatorRecord) -> tuple[str, int]:
    count = sum(map(len, labels_of(project.root, [record]).values()))
    return f"{record.criterion}: {_counted(count, 'label')} of people", count


def _app(host: AppHost) -> tuple[str, bool]:
    name, declared, rag = host.check(), host.description.declared, host.project.config.system.rag
    depth, top_k = rag.depth or declared.depth, rag.top_k or declared.top_k
    return f"{host.checkout.target}: {name}, depth {depth}, top_k {top_k}", True


def _evaluators(host: AppHost) -> tuple[str, bool]:
    host.check_evaluators()
    names = [record.criterion for record in evaluator_records(host.project.config.evaluators)]
    return f"criteria: {', '.join(names)}", True


def _keyless(project: Project, environment: Mapping[str, str]) -> list[str]:
    """Judges whose key is not at hand: a run would ask them nothing."""
    found = []
    for index, each in enumerate(project.config.evaluators):
        if not isinstance(each, JudgeEvaluator) or each.key_variable is None:
            continue
        if not environment.get(each.key_variable, "").strip():
            sentence = (
                f"{each.criterion_name} finds no key: the environment variable {each.key_variable} is not set, so what "
                "is not answered yet will be missing"
            )
            found.append(project.lines.problem(("evaluators", index), sentence))
    return found


def _policies(project: Project, folder: Path, found: Findings) -> list[Policy]:
    """The policies beside the configuration that fit the suite."""
    loaded = []
    for name, reads in POLICIES.items():
        path = folder / name
        if path.exists():
            loaded.append(found.of(lambda path=path, reads=reads: _policy(project, path, reads)))  # type: ignore[misc]
    return [policy for policy in loaded if policy is not None]


def _policy(project: Project, path: Path, reads: tuple[str, ...]) -> tuple[str, Policy]:
    policy = load_policy(path)
    check_policies([policy], evaluator_records(project.config.evaluators), project.config.slices, reads)
    return f"{policy.path}: {_counted(len(policy.config.rules), 'rule')}", policy


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
