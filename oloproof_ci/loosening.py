"""Every way in which a pull request asks less of itself than the base does; what it asks more is not told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from oloproof.pairing import EvaluatorChange
from oloproof.settings.policy import JudgeBar, Policy, PolicyConfig
from oloproof.settings.project import Project
from oloproof.settings.rules import AnyRule
from oloproof_ci.report import Loosening, SuiteChanges

GONE = "removed"


class _Placed(NamedTuple):
    """A rule with the policy it stands in."""

    rule: AnyRule
    policy: Policy

    @property
    def asks(self) -> str:
        """All that the rule asks, in words."""
        scope = "" if self.rule.slice is None else f", {self.rule.scope}"
        return f"{self.rule.metric}: {self.rule.asks()}{scope}"


def loosened_policies(
    base: Sequence[Policy], head: Sequence[Policy], evaluators: Sequence[EvaluatorChange] = ()
) -> list[Loosening]:
    """How the head's policies are looser than the base's. Rules are the same when their ids are, in whatever file, or
    else when they ask the same under another id. `evaluators` says which were renamed."""
    renamed = {change.detail[0]: change.criterion for change in evaluators if change.change == "renamed"}
    kept = [_Placed(rule, policy) for policy in head for rule in policy.config.rules]
    found: list[Loosening] = []
    places: dict[tuple[str, str], tuple[Policy, Policy]] = {}
    for policy in base:
        for other in head:
            if other.path == policy.path:
                places[str(policy.path), str(other.path)] = policy, other
        for rule in policy.config.rules:
            here = rule.model_copy(update={"metric": renamed.get(rule.metric, rule.metric)})
            before = _Placed(here, policy)
            after = _counterpart(before, kept)
            if after is None:
                found.append(Loosening(str(policy.path), f"rule {rule.id}", before.asks, GONE))
                continue
            places[str(policy.path), str(after.policy.path)] = policy, after.policy
            found += _rule(before, after)
    for policy, other in places.values():
        found += _settings(policy, other)
    return found


def _counterpart(rule: _Placed, head: Sequence[_Placed]) -> _Placed | None:
    """The head's version of a rule of the base."""
    same_id = [other for other in head if other.rule.id == rule.rule.id]
    in_place = [other for other in same_id if other.policy.path == rule.policy.path]
    same = [other for other in head if _content(other.rule) == _content(rule.rule)]
    return next(iter([*in_place, *same_id, *same]), None)


def _content(rule: AnyRule) -> dict[str, Any]:
    return rule.model_dump(exclude={"id"})


# ---------------------------------------------------------------------------------------------- rules

#: When the head's value of a rule's setting is looser than the base's.
_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "min": lambda before, after: after < before,
    "max": lambda before, after: after > before,
    "max_failures": lambda before, after: after > before,
    "margin": lambda before, after: after > before,
    "min_support": lambda before, after: (after or 0) < (before or 0),
    "requires_manual_review": lambda before, after: before and not after,
}
#: What a rule is about: with another value it asks another question, and the base's is asked no more.
_SUBJECT = ("metric", "kind", "scope", "direction")


def _rule(before: _Placed, after: _Placed) -> Iterator[Loosening]:
    where, what = str(after.policy.path), f"rule {before.rule.id}"
    if any(getattr(before.rule, key, None) != getattr(after.rule, key, None) for key in _SUBJECT):
        yield Loosening(where, what, before.asks, after.asks)
        return
    for key, looser in _BOUNDS.items():
        old, new = getattr(before.rule, key, None), getattr(after.rule, key, None)
        if old != new and looser(old, new):
            yield Loosening(where, f"{what}, {key}", _written(old), _written(new))
    support = [placed.rule.min_support or 0 for placed in (before, after)]
    if support[1] > support[0] and not _open_blocks(after.policy.config):  # it may be open where it failed
        yield Loosening(where, f"{what}, min_support", *map(_written, support))
    own = (before.rule.max_missing_fraction, after.rule.max_missing_fraction)
    if own != (None, None):  # else the policy's own setting tells it
        limits = (
            before.policy.config.missing_limit_of(before.rule),
            after.policy.config.missing_limit_of(after.rule),
        )
        if limits[1] > limits[0]:
            yield Loosening(where, f"{what}, max_missing_fraction", *map(_written, limits))
    yield from _method(before, after, where, what)
    if after.rule.family is not None and before.rule.family != after.rule.family:
        yield Loosening(where, f"{what}, family", _written(before.rule.family), after.rule.family)


def _method(before: _Placed, after: _Placed, where: str, what: str) -> Iterator[Loosening]:
    """Another way to make the interval may be wider or narrower, so any change of it is told."""
    own = [getattr(placed.rule, "difference_method", None) for placed in (before, after)]
    if own != [None, None]:
        old, new = (m or p.policy.config.difference_method for m, p in zip(own, (before, after), strict=True))
        if old != new:
            yield Loosening(where, f"{what}, difference_method", old, new)


