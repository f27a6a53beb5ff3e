"""What the rules of a policy read, gathered from a run or from two paired ones."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from oloproof.comparison import Comparison, SliceValue
from oloproof.decisions.evidence import Differences, Evidence, ExactDifferences, Rate, Scores, Values
from oloproof.judges.checks import JudgeCheck
from oloproof.paired_runs import PairedRuns
from oloproof.records import Interval, Metric, State
from oloproof.run_records import CaseRow, Run
from oloproof.settings.policy import Policy
from oloproof.settings.rules import AnyRule, DifferenceRule, NewFailuresRule, ObservedCountRule

Rows = Callable[[], Iterable[CaseRow]]
#: A criterion, and the value of a slice, or None for all cases.
_Place = tuple[str, SliceValue | None]


@dataclass(frozen=True)
class Grounds:
    """What one rule is decided on; see `oloproof.decisions.rules.Facts` for what the fields mean. `validated` is false
    of a judge, which first has to meet the policy's bar; `check` is what is known of it."""

    evidence: Evidence
    failures: int = 0
    unstable: int = 0
    identical: bool = False
    validated: bool = True
    check: JudgeCheck | None = None


def place_of(rule: AnyRule) -> _Place:
    """What a rule is about."""
    return rule.metric, None if rule.slice is None else SliceValue(*rule.slice)


def unattempted(run: Run) -> int:
    """How many cases of a run never came to an end: all of them are missing to every rule."""
    return max(0, run.cases - run.attempted)


# ---------------------------------------------------------------------------------------------- one run


@dataclass
class RunGrounds:
    """The grounds of rules on one run. `rows` gives its cases anew each time; they are read once, and only when the
    run's metrics do not tell: for scores that need an interval of their own, and for a run that did not finish.
    `checks` are what is known of judges, by criterion."""

    run: Run
    rows: Rows
    places: Collection[_Place] = field(default_factory=list)
    checks: Mapping[str, JudgeCheck] = field(default_factory=dict)

    def of(self, rule: AnyRule) -> Grounds:
        place = place_of(rule)
        position = self.run.evaluator_index(rule.metric)
        if position is None:
            return Grounds(Rate(0, 0))
        evidence = self._evidence(place)
        failures = evidence.observed - evidence.passed if isinstance(evidence, Rate) else 0
        return Grounds(
            evidence,
            failures=failures if isinstance(rule, ObservedCountRule) else 0,
            validated=self.run.evaluators[position].validated,
            check=self.checks.get(rule.metric),
        )

    def _evidence(self, place: _Place) -> Evidence:
        missing = unattempted(self.run)
        if not self.run.finished or missing:
            return self._from_rows(place, missing)
        metric = self._metric(place)
        if metric is None:
            return Rate(0, 0, missing)
        if metric.kind == "rate":
            return Rate(round(metric.total), metric.observed, metric.missing)
        return _StoredScores(metric, lambda: self._columns[place].values)

    def _from_rows(self, place: _Place, missing: int) -> Evidence:
        column = self._columns[place]
        position = self.run.evaluator_index(place[0])
        assert position is not None
        missing += column.missing
        if self.run.evaluators[position].kind == "pass_fail":
            return Rate(round(sum(column.values)), len(column.values), missing)
        return Scores(column.values, missing)

    def _metric(self, place: _Place) -> Metric | None:
        criterion, within = place
        if within is None:
            return self.run.metric(criterion)
        for row in self.run.slice_rows:
            if (row.slice, row.value) == within:
                return next((metric for metric in row.metrics if metric.criterion == criterion), None)
        return None

    @cached_property
    def _columns(self) -> Mapping[_Place, _Column]:
        columns = {place: _Column() for place in self.places}
        wanted: list[tuple[int, int, str | None, _Column]] = []
        for (criterion, within), column in columns.items():
            position = self.run.evaluator_index(criterion)
            if position is None:
                continue
            if within is None:
                wanted.append((position, -1, None, column))
            elif within.slice in self.run.slices:
                wanted.append((position, self.run.slices.index(within.slice), within.value, column))
        for row in self.rows():
            for position, tag, value, column in wanted:
                if tag < 0 or row.tags[tag] == value:
                    column.add(row.judgments[position].state, row.judgments[position].value)
        return columns


class _Column:
    """The judgments of one criterion on some cases."""

    def __init__(self) -> None:
        self.values = array("d")
        self.missing = 0

    def add(self, state: State, value: float | None) -> None:
        if state is State.OBSERVED and value is not None:
            self.values.append(value)
        elif state is State.MISSING:
            self.missing += 1


class _StoredScores(Scores):
    """Scores whose interval the run's record may know already; the values are loaded when it does not."""

    def __init__(self, metric: Metric, load: Callable[[], array[float]]) -> None:
        self._metric, self._load = metric, load
        self.missing = metric.missing

    @cached_property
    def values(self) -> array[float]:  # type: ignore[override]
        return self._load()

    @property
    def observed(self) -> int:
        return self._metric.observed

    @property
    def estimate(self) -> float | None:
        return self._metric.estimate

    def interval(self, confidence: float) -> Interval:
        known = self._metric.interval
        return known if known is not None and known.confidence == confidence else super().interval(confidence)


# ---------------------------------------------------------------------------------------------- two runs


@dataclass(frozen=True)
class PairGrounds:
    """The grounds of rules on a pair of runs. `comparison` holds intervals that need not be made again; `unstable`
    names for each criterion the new failures that passed when they were repeated, `checks` what is known of judges."""

    pairs: PairedRuns
    comparison: Comparison
    unstable: Mapping[str, Collection[str]] = field(default_factory=dict)
    checks: Mapping[str, JudgeCheck] = field(default_factory=dict)

    def of(self, rule: AnyRule, policy: Policy) -> Grounds:
        metric, within = place_of(rule)
        found = self.pairs.differences(metric, within)
        if found is None:
            return Grounds(Rate(0, 0))
        absent = unattempted(self.pairs.candidate) + unattempted(self.pairs.baseline)
        flips = self.pairs.flips(metric, within)
        failures = () if flips is None else flips.new_failures
        doubtful = self.unstable.get(metric, ())
        position = self.pairs.candidate.evaluator_index(metric)
        values, missing = found.values, found.missing
        if isinstance(rule, NewFailuresRule):
            missing = self.pairs.could_newly_fail(metric, within)
        missing += absent
        evidence: Evidence
        if isinstance(rule, DifferenceRule) and policy.config.method_of(rule) == "exact":
            better, worse = int((values == 1.0).sum()), int((values == -1.0).sum())
            evidence = ExactDifferences(better, worse, len(values), missing)
        else:
            evidence = _KnownDifferences(values, missing, self._known(metric, within, absent))
        return Grounds(
            evidence,
            failures=len(failures),
            unstable=sum(case_id in doubtful for case_id in failures),
            identical=self.comparison.identical and not absent,
            validated=position is None or self.pairs.candidate.evaluators[position].validated,
            check=self.checks.get(metric),
        )

    def _known(self, criterion: str, within: SliceValue | None, absent: int) -> Interval | None:
        metric = None if within or absent else self.comparison.metric(criterion)
        return None if metric is None else metric.interval


class _KnownDifferences(Differences):
    """Differences whose interval may have been made already."""

    def __init__(self, values: Values, missing: int, known: Interval | None) -> None:
        super().__init__(values, missing)
        self._known = known

    def interval(self, confidence: float) -> Interval:
        known = self._known
        return known if known is not None and known.confidence == confidence else super().interval(confidence)
