"""The terminal's escaper: text from cases and models cannot move the cursor, forge lines or break a table."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def plain(text: str) -> str:
    """Text on one line, with control and direction characters shown as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub(lambda found: _NAMED.get(found[0], f"\\x{ord(found[0]):02x}"), text)


def plain_lines(text: str) -> list[str]:
    """Several lines of foreign text, each made plain."""
    return [plain(line) for line in text.splitlines()]