# ------------------------------------------------------------------------------------------- settings

#: When a policy's own setting is looser.
_SETTINGS: dict[str, Callable[[Any, Any], bool]] = {
    "confidence_level": lambda before, after: after < before,
    "max_missing_fraction": lambda before, after: after > before,
    "difference_method": lambda before, after: before != after,
    "on_partial_run": lambda before, after: (before, after) == ("block", "warn"),
    "on_suite_change": lambda before, after: (before, after) == ("review", "allow"),
}


def _settings(before: Policy, after: Policy) -> Iterator[Loosening]:
    where, old, new = str(after.path), before.config, after.config
    for key, looser in _SETTINGS.items():
        was, now = getattr(old, key), getattr(new, key)
        if looser(was, now):
            yield Loosening(where, key, _written(was), _written(now))
    yield from _judges(old, new, where)
    if new.confidence_level > old.confidence_level and not _open_blocks(
        new
    ):  # rules may be open where they failed
        yield Loosening(
            where, "confidence_level", _written(old.confidence_level), _written(new.confidence_level)
        )
    asked_before, asked = _questions(old), _questions(new)
    for family, count in asked_before.items():
        if asked[family] > count:  # each must fail more clearly, the more there are
            yield Loosening(where, f"family {family}, rules", str(count), str(asked[family]))
    if set(old.block_on) - set(new.block_on):
        yield Loosening(where, "block_on", _states(old.block_on), _states(new.block_on))
    if _unseen(new) - _unseen(old) - set(old.block_on):
        yield Loosening(where, "warn_on", _states(old.warn_on), _states(new.warn_on))


def _judges(old: PolicyConfig, new: PolicyConfig, where: str) -> Iterator[Loosening]:
    """A lower bar for judges; without any no judge decides. Where what is undecided does not block, a higher bar is
    looser too, since what would have failed may then be undecided."""
    before, after = old.judges, new.judges
    if before is None or after is None:
        if before != after and (before is None or not _open_blocks(new)):
            yield Loosening(where, "judges", _bar(before), _bar(after))
        return
    for key in ("minimum_agreement", "minimum_labels"):
        was, now = getattr(before, key), getattr(after, key)
        if now < was or (now > was and not _open_blocks(new)):
            yield Loosening(where, f"judges.{key}", _written(was), _written(now))


def _bar(bar: JudgeBar | None) -> str:
    return (
        "not set" if bar is None else f"agreement of {bar.minimum_agreement} on {bar.minimum_labels} labels"
    )


def _questions(policy: PolicyConfig) -> Counter[str]:
    """How many rules each family corrects for: all but those that only count."""
    return Counter(rule.family for rule in policy.rules if rule.family and not rule.counts_failures)


def _open_blocks(policy: PolicyConfig) -> bool:
    """Whether a rule that is undecided blocks."""
    return "INSUFFICIENT_EVIDENCE" in policy.block_on


def _unseen(policy: PolicyConfig) -> set[str]:
    """The states that neither block nor warn."""
    return {"FAIL", "INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW"} - {*policy.block_on, *policy.warn_on}


def _states(states: Sequence[str]) -> str:
    return ", ".join(states) or "none"


def _written(value: Any) -> str:
    """A setting as it is written in YAML."""
    return "not set" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# ---------------------------------------------------------------------------------------------- suite


def loosened_suite(changes: SuiteChanges, base: Project, head: Project) -> list[Loosening]:
    """How the head's suite may ask less: cases and evaluators that are gone or judged in another way, and results that
    count though what they depend on has changed."""
    config, dataset = str(head.path), head.dataset_shown
    found = [Loosening(dataset, f"case {name}", "present", GONE) for name in changes.removed]
    found += [
        Loosening(config, *_evaluator(change))
        for change in changes.evaluators
        if change.change not in ("added", "renamed")  # a renamed one judges as it did
    ]
    before, after = base.config.identity, head.config.identity
    if (before.on_stale_index, after.on_stale_index) == ("error", "rerun"):
        found.append(Loosening(config, "identity.on_stale_index", "error", "rerun"))
    ignored = [pattern for pattern in after.ignore_files if pattern not in before.ignore_files]
    if ignored:
        found.append(
            Loosening(
                config, "identity.ignore_files", ", ".join(before.ignore_files), ", ".join(after.ignore_files)
            )
        )
    if set(before.env) - set(after.env):
        found.append(Loosening(config, "identity.env", ", ".join(before.env), ", ".join(after.env)))
    return found


def _evaluator(change: EvaluatorChange) -> tuple[str, str, str]:
    """What of an evaluator changed, and what stood and stands there."""
    name = f"evaluator {change.criterion}"
    if change.change == "removed":
        return name, "present", GONE
    parts = {"settings": "settings", "code": "code", "data": "files it reads"}
    detail = f" ({', '.join(change.detail)})" if change.detail else ""
    return name, "", f"other {parts[change.change]}{detail}"
