"""The terminal's escaper: text from cases and models cannot move the cursor, forge lines or break a table."""

from __future__ import annotations

import re

#: Controls (C0, C1), line and paragraph separators, marks and overrides of direction, and what is never visible.
_INVISIBLE = (
    "\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
_CONTROL = re.compile(f"[\x00-\x1f{_INVISIBLE}]")
_IN_JSON = re.compile(f"[{_INVISIBLE}]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def plain(text: str) -> str:
    """Text on one line, with control and direction characters shown as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub(_escaped, text)


def plain_lines(text: str) -> list[str]:
    """Several lines of foreign text, each made plain."""
    return [plain(line) for line in text.splitlines()]


def plain_json(text: str) -> str:
    """JSON text of the same value, in which those characters are escaped too; JSON itself escapes the C0 controls."""
    return _IN_JSON.sub(lambda found: _pair(ord(found[0])), text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if named := _NAMED.get(found[0]):
        return named
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _pair(code: int) -> str:
    """A character as JSON escapes it: one unit of UTF-16, or two."""
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
