"""Identities as text: what stored results depend on, and what has changed since a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oloproof.identity.system import System
from oloproof.report.tables import grid
from oloproof.report.terminal import plain
from oloproof.validity.difference import ASSEMBLY, JUDGE, STAGES, Change
from oloproof.validity.outlook import Outlook

_SETTINGS = {
    "retrieve": ("name", "version", "object", "index_version", "depth"),
    "count_tokens": ("name", "version", "object"),
    "generate": ("name", "version", "object"),
}
#: How many characters of a digest are shown.
SHORT = 12


def identity_text(system: System, ingredients: Mapping[str, Mapping[str, str]], groups: Sequence[str]) -> str:
    """What stored results depend on, beside the input and the files that are read; `groups` are stages, and other
    groups of ingredients."""
    lines = []
    for group in groups:
        rows = []
        title = plain(group)
        if group in STAGES:
            title += f": code fingerprint {getattr(system.fingerprints, group)[:SHORT]}"
            rows = [[name, plain(str(getattr(system, name)))] for name in _SETTINGS[group]]
            rows += [[name, digest[:SHORT]] for name, digest in _wholes(system)]
        rows += [[plain(name), plain(value[:40])] for name, value in ingredients.get(group, {}).items()]
        if rows:
            lines += [title, *grid(["Ingredient", "Value"], rows)]
    lines.append(
        f"top_k {system.top_k} and token_budget {system.token_budget} decide which contexts are made; they are part of "
        "no stage"
    )
    return "\n".join(lines)


def _wholes(system: System) -> list[tuple[str, str]]:
    """The digests that belong to every stage, where there is what they stand for."""
    found = [("environment variables", system.environment), ("prepare", system.prepare)]
    return [(name, digest) for name, digest in found if digest]


def changes_text(run_id: str, changes: Sequence[Change], ahead: Outlook) -> str:
    """What differs from a run, and what therefore runs again."""
    if not changes:
        return f"Nothing that results depend on has changed since {run_id}\n{outlook_line(ahead)}"
    rows = [
        [
            plain(change.name),
            _shown(change.before),
            _shown(change.after),
            ", ".join(change.stages) or "-",
        ]
        for change in changes
    ]
    lines = [f"Changed since {run_id}", *grid(["Ingredient", "Then", "Now", "Runs again"], rows)]
    parts = (*STAGES, JUDGE)
    again = [part for part in parts if any(part in change.stages for change in changes)]
    kept = [part for part in parts if part not in again]
    if again:
        lines.append(f"Runs again: {', '.join(again)}")
    if kept:
        lines.append(f"Still valid: {', '.join(kept)}")
    if any(ASSEMBLY in change.stages for change in changes):
        lines.append("Contexts are assembled anew; generate runs for those that come out different")
    return "\n".join([*lines, outlook_line(ahead)])


def outlook_line(ahead: Outlook) -> str:
    """What a run would do now."""
    generate = f"{ahead.generate} generate"
    if ahead.unsure:
        generate = f"{ahead.generate - ahead.unsure} to {ahead.generate} generate"
    return (
        f"A run now: execution {ahead.execution.hit} hit/{ahead.execution.miss} miss; judgment "
        f"{ahead.judgment.hit} hit/{ahead.judgment.miss} miss; calls: {ahead.retrieve} retrieve, "
        f"{ahead.count_tokens} count_tokens, {generate}"
    )


def _shown(value: str | None) -> str:
    return "-" if value is None else plain(value[:40])
