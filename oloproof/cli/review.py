"""Asking a person about one answer after the other, in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from oloproof.canonical import canonical_json
from oloproof.labels.items import Item
from oloproof.report.terminal import plain, plain_lines

_KEYS = {"p": "pass", "f": "fail", "u": "unsure"}
_PROMPT = "[p]ass, [f]ail, [u]nsure, [s]kip, [q]uit: "


def review(items: Sequence[Item], keep: Callable[[Item, str], None]) -> int:
    """Ask about each item on standard error, and `keep` each verdict at once; gives how many there were. The end of
    the input is as good as quitting."""
    done = 0
    for number, item in enumerate(items, 1):
        _say(_shown(item, number, len(items)))
        key = _asked()
        if key == "q":
            break
        if key in _KEYS:
            keep(item, _KEYS[key])
            done += 1
    return done


def _asked() -> str:
    while True:
        _say(_PROMPT, end="")
        line = sys.stdin.readline()
        key = line.strip().casefold()[:1]
        if not line:
            return "q"
        if key in (*_KEYS, "s", "q"):
            return key


def _shown(item: Item, number: int, total: int) -> str:
    """What a verdict is asked for, on lines that no text in it can leave."""
    lines = [f"--- {number} of {total}", *_block("question", item.question)]
    for passage in item.passages:
        lines += _block(f"passage {passage.number}, {passage.name}", passage.text)
    if item.expected is not None:
        lines += _block("expected", canonical_json(item.expected))
    lines += _block("input", item.input if isinstance(item.input, str) else canonical_json(item.input))
    lines += _block("answer", item.answer)
    return "\n".join(lines)


def _block(name: str, text: str) -> list[str]:
    return [plain(f"{name}:"), *(f"  | {line}" for line in plain_lines(text) or [""])]


def _say(text: str, end: str = "\n") -> None:
    print(text, end=end, file=sys.stderr, flush=True)
