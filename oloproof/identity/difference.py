"""What two systems differ in, and which stages therefore run again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oloproof.identity.system import System

Ingredients = Mapping[str, Mapping[str, str]]

_STAGES = ("retrieve", "count_tokens", "generate")
#: The settings and the results that depend on each.
_DEPENDS = {
    "name": _STAGES,
    "version": _STAGES,
    "object": _STAGES,
    "environment": _STAGES,
    "index_version": ("retrieve",),
    "depth": ("retrieve",),
    "top_k": ("assembly",),
    "token_budget": ("assembly",),
}


@dataclass(frozen=True)
class Change:
    """An ingredient that differs: what it was and is (None: it was not or is not there), and what depends on it.

    `stages` names retrieve, count_tokens and generate, whose stored results no longer count, and assembly, which
    stores nothing: of a changed assembly only contexts that come out different are generated again.
    """

    name: str
    before: str | None
    after: str | None
    stages: tuple[str, ...]


def differences(then: System, now: System, before: Ingredients, after: Ingredients) -> tuple[Change, ...]:
    """Every ingredient in which the systems differ: settings first, then code and packages by name."""
    changes = [
        Change(name, _text(getattr(then, name)), _text(getattr(now, name)), stages)
        for name, stages in _DEPENDS.items()
        if getattr(then, name) != getattr(now, name)
    ]
    found: dict[tuple[str, str | None, str | None], list[str]] = {}
    for stage in _STAGES:
        if getattr(then.fingerprints, stage) == getattr(now.fingerprints, stage):
            continue
        old, new = before.get(stage, {}), after.get(stage, {})
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                found.setdefault((name, old.get(name), new.get(name)), []).append(stage)
    code = sorted(found.items(), key=lambda entry: entry[0][0])
    return (*changes, *(Change(*key, tuple(stages)) for key, stages in code))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
