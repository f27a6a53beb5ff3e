"""The report of one pull request: everything that the comment, the summary and report.json say.

A frozen record with a JSON form; rendering it needs nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oloproof.comparison import Comparison
from oloproof.decisions.records import Gate
from oloproof.diagnosis.attribution import StageSwap
from oloproof.diagnosis.experiments import TriedExperiment
from oloproof.diagnosis.factors import Factor
from oloproof.diagnosis.labels import Label, Outcome, Strength
from oloproof.identity.system import System
from oloproof.judges.costs import JudgeCosts
from oloproof.pairing import EvaluatorChange, RenamedCase
from oloproof.records import Metric
from oloproof.run_records import CacheCounts
from oloproof.statistics.agreement import CorrectedRate
from oloproof.store.unstable import UnstableCase

REPORT_VERSION = 1


@dataclass(frozen=True)
class Commit:
    """A commit, and what the user calls it."""

    ref: str
    sha: str


@dataclass(frozen=True)
class Side:
    """The head or the base: which commit, which run, what it took.

    `ref` is what the user calls it (a branch, or "work tree"); `dirty` is true when uncommitted changes were measured
    too. `calls` counts the stage calls made now, `calls_avoided` the stage results that were reused, `stage_seconds` is
    the time spent in the stages now. `since` is how many seconds before this the run was made, when an earlier job made
    it; None for a run of now. `corrected` are the pass rates that people would have found, of judges that say so.
    """

    sha: str
    ref: str
    dirty: bool
    run: str
    system: System
    cases: int
    errored: int
    metrics: tuple[Metric, ...]
    cache: CacheCounts
    calls: int
    calls_avoided: int
    stage_seconds: float
    since: float | None = None
    corrected: tuple[CorrectedRate, ...] = ()


@dataclass(frozen=True)
class Place:
    """Where a relevant unit stood: its 1-based rank (None: not retrieved) and its fate: in context, cut by top_k,
    dropped by budget, or not retrieved."""

    rank: int | None
    fate: str


@dataclass(frozen=True)
class Evidence:
    """A relevant unit (`doc_id` or `doc_id#chunk_id`) and where it stood in base and head."""

    unit: str
    base: Place
    head: Place


@dataclass(frozen=True)
class NewFailure:
    """A case that passed in the base and fails in the head.

    `label` is NOT_DIAGNOSED with reason `over_budget` when more cases failed than are diagnosed, `switched_off`
    when none is. `head_repeat` and
    `base_repeat` say what an unchanged repeat came to, None where there was none; `unstable` is true when the head's
    passed or the base's failed. `expected`, `base_answer` and `head_answer` are
    the texts that the criterion read, shortened; None where there was none. `line` is the case's line in the case file.
    """

    case_id: str
    label: Label
    reason: str
    strength: Strength
    unstable: bool
    head_repeat: Outcome | None
    base_repeat: Outcome | None
    top_k: int
    evidence: tuple[Evidence, ...]
    expected: str | None
    base_answer: str | None
    head_answer: str | None
    line: int


@dataclass(frozen=True)
class LabelledCase:
    """A case that fails on both sides, and what its diagnosis says."""

    case_id: str
    label: Label


@dataclass(frozen=True)
class CriterionFailures:
    """What became of the cases of one pass/fail criterion. `diagnosed` of the new failures were re-executed;
    `diagnosis` is the id of the stored diagnosis. `still_failing` says for each case id nothing more than that;
    `still_failing_labels` says it of those that were diagnosed too, which happens only when it is asked for. `swap`
    says which changes the new failures hang on, None where none was looked into; `experiments` were tried on the
    recorded retrieval; `calls` is how many times `generate` was called for all this. `known_unstable` are those new
    failures and fixed cases that came out differently when they were repeated, now or before."""

    criterion: str
    new_failures: tuple[NewFailure, ...]
    fixed: tuple[str, ...]
    still_failing: tuple[str, ...]
    diagnosis: str | None
    diagnosed: int
    factors: tuple[Factor, ...]
    swap: StageSwap | None = None
    experiments: tuple[TriedExperiment, ...] = ()
    calls: int = 0
    known_unstable: tuple[UnstableCase, ...] = ()
    still_failing_labels: tuple[LabelledCase, ...] = ()


@dataclass(frozen=True)
class ErroredCase:
    """A case that gave no answer in the head: the stage and what happened there, as StageError says it, the message
    shortened.

    `base` says what the case came to in the base: passed when it passed any of the criteria whose failures are
    reported, else failed, or missing when none of them was judged, or errored; None when there is no base. `line` is
    the case's line in the case file.
    """

    case_id: str
    stage: str
    kind: str
    message: str
    base: Outcome | Literal["errored"] | None
    line: int


@dataclass(frozen=True)
class BaseError:
    """What most of the base's errored cases came to: the stage, the message, shortened, and how many they are."""

    stage: str
    message: str
    cases: int


@dataclass(frozen=True)
class Errors:
    """The head's errored cases: how many there are, how many of those passed in the base, and the first of them, those
    that passed in the base before the others. `in_base` is None where no case errored in the base."""

    total: int
    newly: int
    cases: tuple[ErroredCase, ...]
    in_base: BaseError | None = None


@dataclass(frozen=True)
class Warning:
    """Something a reader must know before trusting the figures: a code, and one sentence."""

    code: str
    text: str


@dataclass(frozen=True)
class PolicyFile:
    """A policy file whose rules were decided, as the user named it, and whose version it was: the base's, the head's,
    or that of a file outside the repository, which no pull request can change."""

    path: str
    version: Literal["base", "head", "outside"]


@dataclass(frozen=True)
class EditedCase:
    """A case with other contents than in the base: at which places (dotted paths such as expected.answer, the most
    telling first), and what stood and stands at the first of them (None: nothing). Of very many edited cases only the
    first say that. `line` is the case's line in the head's case file."""

    case_id: str
    places: tuple[str, ...]
    before: str | None
    after: str | None
    line: int


@dataclass(frozen=True)
class SuiteChanges:
    """What the head changes of the base's suite: its cases, held against the base's own case file, and its evaluators.
    `removed_failing` names those of the removed that failed a criterion when they were last measured, as far as that is
    known. `problem` says why the cases could not be held against each other; then none is named."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    removed_failing: tuple[str, ...] = ()
    renamed: tuple[RenamedCase, ...] = ()
    edited: tuple[EditedCase, ...] = ()
    evaluators: tuple[EvaluatorChange, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Loosening:
    """One way in which the head asks less of itself than the base: in which file, of what (a rule, a setting, a case),
    and what stood and stands there (empty: nothing)."""

    file: str
    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Report:
    """One pull request, measured. `base` and `comparison` are None when there is no baseline; `gate.reason` then says
    why, and `base_commit` which commit it would have been: None when a run was meant to stand alone. `policies` are
    the files whose rules were decided, `dataset` the head's case file, both as the user named them. `suite` is None
    when the base has no suite to compare with; `loosened` holds every way in which this pull request loosens what the
    base asks. `judges` is what models were asked for all of it, None where no judge is configured."""

    version: int
    project: str
    config: str
    dataset: str
    policies: tuple[PolicyFile, ...]
    gate: Gate
    head: Side
    base_commit: Commit | None
    base: Side | None
    comparison_id: str | None
    comparison: Comparison | None
    failures: tuple[CriterionFailures, ...]
    errors: Errors
    warnings: tuple[Warning, ...]
    suite: SuiteChanges | None = None
    loosened: tuple[Loosening, ...] = ()
    judges: JudgeCosts | None = None
