"""What two systems and their judges differ in, and which results therefore are made again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oloproof.identity.fingerprint import Ingredients
from oloproof.identity.system import ENVIRONMENT, PREPARE, System
from oloproof.run_records import EvaluatorRecord

STAGES = ("retrieve", "count_tokens", "generate")
JUDGE = "judge"
#: Makes nothing that is stored: of a changed assembly only contexts that come out different are generated again.
ASSEMBLY = "assembly"
_ALL = (*STAGES, JUDGE)
#: The settings and what depends on each.
_DEPENDS = {
    "name": _ALL,
    "version": _ALL,
    "object": _ALL,
    "index_version": ("retrieve", JUDGE),
    "depth": ("retrieve", JUDGE),
    "top_k": (ASSEMBLY, JUDGE),
    "token_budget": (ASSEMBLY, JUDGE),
}
#: What of an evaluator's definition is the digest of its code.
_CODE = "code"


@dataclass(frozen=True)
class Change:
    """An ingredient that differs: what it was and is (None: it was not or is not there), and what depends on it.

    `stages` names retrieve, count_tokens, generate and judge, whose stored results no longer count, and assembly.
    """

    name: str
    before: str | None
    after: str | None
    stages: tuple[str, ...]


@dataclass(frozen=True)
class Identified:
    """What stored results were, or would be, made with. `ingredients` has a group for each stage, for the environment,
    for `prepare`, and for each evaluator that is the user's own code."""

    system: System
    evaluators: Sequence[EvaluatorRecord]
    ingredients: Mapping[str, Ingredients]


def differences(then: Identified, now: Identified) -> tuple[Change, ...]:
    """Every ingredient that differs: settings first, then code and packages by name, then what judges."""
    return (*_settings(then, now), *_code(then, now), *_evaluators(then, now))


def _settings(then: Identified, now: Identified) -> Iterator[Change]:
    for name, stages in _DEPENDS.items():
        old, new = getattr(then.system, name), getattr(now.system, name)
        if old != new:
            yield Change(name, _text(old), _text(new), stages)
    for group, kind in ((ENVIRONMENT, "variable"), (PREPARE, "prepare:")):
        old, new = getattr(then.system, group), getattr(now.system, group)
        if old != new:
            parts = list(_parts(then, now, group))
            whole = (group, old[:16] or None, new[:16] or None)
            named = [(f"{kind} {name}", before, after) for name, before, after in parts]
            yield from (Change(*each, stages=_ALL) for each in named or [whole])


def _code(then: Identified, now: Identified) -> Iterator[Change]:
    found: dict[tuple[str, str | None, str | None], list[str]] = {}
    for stage in STAGES:
        if getattr(then.system.fingerprints, stage) != getattr(now.system.fingerprints, stage):
            for part in _parts(then, now, stage):
                found.setdefault(part, []).append(stage)
    for part, stages in sorted(found.items(), key=lambda entry: entry[0][0]):
        yield Change(*part, stages=(*stages, JUDGE))


def _evaluators(then: Identified, now: Identified) -> Iterator[Change]:
    old = {each.criterion: each.definition for each in then.evaluators}
    new = {each.criterion: each.definition for each in now.evaluators}
    for criterion in dict.fromkeys([*old, *new]):
        name = f"evaluator {criterion}"
        before, after = old.get(criterion), new.get(criterion)
        if before is None or after is None:
            judged = (JUDGE,) if after is not None else ()
            yield Change(name, _kind(before), _kind(after), judged)
            continue
        for key in sorted({*before, *after}):
            if before.get(key) == after.get(key):
                continue
            whole = (f"{name}: {key}", _text(before.get(key)), _text(after.get(key)))
            parts = _parts(then, now, name) if key == _CODE else ()
            named = [(f"{name}: {part}", was, is_now) for part, was, is_now in parts]
            yield from (Change(*each, stages=(JUDGE,)) for each in named or [whole])


def _kind(definition: Mapping[str, Any] | None) -> str | None:
    return None if definition is None else str(definition["type"])


def _parts(then: Identified, now: Identified, group: str) -> Iterable[tuple[str, str | None, str | None]]:
    """The ingredients of a group that differ, with what they were and are; none when one side's are not known."""
    old, new = then.ingredients.get(group, {}), now.ingredients.get(group, {})
    if not old and not new:
        return
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
