"""Identities as text: what stored results depend on, and what has changed since a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oloproof.identity.difference import Change
from oloproof.identity.system import System
from oloproof.report.tables import grid
from oloproof.report.terminal import plain

STAGES = ("retrieve", "count_tokens", "generate")
_SETTINGS = {
    "retrieve": ("name", "version", "object", "index_version", "depth"),
    "count_tokens": ("name", "version", "object"),
    "generate": ("name", "version", "object"),
}
#: How many characters of a digest are shown.
SHORT = 12


def identity_text(system: System, ingredients: Mapping[str, Mapping[str, str]], stages: Sequence[str]) -> str:
    """What the stored results of each stage depend on, beside the input and the files that are read."""
    lines = []
    for stage in stages:
        rows = [[name, plain(str(getattr(system, name)))] for name in _SETTINGS[stage]]
        if system.environment:
            rows.append(["environment variables", system.environment[:SHORT]])
        rows += [[plain(name), plain(value[:40])] for name, value in ingredients.get(stage, {}).items()]
        print_of = getattr(system.fingerprints, stage)
        lines += [f"{stage}: code fingerprint {print_of[:SHORT]}", *grid(["Ingredient", "Value"], rows)]
    lines.append(
        f"top_k {system.top_k} and token_budget {system.token_budget} decide which contexts are made; they are part of "
        "no stage"
    )
    return "\n".join(lines)


def changes_text(run_id: str, changes: Sequence[Change]) -> str:
    """What differs from a run, and what therefore runs again."""
    if not changes:
        return (
            f"Nothing that identities are made of has changed since {run_id}; files that stages read are looked at "
            "when it runs"
        )
    rows = [
        [
            plain(change.name),
            _shown(change.before),
            _shown(change.after),
            ", ".join(change.stages),
        ]
        for change in changes
    ]
    lines = [f"Changed since {run_id}", *grid(["Ingredient", "Then", "Now", "Runs again"], rows)]
    again = [stage for stage in STAGES if any(stage in change.stages for change in changes)]
    kept = [stage for stage in STAGES if stage not in again]
    if again:
        lines.append(f"Runs again: {', '.join(again)}")
    if kept:
        lines.append(f"Still valid: {', '.join(kept)}")
    if any("assembly" in change.stages for change in changes):
        lines.append("Contexts are assembled anew; generate runs for those that come out different")
    return "\n".join(lines)


def _shown(value: str | None) -> str:
    return "-" if value is None else plain(value[:40])
