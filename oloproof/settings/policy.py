"""Policy files (release.yaml, compare.yaml): the rules that decide the gate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from oloproof.errors import ConfigurationError
from oloproof.settings.fields import CountOrZero, ListOf, Settings, Text, Version
from oloproof.settings.validation import validate
from oloproof.settings.wording import capped, hint
from oloproof.settings.yamlfile import SourceLines, load_yaml

#: The states of a rule that may block or warn; PASS does neither.
OpenState = Literal["FAIL", "INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW"]


class _Rule(Settings, ABC):
    """What every rule has. `reads` is what it decides on: one run, or a candidate paired with a baseline."""

    reads: ClassVar[Literal["run", "pair"]]
    #: Whether the metric must be a pass/fail criterion: the rule counts failures.
    counts_failures: ClassVar[bool] = False

    id: Text
    metric: Text

    @abstractmethod
    def asks(self) -> str:
        """What the rule asks for, as reports print it."""


class MinRule(_Rule):
    """The metric is at least `min`."""

    reads = "run"

    kind: Literal["min"]
    min: Annotated[float, Field(ge=0, le=1)]

    def asks(self) -> str:
        return f"at least {_hundredths(self.min)}%"


class ObservedCountRule(_Rule):
    """At most `max_failures` failures were seen; says nothing beyond the cases executed."""

    reads = "run"
    counts_failures = True

    kind: Literal["observed_count"]
    max_failures: CountOrZero

    def asks(self) -> str:
        return f"at most {_counted(self.max_failures, 'failure')}"


class NonInferiorityRule(_Rule):
    """The candidate is worse than the baseline by less than `margin`."""

    reads = "pair"

    kind: Literal["non_inferiority"]
    margin: Annotated[float, Field(gt=0, le=1)]

    def asks(self) -> str:
        return f"non-inferiority, margin {_hundredths(self.margin)} points"


class NewFailuresRule(_Rule):
    """At most `max` cases that passed in the baseline fail in the candidate."""

    reads = "pair"
    counts_failures = True

    kind: Literal["new_failures"]
    max: CountOrZero

    def asks(self) -> str:
        return f"at most {_counted(self.max, 'new failure')}"


AnyRule = Annotated[
    MinRule | ObservedCountRule | NonInferiorityRule | NewFailuresRule,
    Field(discriminator="kind"),
]


class PolicyConfig(Settings):
    """The contents of a policy file."""

    version: Version
    confidence_level: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    block_on: ListOf[OpenState] = ("FAIL", "INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW")
    warn_on: ListOf[OpenState] = ()
    rules: Annotated[ListOf[AnyRule], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy file: `path` as the user named it, and `lines`, which knows where each key stands."""

    path: Path
    config: PolicyConfig
    lines: SourceLines


def load_policy(path: Path) -> Policy:
    """Read a policy file. Raises ConfigurationError with every problem, file and line."""
    loaded = load_yaml(path)
    config = validate(PolicyConfig, loaded)
    problems = list(_contradictions(config, loaded.lines))
    if problems:
        raise ConfigurationError(*capped(problems))
    return Policy(path, config, loaded.lines)


def check_metrics(policy: Policy, known: Collection[str], pass_fail: Collection[str]) -> None:
    """Check that each rule's metric is one of `known`, and of `pass_fail` where the rule counts failures.

    Raises ConfigurationError with file, line and the nearest name.
    """
    problems = []
    for index, rule in enumerate(policy.config.rules):
        if rule.metric not in known:
            sentence = f"no evaluator yields the metric {rule.metric}; {hint(rule.metric, known)}"
        elif rule.counts_failures and rule.metric not in pass_fail:
            options = hint(rule.metric, pass_fail, "pass/fail criteria are")
            sentence = f"{rule.kind} counts failures, and {rule.metric} is a score; {options}"
        else:
            continue
        problems.append(policy.lines.problem(("rules", index, "metric"), sentence))
    if problems:
        raise ConfigurationError(*capped(problems))


def _contradictions(config: PolicyConfig, lines: SourceLines) -> Iterator[str]:
    """Problems between settings that are well-formed each for itself."""
    first: dict[str, int] = {}
    for index, rule in enumerate(config.rules):
        earlier = first.setdefault(rule.id, index)
        if earlier != index:
            line = lines.line("rules", earlier, "id")
            sentence = f"{rule.id} is the id of the rule on line {line} already"
            yield lines.problem(("rules", index, "id"), sentence)
    for index, state in enumerate(config.warn_on):
        if state in config.block_on:
            there = (
                f"block_on on line {lines.line('block_on')}"
                if "block_on" in config.model_fields_set
                else "the default block_on; write a block_on without it"
            )
            yield lines.problem(("warn_on", index), f"{state} cannot warn and block; it stands in {there}")


def _hundredths(share: float) -> str:
    """0.05 as `5.0`: one decimal, or as many as the number has, so that no threshold is misprinted."""
    hundredths = (Decimal(repr(float(share))) * 100).normalize()
    exponent = hundredths.as_tuple().exponent
    return f"{hundredths:.{max(1, -exponent if isinstance(exponent, int) else 1)}f}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
