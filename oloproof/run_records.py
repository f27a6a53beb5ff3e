"""The records of whole runs: what was measured, of what, and what it came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oloproof.identity.system import System
from oloproof.judges.costs import JudgeCosts
from oloproof.records import FAILED, PASSED, Attempt, Judgment, Metric, StageError, State
from oloproof.statistics.agreement import CorrectedRate


class Tally(NamedTuple):
    """Hits and misses of one cache."""

    hit: int = 0
    miss: int = 0


@dataclass(frozen=True)
class CacheCounts:
    """What was reused. The stage counts cover the executions that missed; `equal_inputs` says how many cases were
    served by another case of the same run with the same input."""

    execution: Tally
    judgment: Tally
    retrieve: Tally
    generate: Tally
    equal_inputs: int


@dataclass(frozen=True)
class EvaluatorRecord:
    """An evaluator as a run used it. `kind` is pass_fail or score, `reads` retrieval or answer. `data` holds the files
    that the user's own code read to judge the run, by path from the top of the checkout, with their digests (None: it
    was not there). `validated` is false of one that has to be checked against people and was not."""

    criterion: str
    kind: str
    reads: str
    definition: Mapping[str, Any]
    data: Mapping[str, str | None] = field(default_factory=dict)
    validated: bool = True


@dataclass(frozen=True)
class SliceRow:
    """The metrics of the cases that share one value of a slice. Exploratory: never gated by default."""

    slice: str
    value: str
    cases: int
    metrics: tuple[Metric, ...]


@dataclass(frozen=True)
class StaleRetrievals:
    """Stored retrievals that did not count and ran again: a file they had read has changed while `index_version`
    stayed as it was. `files` names what changed, below the project's root."""

    retrievals: int
    files: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """One evaluation of one system on one set of cases.

    `kind` is "run", or for a diagnosis's child runs what they intervened on; `parent` then names the run that was
    diagnosed. `cases` is how many there are, `attempted` how many came to an end, `errored` how many of those did
    not give an answer. `finished` is false while it goes on and for ever if it was interrupted. `created` is ISO
    8601 in UTC. `config` is the configuration's path as the user gave it, `seconds` is the whole evaluation,
    `stage_seconds` what the stage calls made in it took together. `stale` is set when a file that retrievals had read
    changed under an unchanged index_version. `programs` are those that the user's code started for its results: what
    they read is not seen. `corrected` are the pass rates that people would have
    found, of judges that are to be corrected. `ingredients` says for each stage what its code fingerprint is made of.
    """

    id: str
    kind: str
    parent: str | None
    created: str
    project: str
    config: str
    dataset: str
    dataset_digest: str
    system: System
    evaluators: tuple[EvaluatorRecord, ...]
    relevance_unit: str
    slices: tuple[str, ...]
    min_slice_support: int
    cases: int
    attempted: int
    errored: int
    cache: CacheCounts
    metrics: tuple[Metric, ...]
    slice_rows: tuple[SliceRow, ...]
    seconds: float
    stage_seconds: float
    finished: bool
    stale: StaleRetrievals | None = None
    programs: tuple[str, ...] = ()
    judges: JudgeCosts | None = None
    corrected: tuple[CorrectedRate, ...] = ()
    ingredients: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def metric(self, criterion: str) -> Metric | None:
        return next((m for m in self.metrics if m.criterion == criterion), None)

    def evaluator_index(self, criterion: str) -> int | None:
        """The position of a criterion in each case's judgments."""
        return next((i for i, e in enumerate(self.evaluators) if e.criterion == criterion), None)


class CaseRow(NamedTuple):
    """One case of a run as it is stored. `judgments` follow the run's evaluators, `tags` its slices (None: the
    case is in none). `body` names the case's content, `pair` its input and expected value. `attempts` are stage calls
    that errored, repeated or not; `retrieval` and `kept` say how far a case came that errored later."""

    position: int
    case_id: str
    body: bytes
    pair: bytes
    execution: bytes | None
    judgments: tuple[Judgment, ...]
    tags: tuple[str | None, ...]
    error: StageError | None
    seconds: Mapping[str, float]
    log: str
    attempts: tuple[Attempt, ...] = ()
    retrieval: bytes | None = None
    kept: int = 0


def judgment_to_json(judgment: Judgment) -> Any:
    """A number when observed, else [state, reason], with a detail where there is one."""
    if judgment.state is State.OBSERVED:
        return judgment.value
    if judgment.detail is not None:
        return [judgment.state.value, judgment.reason, judgment.detail]
    return [judgment.state.value, judgment.reason]


def judgment_from_json(value: Any) -> Judgment:
    if isinstance(value, list):
        return Judgment(State(value[0]), None, *value[1:])
    if value in (0.0, 1.0):  # most are; they share one record
        return PASSED if value else FAILED
    return Judgment(State.OBSERVED, float(value))
