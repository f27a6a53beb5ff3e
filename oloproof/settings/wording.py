"""What messages are made of: a user's own text made safe to print, and the name most likely meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MAX_PROBLEMS = 20


def capped(problems: Sequence[str], total: int | None = None) -> list[str]:
    """The first 20 problems, and how many more there are; `total` counts those that were not even kept."""
    more = (len(problems) if total is None else total) - MAX_PROBLEMS
    if more <= 0:
        return list(problems)
    return [*problems[:MAX_PROBLEMS], f"and {more} more {'problem' if more == 1 else 'problems'}"]


def shortened(text: str) -> str:
    """Text for a message: printable, and not longer than 60 characters."""
    return printable(text if len(text) <= 60 else text[:60] + "…")


def printable(text: str) -> str:
    """Text in which line ends, control characters and half characters are escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def nearest(word: str, options: Iterable[str]) -> str | None:
    """The option most like `word`, or None. Case, and `-` against `_`, make no difference."""
    from difflib import get_close_matches  # only an error needs it

    by_plain = {_plain(option): option for option in options}
    found = get_close_matches(_plain(word[:200]), by_plain, n=1, cutoff=0.6)
    return by_plain[found[0]] if found else None


def hint(word: str, options: Iterable[str], otherwise: str = "known are") -> str:
    """`did you mean top_k?`, or all the options when none is near."""
    names = sorted(options)
    best = nearest(word, names)
    if best is not None:
        return f"did you mean {best}?"
    return f"{otherwise} {', '.join(names)}" if names else "there are none"


def _plain(word: str) -> str:
    return word.lower().replace("-", "_").replace(" ", "_")
