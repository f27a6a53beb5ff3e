"""Candidate experiments that were tried on the recorded retrieval."""

from __future__ import annotations

from oloproof.diagnosis.experiments import TriedExperiment
from oloproof_ci.markdown import prose, shortened
from oloproof_ci.report import CriterionFailures
from oloproof_ci.sections.room import Room
from oloproof_ci.sections.words import SENTENCE, listed, named

#: How many broken cases are named.
_MAX_BROKEN = 3


def tried_section(failures: CriterionFailures, room: Room) -> str:
    """What each experiment recovered and broke; empty where none was tried."""
    tried = failures.experiments[: room.factors]
    if not tried:
        return ""
    return f"**Tried on the recorded retrieval** (hypotheses to test): {' · '.join(map(_tried, tried))}"


def _tried(experiment: TriedExperiment) -> str:
    name = named(experiment.setting)
    if experiment.error is not None:
        return f"{name} could not be tried: {prose(shortened(experiment.error, SENTENCE))}"
    recovered, broken = len(experiment.recovered), len(experiment.broken)
    failures = _of(experiment.failures, experiment.all_failures)
    passing = _of(experiment.passing, experiment.all_passing)
    comma = "" if experiment.failures == experiment.all_failures else ","
    text = f"{name} recovers {recovered} of {failures}{comma} and breaks {broken} of {passing}"
    if broken:
        text += f" ({listed(experiment.broken, _MAX_BROKEN)})"
    if experiment.without_result:
        text += f", {experiment.without_result} gave no result"
    return text


def _of(tried: int, there_are: int) -> str:
    return f"{tried}" if tried == there_are else f"{tried} tried, of {there_are}"
