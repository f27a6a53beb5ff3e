"""The comment's hidden marks: several suites, and several jobs of a matrix, share one comment, each in its own section.

A section is `<!-- oloproof:1 {...} -->`, markdown, `<!-- /oloproof -->`. The mark says whose it is and of which run. No
text of a report can hold one, since its escaper breaks `<!--` up; that the comment is ours its author says.

Sections for which there is no room are folded: one block at the end counts them by their gates, and its mark says of
each of which run it is, under a digest of whose it is.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from oloproof.canonical import digest
from oloproof.decisions.records import GateState
from oloproof_ci.sections.words import GATE_ICONS

VERSION = 1
#: The bytes that a folded section takes at most, its share of the block included.
FOLDED_BYTES = 64

_ANY_VERSION = re.compile(r"<!-- oloproof:\d+ ")
_MARK_LINE = re.compile(rf"<!-- oloproof:{VERSION} (\{{[^\n]*\}}) -->")


@dataclass(frozen=True)
class Mark:
    """Whose section it is (`suite`, a configuration's path, and `leg`, of a matrix), and which run wrote it, on which
    head. `folded` is the name of one that is only counted; whose it is is not known then."""

    suite: str
    leg: str
    head: str
    run: int
    attempt: int
    folded: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.suite, self.leg

    @property
    def name(self) -> str:
        """The same for all sections of one suite and leg."""
        return self.folded or digest("section", *self.key).hex()[:16]

    @property
    def order(self) -> tuple[bool, str, str, str]:
        """Where it stands among others; those that are folded come last."""
        return bool(self.folded), self.suite, self.leg, self.folded

    @property
    def age(self) -> tuple[int, int]:
        """Later runs and attempts are greater."""
        return self.run, self.attempt


@dataclass(frozen=True)
class Section:
    """Of one that is folded the text is the name of its gate."""

    mark: Mark
    text: str


def gate_of(section: Section) -> GateState:
    """The gate that a section's heading tells."""
    if section.mark.folded:
        return GateState(section.text)
    found = [gate for gate, icon in GATE_ICONS.items() if section.text.startswith(f"## {icon}")]
    return found[0] if found else GateState.ALLOW


def is_marked(body: str) -> bool:
    """Whether a comment is one of Oloproof's, of whatever version, if its author is right."""
    return bool(_ANY_VERSION.match(body))


def read_sections(body: str) -> list[Section]:
    """The sections of a comment; what is none is left out."""
    found = []
    for piece in body.replace("\r\n", "\n").split("\n<!-- /oloproof -->"):
        mark_line, _, text = piece.strip("\n").partition("\n")
        matched = _MARK_LINE.fullmatch(mark_line)
        said = _read(matched[1]) if matched else None
        if said is not None:
            mark = _read_mark(said)
            found += _read_folded(said) if mark is None else [Section(mark, text.strip("\n"))]
    return found


def merge(standing: Iterable[Section], ours: Iterable[Section], head: str) -> list[Section]:
    """The sections that a comment should have: of each the newest, those of `head` alone, in an order that does not
    depend on who writes."""
    newest: dict[str, Section] = {}
    for section in (*standing, *ours):
        if section.mark.head != head:
            continue
        other = newest.get(section.mark.name)
        if other is None or section.mark.age >= other.mark.age:
            newest[section.mark.name] = section
    return sorted(newest.values(), key=lambda section: section.mark.order)


def write(sections: Iterable[Section]) -> str:
    """A comment's body."""
    every = list(sections)
    folded = [section for section in every if section.mark.folded]
    written = [_written(section) for section in every if not section.mark.folded]
    for head in sorted({section.mark.head for section in folded}):
        written.append(_written_folded(head, [section for section in folded if section.mark.head == head]))
    return "\n".join(written)


def size(section: Section) -> int:
    """The bytes that a section takes in a comment."""
    return FOLDED_BYTES if section.mark.folded else len(_written(section).encode()) + 1


def _written(section: Section) -> str:
    mark = section.mark
    said = {"suite": mark.suite, "leg": mark.leg, "head": mark.head, "run": mark.run, "attempt": mark.attempt}
    return _block(said, section.text)


def _written_folded(head: str, sections: Sequence[Section]) -> str:
    entries = [[s.mark.folded, s.mark.run, s.mark.attempt, s.text] for s in sections]
    counts = Counter(map(gate_of, sections))
    worst_first = reversed(GateState)
    gates = " · ".join(f"{GATE_ICONS[gate]} {counts[gate]} {gate}" for gate in worst_first if counts[gate])
    text = f"**And {len(sections)} more**, for which there is no room here: {gates}. The jobs' summaries have them."
    return _block({"head": head, "folded": entries}, text)


def _block(said: Any, text: str) -> str:
    mark = json.dumps(said, ensure_ascii=True, separators=(",", ":") if "folded" in said else None)
    for char in "<>-":  # neither may end the comment
        mark = mark.replace(char, f"\\u{ord(char):04x}")
    return f"<!-- oloproof:{VERSION} {mark} -->\n{text}\n<!-- /oloproof -->"


def _read(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _read_mark(said: dict[str, Any]) -> Mark | None:
    expected = {"suite": str, "leg": str, "head": str, "run": int, "attempt": int}
    if set(said) != set(expected) or any(type(said[name]) is not kind for name, kind in expected.items()):
        return None
    return Mark(**said)


def _read_folded(said: dict[str, Any]) -> list[Section]:
    head, entries = said.get("head"), said.get("folded")
    if set(said) != {"head", "folded"} or not isinstance(head, str) or not isinstance(entries, list):
        return []
    found = []
    for entry in entries:
        if isinstance(entry, list) and [type(part) for part in entry] == [str, int, int, str]:
            name, run, attempt, gate = entry
            if name and gate in GateState.__members__:
                found.append(Section(Mark("", "", head, run, attempt, name), gate))
    return found
