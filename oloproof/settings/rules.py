"""The kinds of rules that a policy may hold: what each reads, and what it asks for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from decimal import Decimal
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from oloproof.settings.fields import (
    CountOrZero,
    OptionalCount,
    OptionalShare,
    OptionalText,
    Settings,
    Share,
    Text,
    not_null,
)

#: How the interval of a difference is made: by betting, or for pass/fail criteria exactly.
DifferenceMethod = Literal["bounded", "exact"]
#: Whether a metric is better the higher it is (`min`: it has a floor) or the lower (`max`: it has a ceiling).
Direction = Literal["min", "max"]

ALL = "all"
_SLICE = "slice/"


#: What a scope looks like, for editors that check a policy while it is written.
_SCOPE_SCHEMA = {"type": "string", "pattern": f"^({ALL}|{_SLICE}[^=]+=.+)$"}


def _scope(text: str) -> str:
    if text != ALL and split_scope(text) is None:
        raise ValueError(f"expected {ALL} or {_SLICE}NAME=VALUE, such as {_SLICE}metadata.topic=billing")
    return text


def split_scope(scope: str) -> tuple[str, str] | None:
    """The slice and the value of `slice/metadata.topic=billing`; None of `all` and of what is no scope."""
    name, equals, value = scope.removeprefix(_SLICE).partition("=")
    return (name, value) if scope.startswith(_SLICE) and name and equals and value else None


class Rule(Settings, ABC):
    """What every rule has. `reads` is what it decides on: one run, or a candidate paired with a baseline.

    `scope` is all cases or one value of a slice. Fewer cases (or pairs) than `min_support` are insufficient evidence,
    more missing ones than `max_missing_fraction` always block. With `requires_manual_review` a rule that does not fail
    asks for a person.
    """

    reads: ClassVar[Literal["run", "pair"]]
    #: Whether the metric must be a pass/fail criterion: the rule counts failures.
    counts_failures: ClassVar[bool] = False

    id: Text
    metric: Text
    scope: Annotated[str, AfterValidator(_scope), WithJsonSchema(_SCOPE_SCHEMA)] = ALL
    family: OptionalText = None
    min_support: OptionalCount = None
    max_missing_fraction: OptionalShare = None
    requires_manual_review: bool = False

    @property
    def slice(self) -> tuple[str, str] | None:
        """The slice and the value that the rule is about; None when it is about all cases."""
        return split_scope(self.scope)

    @abstractmethod
    def asks(self) -> str:
        """What the rule asks for, as reports print it."""


class MinRule(Rule):
    """The metric is at least `min`."""

    reads = "run"

    kind: Literal["min"]
    min: Share

    def asks(self) -> str:
        return f"at least {_hundredths(self.min)}%"


class MaxRule(Rule):
    """The metric is at most `max`."""

    reads = "run"

    kind: Literal["max"]
    max: Share

    def asks(self) -> str:
        return f"at most {_hundredths(self.max)}%"


class ObservedCountRule(Rule):
    """At most `max_failures` failures were seen; says nothing beyond the cases executed."""

    reads = "run"
    counts_failures = True

    kind: Literal["observed_count"]
    max_failures: CountOrZero

    def asks(self) -> str:
        return f"at most {_counted(self.max_failures, 'failure')}"


class DifferenceRule(Rule):
    """A rule on the interval of candidate minus baseline. `difference_method` is the policy's unless it is set."""

    reads = "pair"

    difference_method: Annotated[
        DifferenceMethod | None, BeforeValidator(not_null, json_schema_input_type=DifferenceMethod)
    ] = None


class NonInferiorityRule(DifferenceRule):
    """The candidate is worse than the baseline by less than `margin`."""

    kind: Literal["non_inferiority"]
    margin: Annotated[float, Field(gt=0, le=1)]
    direction: Direction = "min"

    def asks(self) -> str:
        return f"non-inferiority, margin {_hundredths(self.margin)} points{_lower_is_better(self.direction)}"


class SuperiorityRule(DifferenceRule):
    """The candidate is better than the baseline."""

    kind: Literal["superiority"]
    direction: Direction = "min"

    def asks(self) -> str:
        return f"superiority{_lower_is_better(self.direction)}"


class EquivalenceRule(DifferenceRule):
    """The candidate differs from the baseline by less than `margin`, either way."""

    kind: Literal["equivalence"]
    margin: Annotated[float, Field(gt=0, le=1)]

    def asks(self) -> str:
        return f"equivalence, margin {_hundredths(self.margin)} points"


class NewFailuresRule(Rule):
    """At most `max` cases that passed in the baseline fail in the candidate."""

    reads = "pair"
    counts_failures = True

    kind: Literal["new_failures"]
    max: CountOrZero

    def asks(self) -> str:
        return f"at most {_counted(self.max, 'new failure')}"


AnyRule = Annotated[
    MinRule
    | MaxRule
    | ObservedCountRule
    | NonInferiorityRule
    | SuperiorityRule
    | EquivalenceRule
    | NewFailuresRule,
    Field(discriminator="kind"),
]


def _lower_is_better(direction: Direction) -> str:
    return ", lower is better" if direction == "max" else ""


def _hundredths(share: float) -> str:
    """0.05 as `5.0`: one decimal, or as many as the number has, so that no threshold is misprinted."""
    hundredths = (Decimal(repr(float(share))) * 100).normalize()
    exponent = hundredths.as_tuple().exponent
    return f"{hundredths:.{max(1, -exponent if isinstance(exponent, int) else 1)}f}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
