"""Making all sections fit into one comment: what says least is given up first, and never a gate.

A section is cut in four steps: to its heading, the sentence that says why, and the table of decisions; to heading and
sentence; to the heading; and last it is folded, so that it is only counted by its gate. Those that allow give way to
those that warn, and both to those that block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from oloproof.decisions.records import GateState
from oloproof_ci.github.marked import Mark, Section, gate_of, size

#: GitHub refuses a comment above 65,536 characters; this leaves room for the text about folded sections.
MAX_BYTES = 65_000
#: The least that a suite's section gets, in bytes, before others are shortened for it.
LEAST = 8_000

#: The most sections that are as much as counted: more than there are suites and legs in any workflow.
MOST = 800

_GATES = list(GateState)
_NOTE = "<sub>Shortened, to leave room for other suites; the step summary has it whole.</sub>"
#: How the table of decisions begins.
_DECISIONS = "|   | Rule"


@dataclass(frozen=True)
class Draft:
    """A section to be written: `render` gives its text in at most so many bytes, as far as it can."""

    mark: Mark
    render: Callable[[int], str]


def fitted(others: Sequence[Section], drafts: Sequence[Draft]) -> list[Section]:
    """All sections, small enough for one comment: the drafts take what the others leave, and those are cut when that
    is too little."""
    wanted = min(LEAST * len(drafts), MAX_BYTES // 2)
    standing = shrunk(others, MAX_BYTES - wanted, _SHORTENING)
    room = _left(standing) // max(1, len(drafts))
    drawn = [_drawn(draft, room) for draft in drafts]
    worst = max(map(gate_of, drawn), key=_GATES.index, default=None)
    pressing = [at for at, section in enumerate(drawn) if gate_of(section) is worst]
    spare = _left([*standing, *drawn]) // max(1, len(pressing))
    if len(pressing) < len(drawn) and spare > 0:  # what the others do not need goes to those that say most
        for at in pressing:
            drawn[at] = _drawn(drafts[at], room + spare)
    every = sorted([*standing, *drawn], key=lambda section: -_GATES.index(gate_of(section)))
    return shrunk(every[:MOST], MAX_BYTES, _ALL)


def shrunk(
    sections: Iterable[Section], max_bytes: int, steps: Sequence[_Step] | None = None
) -> list[Section]:
    """The sections, in their order, cut as far as it takes for `max_bytes`; by default none is folded."""
    held = list(sections)
    total = sum(map(size, held))
    for gate, cut in _UNFOLDED if steps is None else steps:
        concerned = [at for at, section in enumerate(held) if gate_of(section) is gate]
        for at in sorted(concerned, key=lambda at: -size(held[at])):
            if total <= max_bytes:
                break
            less = cut(held[at])
            if size(less) < size(held[at]):
                total -= size(held[at]) - size(less)
                held[at] = less
    return sorted(held, key=lambda section: section.mark.order)


def _left(sections: Iterable[Section]) -> int:
    return max(0, MAX_BYTES - sum(map(size, sections)))


def _drawn(draft: Draft, room: int) -> Section:
    empty = size(Section(draft.mark, ""))
    section = Section(draft.mark, draft.render(room - empty).strip("\n"))
    return section if size(section) <= room else shortened(section)


# ------------------------------------------------------------------------------------------------ the steps


def shortened(section: Section) -> Section:
    """A section of which the heading, the first paragraph and the table of decisions are left."""
    if section.mark.folded:
        return section
    parts = section.text.split("\n\n")
    decisions = [part for part in parts[2:] if part.startswith(_DECISIONS)][:1]
    return Section(section.mark, "\n\n".join([*parts[:2], *decisions, _NOTE]))


def _outlined(section: Section) -> Section:
    return Section(section.mark, "\n\n".join([*section.text.split("\n\n")[:2], _NOTE]))


def _headed(section: Section) -> Section:
    return Section(section.mark, section.text.partition("\n")[0])


def _folded(section: Section) -> Section:
    return Section(replace(section.mark, suite="", leg="", folded=section.mark.name), gate_of(section).value)


_Step = tuple[GateState, Callable[[Section], Section]]
_SHORTENING: tuple[_Step, ...] = (
    (GateState.ALLOW, shortened),
    (GateState.WARN, shortened),
    (GateState.BLOCK, shortened),
)
_TO_HEADINGS: tuple[_Step, ...] = (
    (GateState.ALLOW, shortened),
    (GateState.ALLOW, _outlined),
    (GateState.WARN, shortened),
    (GateState.BLOCK, shortened),
    (GateState.ALLOW, _headed),
    (GateState.WARN, _outlined),
    (GateState.WARN, _headed),
)
_LAST: tuple[_Step, ...] = ((GateState.BLOCK, _outlined), (GateState.BLOCK, _headed))
_UNFOLDED = (*_TO_HEADINGS, *_LAST)
_ALL = (
    *_TO_HEADINGS,
    (GateState.ALLOW, _folded),
    (GateState.WARN, _folded),
    *_LAST,
    (GateState.BLOCK, _folded),
)
