"""`oloproof check`: everything that can be known before a case is run."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from oloproof.cli.output import complain, emit, emit_record
from oloproof.decisions.deciding import check_policies
from oloproof.errors import EXIT_CONFIGURATION, EXIT_OK, ConfigurationError
from oloproof.evaluation import evaluator_records
from oloproof.execution.host import AppHost
from oloproof.report.terminal import plain
from oloproof.settings.policy import Policy, load_policy
from oloproof.settings.project import Project, load_project
from oloproof.workplace import COMPARE_POLICY, RELEASE_POLICY, hosted, scan_suite

#: The policies that are found beside a configuration, and what the rules of each may read.
POLICIES = {RELEASE_POLICY: ("run",), COMPARE_POLICY: ("run", "pair")}


class Findings:
    """What was found good, in sentences, and every problem. A check that fails stops none of the others."""

    def __init__(self) -> None:
        self.good: list[str] = []
        self.problems: list[str] = []

    def note(self, check: Callable[[], str]) -> bool:
        """Whether a check passed; it gives a sentence, or raises ConfigurationError."""
        try:
            self.good.append(check())
        except ConfigurationError as error:
            self.problems += error.problems
            return False
        return True


def command(given: argparse.Namespace) -> int:
    project = load_project(given.config)
    found = Findings()
    found.good.append(f"{project.path}: read")
    with hosted(project) as host:
        found.note(lambda: _cases(project))
        if found.note(lambda: _app(host)):
            found.note(lambda: _evaluators(host))
        for name, reads in POLICIES.items():
            path = given.config.parent / name
            if path.exists():
                found.note(lambda path=path, reads=reads: _policy(project, load_policy(path), reads))  # type: ignore[misc]
    if given.json:
        emit_record({"ok": not found.problems, "good": found.good, "problems": found.problems})
    else:
        emit("\n".join(plain(sentence) for sentence in found.good))
        for problem in found.problems:
            complain("oloproof", problem)
    return EXIT_CONFIGURATION if found.problems else EXIT_OK


def _cases(project: Project) -> str:
    facts = scan_suite(project)
    return f"{facts.shown}: {facts.cases} cases"


def _app(host: AppHost) -> str:
    name, declared, rag = host.check(), host.declared, host.project.config.system.rag
    depth, top_k = rag.depth or declared["depth"], rag.top_k or declared["top_k"]
    return f"{host.checkout.target}: {name}, depth {depth}, top_k {top_k}"


def _evaluators(host: AppHost) -> str:
    host.evaluators()
    names = [record.criterion for record in evaluator_records(host.project.config.evaluators)]
    return f"criteria: {', '.join(names)}"


def _policy(project: Project, policy: Policy, reads: tuple[str, ...]) -> str:
    check_policies([policy], evaluator_records(project.config.evaluators), project.config.slices, reads)
    rules = len(policy.config.rules)
    return f"{policy.path}: {rules} rule{'' if rules == 1 else 's'}"
