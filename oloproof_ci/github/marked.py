"""The comment's hidden marks: several suites, and several jobs of a matrix, share one comment, each in its own section.

A section is `<!-- oloproof:1 {...} -->`, markdown, `<!-- /oloproof -->`. The mark says whose it is and of which run. No
text of a report can hold one, since its escaper breaks `<!--` up; that the comment is ours its author says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

VERSION = 1
#: GitHub refuses a comment above 65,536 characters.
MAX_BYTES = 65_000

_ANY_VERSION = re.compile(r"<!-- oloproof:\d+ ")
_MARK_LINE = re.compile(rf"<!-- oloproof:{VERSION} (\{{[^\n]*\}}) -->")


@dataclass(frozen=True)
class Mark:
    """Whose section it is (`suite`, a configuration's path, and `leg`, of a matrix), and which run wrote it, on which
    head."""

    suite: str
    leg: str
    head: str
    run: int
    attempt: int

    @property
    def key(self) -> tuple[str, str]:
        return self.suite, self.leg

    @property
    def age(self) -> tuple[int, int]:
        """Later runs and attempts are greater."""
        return self.run, self.attempt


@dataclass(frozen=True)
class Section:
    mark: Mark
    text: str


def is_marked(body: str) -> bool:
    """Whether a comment is one of Oloproof's, of whatever version, if its author is right."""
    return bool(_ANY_VERSION.match(body))


def read_sections(body: str) -> list[Section]:
    """The sections of a comment; what is none is left out."""
    found = []
    for piece in body.replace("\r\n", "\n").split("\n<!-- /oloproof -->"):
        mark_line, _, text = piece.strip("\n").partition("\n")
        matched = _MARK_LINE.fullmatch(mark_line)
        mark = _read_mark(matched[1]) if matched else None
        if mark is not None:
            found.append(Section(mark, text.strip("\n")))
    return found


def merge(standing: Iterable[Section], ours: Iterable[Section], head: str) -> list[Section]:
    """The sections that a comment should have: of each the newest, those of `head` alone, in an order that does not
    depend on who writes."""
    newest: dict[tuple[str, str], Section] = {}
    for section in (*standing, *ours):
        if section.mark.head != head:
            continue
        other = newest.get(section.mark.key)
        if other is None or section.mark.age >= other.mark.age:
            newest[section.mark.key] = section
    return [newest[key] for key in sorted(newest)]


def write(sections: Iterable[Section]) -> str:
    """A comment's body."""
    return "\n".join(_written(section) for section in sections)


def size(section: Section) -> int:
    """The bytes that a section takes in a comment."""
    return len(_written(section).encode()) + 1


def shortened(section: Section) -> Section:
    """A section of which only the heading and the first paragraph are left."""
    first = section.text.split("\n\n")[:2]
    note = "<sub>Shortened, to leave room for other suites; the step summary has it whole.</sub>"
    return Section(section.mark, "\n\n".join([*first, note]))


def heading_of(section: Section) -> Section:
    """A section of which only the heading is left."""
    return Section(section.mark, section.text.partition("\n")[0])


def _written(section: Section) -> str:
    mark = json.dumps(asdict(section.mark), ensure_ascii=True)
    for char in "<>-":  # neither may end the comment
        mark = mark.replace(char, f"\\u{ord(char):04x}")
    return f"<!-- oloproof:{VERSION} {mark} -->\n{section.text}\n<!-- /oloproof -->"


def _read_mark(text: str) -> Mark | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    expected = {"suite": str, "leg": str, "head": str, "run": int, "attempt": int}
    if not isinstance(found, dict) or {field.name for field in fields(Mark)} != set(found):
        return None
    if any(type(found[name]) is not kind for name, kind in expected.items()):
        return None
    return Mark(**found)
