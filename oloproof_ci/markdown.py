"""The comment's escaper: text from cases, models and pull requests cannot become markdown, HTML, a link or a mention.

Everything foreign passes `code` or `prose` (or `fenced`) on its way into the comment, and nothing passes twice.
GitHub renders in two steps, and both count: its parser makes HTML of the markdown; filters then search the text
outside <code> and <pre> for mentions, references, emoji and formulas. An entity or a backslash stops the first step
only, so `prose` also breaks those up, with zero-width spaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

import tabulate

ZWSP = "\u200b"

# As in oloproof.report.tables, so that the same table comes out whether or not that was imported.
tabulate.MIN_PADDING = 0

Align = Literal["left", "right", "center"]

#: Characters that show nothing, or move what stands around them: controls, direction marks, invisible letters, tags,
#: lone surrogates. U+200C and U+200D stay: scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

#: What the filters find in text, and where a zero-width space goes so that they do not. A piece of a hexadecimal
#: number stays shorter than the shortest commit id (7).
_BREAKS = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"[@#]", rf"\g<0>{ZWSP}"),  # @user, @org/team, #1, owner/repo#1, commit@sha, addresses
        (r"gh-(?=\d)", rf"\g<0>{ZWSP}"),
        (r"/(?:issues|pulls?|discussions|commits?)/", rf"\g<0>{ZWSP}"),
        (r"[0-9a-f]{6}(?=[0-9a-f])", rf"\g<0>{ZWSP}"),
        (r":(?=//)", rf":{ZWSP}"),
        (r":(?=[\w+-]+(?::|$))", rf":{ZWSP}"),  # :tada:, also when a colon of ours follows
        (r"www(?=\.)", rf"\g<0>{ZWSP}"),
    )
)

#: What the parser would read. A dollar sign alone in an element is in no formula, as GitHub's manual says.
_ESCAPES = str.maketrans(
    {
        **{char: f"\\{char}" for char in "*_~[]"},
        **{char: f"&#{ord(char)};" for char in "\\|`<>&"},
        "$": "<span>&#36;</span>",
    }
)
#: What opens a block where a line begins with it: a list or the underline of a heading.
_OPENING = re.compile(r"\d*[-+=.)]")

#: How far back a cut looks for the beginning of what is seen as one character.
_LONGEST_CLUSTER = 16
#: Of a line, how many times the wanted length is looked at, since white space is folded.
_MOST_SPACES = 8


def visible(text: str) -> str:
    """Text on one line; what cannot be seen is shown as an escape, such as `\\u200b`."""
    return _HIDDEN.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    number = ord(char)
    if char in _NAMED:
        return _NAMED[char]
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def code(text: str) -> str:
    """Text as inline code, to the letter; empty text is one space."""
    shown = visible(text).replace("<!--", f"<{ZWSP}!--") or " "
    if shown[0] == "`" or shown[-1] == "`" or (shown[0] == shown[-1] == " " and shown.strip(" ")):
        shown = f" {shown} "
    fence = "`" * (_longest_run(shown) + 1)
    return f"{fence}{shown}{fence}"


def prose(text: str) -> str:
    """Text as words of a sentence or a table cell; white space is folded, formatting shows as typed."""
    shown = visible(" ".join(text.split()))
    for pattern, replacement in _BREAKS:
        shown = pattern.sub(replacement, shown)
    opening = _OPENING.match(shown)
    shown = shown.translate(_ESCAPES)
    if opening:
        at = opening.end() - 1
        shown = f"{shown[:at]}\\{shown[at:]}"
    return shown


def shortened(text: str, limit: int) -> str:
    """The first line that says something, at most `limit` characters long; `…` when that is not all."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return visible(text.strip("\r\n"))[:limit]
    line = lines[0].strip()
    words = " ".join(line[: _MOST_SPACES * limit].split())
    first = visible(words[: limit + 1])
    if len(lines) == 1 and len(line) <= _MOST_SPACES * limit and len(first) <= limit:
        return first
    return _cut(first, limit - 1) + "…"


def _cut(text: str, size: int) -> str:
    """The beginning of a text, not ending inside an accent, an emoji sequence or a flag."""
    end = size
    while max(0, size - _LONGEST_CLUSTER) < end < len(text) and _continues(text, end):
        end -= 1
    return text[:end].rstrip()


def _continues(text: str, at: int) -> bool:
    """Whether the character at a place belongs to the one before it."""
    before, char = text[at - 1], text[at]
    if unicodedata.category(char)[0] == "M" or "\U0001f3fb" <= char <= "\U0001f3ff":
        return True
    flags = "\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= char <= "\U0001f1ff"
    return flags or "\u200d" in (before, char)


def fenced(text: str, lines: int, width: int) -> str:
    """The last lines of a text as a code block; each is cut at `width` characters."""
    every = [visible(line.expandtabs(4)) for line in text.splitlines()]
    shown = [line if len(line) <= width else _cut(line, width - 1) + "…" for line in every[-lines:]]
    if len(every) > len(shown):
        shown.insert(0, "…")
    body = "\n".join(shown).replace("<!--", f"<{ZWSP}!--")
    fence = "`" * max(3, _longest_run(body) + 1)
    return f"{fence}text\n{body}\n{fence}"


def table(headers: Sequence[tuple[str, Align]], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are markdown already; pipes in them are escaped here.

    Left-aligned columns are not padded: one long answer would fill every row of its column with spaces.
    """
    return tabulate.tabulate(
        [[_cell(cell) for cell in row] for row in rows],
        [_cell(name) for name, _ in headers],
        tablefmt="pipe",
        disable_numparse=True,
        stralign=None,
        colalign=["" if align == "left" else align for _, align in headers],
    )


def _cell(text: str) -> str:
    """GitHub's parser and comrak read a backslash before an escaped pipe differently, so they are kept apart."""
    return text.replace("\\|", f"\\{ZWSP}|").replace("|", "\\|")


def details(summary: str, body: str) -> str:
    """A part that opens on a click. The summary is our own text: no markdown is read in it."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def alert(kind: Literal["WARNING", "CAUTION", "NOTE"], items: Sequence[str]) -> str:
    """An alert box with a sentence, or a list of several; they are markdown already."""
    lines = items if len(items) == 1 else [f"- {item}" for item in items]
    return "\n".join([f"> [!{kind}]", *(f"> {line}" for line in lines)])


def _longest_run(text: str) -> int:
    """The length of the longest row of backticks."""
    return max((len(run) for run in re.findall("`+", text)), default=0)
