"""The values that flow through an evaluation, one per arrow of the design; all frozen.

Records that are stored or printed have a JSON form, made and read by `oloproof.jsonform`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from oloproof.canonical import canonical_json, given_json
from oloproof.once import once

# ---------------------------------------------------------------------------------------------- cases


class Relevant(NamedTuple):
    """One entry of `expected.relevant`: a document, or one chunk of it, and its grade (gain)."""

    doc_id: str
    chunk_id: str | None
    grade: float


class GoldPassage(NamedTuple):
    """One entry of `expected.gold_context`: a passage that answers the question."""

    doc_id: str
    text: str
    chunk_id: str | None


@dataclass(frozen=True)
class Case:
    """One line of the case file.

    `relevant` and `gold_context` are None when the case does not declare them. `line` is the 1-based line
    in the file, 0 when the case comes from a stored run.
    """

    id: str
    input: Any
    expected: Mapping[str, Any]
    metadata: Mapping[str, Any]
    relevant: tuple[Relevant, ...] | None
    gold_context: tuple[GoldPassage, ...] | None
    line: int = 0

    @once
    def input_json(self) -> str:
        """Canonical JSON of the input: what makes two inputs the same."""
        return canonical_json(self.input)

    @once
    def input_given(self) -> str:
        """JSON of the input as the app sees it, order of keys included: what its results are identified by."""
        return given_json(self.input)

    @once
    def expected_json(self) -> str:
        """Canonical JSON of everything that is expected."""
        return canonical_json(dict(self.expected))

    @once
    def relevant_json(self) -> str:
        """Canonical JSON of the declared relevance: the expected value of the ranking evaluators."""
        return canonical_json(self.relevant)

    def to_json(self) -> dict[str, Any]:
        """The case as it stands in a case file."""
        return {
            "id": self.id,
            "input": self.input,
            "expected": dict(self.expected),
            "metadata": dict(self.metadata),
        }


# ----------------------------------------------------------------------------------------- executions


class Candidate(NamedTuple):
    """A retrieved passage as it is recorded: the text itself is stored once, under `text_id`."""

    doc_id: str
    chunk_id: str | None
    score: float | None
    text_id: str | None


class StageError(NamedTuple):
    """Why a case is errored. `kind`: exception, invalid_return, exit, crash, timeout, or unavailable."""

    stage: str
    kind: str
    message: str
    traceback: str | None = None


class Attempt(NamedTuple):
    """A stage call that errored, whether or not it was repeated."""

    stage: str
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Execution:
    """One case's way through the stages.

    `candidates` is the recorded retrieval in order; `kept` of them, from the top, made the context, unless
    `gold` is given, which then is the context. `context_truncated` is true when the token budget, not top_k,
    left a passage out. `output` is None when `error` is set. Seconds are None for a stage that was not run
    for this execution (a hit), and sum over attempts otherwise. `retrieval` is the key of the stored retrieval, None
    when the context was given. `attempts` holds the calls that errored.
    """

    id: bytes
    candidates: tuple[Candidate, ...]
    top_k: int
    kept: int
    output: Mapping[str, Any] | None
    error: StageError | None = None
    gold: tuple[Candidate, ...] | None = None
    retrieved: bool = True
    hit: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)
    log: str = ""
    retrieval: bytes | None = None
    attempts: tuple[Attempt, ...] = ()

    @property
    def context(self) -> tuple[Candidate, ...]:
        return self.candidates[: self.kept] if self.gold is None else self.gold

    @property
    def context_truncated(self) -> bool:
        return self.gold is None and self.kept < min(self.top_k, len(self.candidates))


# ------------------------------------------------------------------------------------------ judgments


class State(StrEnum):
    """Whether a judgment says something: observed, missing (could not be measured), or excluded (does not
    apply)."""

    OBSERVED = "observed"
    MISSING = "missing"
    EXCLUDED = "excluded"


class Judgment(NamedTuple):
    """What an evaluator says of one case. `value` is 1.0 or 0.0 for a pass/fail criterion, a score in [0, 1]
    otherwise, None when missing or excluded; then `reason` says why, as a code, and `detail` may say more."""

    state: State
    value: float | None = None
    reason: str | None = None
    detail: str | None = None

    @property
    def passed(self) -> bool:
        return self.value == 1.0

    @property
    def failed(self) -> bool:
        return self.state is State.OBSERVED and self.value != 1.0


PASSED = Judgment(State.OBSERVED, 1.0)
FAILED = Judgment(State.OBSERVED, 0.0)


def missing(reason: str, detail: str = "") -> Judgment:
    return Judgment(State.MISSING, None, reason, detail or None)


def excluded(reason: str) -> Judgment:
    return Judgment(State.EXCLUDED, None, reason)


# -------------------------------------------------------------------------------------------- metrics


class Interval(NamedTuple):
    """A two-sided interval with the method that made it."""

    lower: float
    upper: float
    confidence: float
    method: str


@dataclass(frozen=True)
class Metric:
    """One criterion over a set of cases.

    `kind` is "rate" when the value of a case can only be 0 or 1 on this suite, else "mean". `total` is the sum
    of observed values (for a rate, the number passed). `estimate` is None when nothing was observed,
    `interval` None when not asked for. `excluded` and `missing_reasons` count by reason.
    """

    criterion: str
    kind: str
    total: float
    observed: int
    missing: int
    excluded: Mapping[str, int]
    estimate: float | None
    interval: Interval | None
    missing_reasons: Mapping[str, int] = field(default_factory=dict)
