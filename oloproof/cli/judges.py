"""`oloproof judges check`."""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from oloproof.cli.labels import judge_of
from oloproof.cli.output import emit, emit_record
from oloproof.cli.progress import Progress
from oloproof.decisions.deciding import comparing_confidence
from oloproof.decisions.standing import standing_of
from oloproof.errors import EXIT_OK, EXIT_UNFINISHED, ConfigurationError
from oloproof.evaluators import JudgeEvaluator
from oloproof.execution.calls import ModelCalls
from oloproof.execution.driver import Driver
from oloproof.hosting import model_provider, prices
from oloproof.jsonform import to_json
from oloproof.judges.asking import Asking
from oloproof.judges.calling import Provider
from oloproof.judges.costs import Ledger
from oloproof.labels.checking import LabelledAnswers, ask_about, check_judge, configured_as
from oloproof.labels.files import Label, read_labels
from oloproof.report.judge_text import judge_text, measured
from oloproof.report.judges_text import costs_text
from oloproof.report.terminal import plain
from oloproof.settings.policy import Policy
from oloproof.settings.project import Project, load_project
from oloproof.store.judge_calls import JudgeCalls
from oloproof.worker.process import Reply
from oloproof.workplace import (
    COMPARE_POLICY,
    RELEASE_POLICY,
    Store,
    load_policies,
    opened_store,
)

#: How many reasons are told of verdicts that there are none.
MAX_FAULTS = 5


def command(given: argparse.Namespace) -> int:
    project = load_project(given.config)
    policies = load_policies(given.policy, given.config.parent, RELEASE_POLICY, COMPARE_POLICY)
    with opened_store(project.root) as store:
        judge = _judge(given, project, store)
        labels = list(read_labels(project.root, given.criterion).values())
        asking = Asking(JudgeCalls(store.database, time.time), Ledger(prices(project)))
        faults = _ask(project, LabelledAnswers(judge, labels), asking, store) if given.ask else Counter[str]()
        record, text = _checked(judge, labels, asking, policies)
    record["unanswered"] = dict(faults)
    text += "".join(
        f"\nNo verdict on {count}: {plain(reason)}" for reason, count in faults.most_common(MAX_FAULTS)
    )
    if given.json:
        emit_record(record)
    else:
        emit(text)
    return EXIT_UNFINISHED if given.ask and record["check"]["unasked"] else EXIT_OK


def _checked(
    judge: JudgeEvaluator, labels: Sequence[Label], asking: Asking, policies: Sequence[Policy]
) -> tuple[Any, str]:
    check = check_judge(judge, labels, Asking(asking.kept))
    figures = measured(check, comparing_confidence(policies))
    standings = {
        str(policy.path): standing_of(check, policy.config.judges, policy.config.confidence_level)
        for policy in policies
    }
    record = {
        "criterion": check.criterion,
        "definition": judge.definition(),
        "check": to_json(check),
        "figures": to_json(figures),
        "policies": {path: {**to_json(each), "met": each.met} for path, each in standings.items()},
        "asked": to_json(asking.ledger.costs),
    }
    text = judge_text(judge.model, check, figures, standings)
    if asking.ledger.costs.calls:
        text += f"\nAsked: {costs_text(asking.ledger.costs)}"
    return record, text


def _judge(given: argparse.Namespace, project: Project, store: Store) -> JudgeEvaluator:
    """The judge as it is configured, or as a run had it."""
    configured = [e for e in project.config.evaluators if isinstance(e, JudgeEvaluator)]
    if given.id is not None:
        judge = judge_of(store.runs.find_run(given.id), given.criterion)
        return configured_as(judge, configured)
    for each in configured:
        if each.criterion_name == given.criterion:
            return each
    names = ", ".join(each.criterion_name for each in configured) or "none"
    raise ConfigurationError(f"{project.path}: has no judge {given.criterion}; its judges: {names}")


def _ask(project: Project, answers: LabelledAnswers, asking: Asking, store: Store) -> Counter[str]:
    """Ask the judge about what it was not asked about, for which no app is needed; gives why there was no verdict, and
    how often."""
    provider = model_provider(project, os.environ)
    if provider is None:
        raise ConfigurationError(f"{project.path}: has no judge that could be asked")
    progress = Progress(noun="answers")
    progress.say(f"asking {answers.judge.model}")
    driver = Driver(
        lambda: ModelCalls(partial(_call, provider), provider.max_in_flight, say=provider.say),
        slots=provider.max_in_flight,
        before_first_call=lambda: None,
        idle=store.database.commit,
    )
    try:
        return ask_about([answers], asking, driver)
    finally:
        progress.clear()


def _call(provider: Provider, message: dict[str, Any]) -> Reply:
    return Reply(value=provider.call(message["call"]))
