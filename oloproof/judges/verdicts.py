"""What a judge's answer comes to: a verdict with its quotes checked, or the reason why it cannot be used."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from oloproof.judges.prompts import Evidence, Prompt

#: The verdicts that a passage's words must back.
MUST_QUOTE = frozenset({"grounded", "supported"})
#: How much of an answer is kept to show why it could not be used.
MAX_SHOWN = 200
MAX_RATIONALE = 2_000

_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_DASHES = re.compile(r"[‐-―−]")
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "«": '"', "»": '"'})


@dataclass(frozen=True)
class Verdict:
    """`verdict` is one of the prompt's; `quotes` are (passage number, words)."""

    verdict: str
    rationale: str
    quotes: tuple[tuple[int, str], ...]


class Unusable(Exception):
    """An answer that is no verdict; says why."""


def read_verdict(text: str, prompt: Prompt, passages: Sequence[Evidence]) -> Verdict:
    """The verdict in an answer's text. Raises Unusable: anything but the object that was asked for is no verdict, and
    neither is one whose quotes do not stand in the passages."""
    found = _object(text)
    verdict, rationale, quotes = found.get("verdict"), found.get("rationale", ""), found.get("quotes", [])
    if verdict not in prompt.verdicts:
        raise Unusable(f"verdict is {_shown(verdict)}, not one of {', '.join(prompt.verdicts)}")
    if not isinstance(rationale, str) or not isinstance(quotes, list):
        raise Unusable("rationale or quotes are of another type")
    checked = tuple(_quote(quote, passages) for quote in quotes)
    if verdict in MUST_QUOTE and not checked:
        raise Unusable(f"verdict is {verdict}, but nothing is quoted for it")
    return Verdict(verdict, rationale[:MAX_RATIONALE], checked)


def _object(text: str) -> dict[str, object]:
    fenced = _FENCED.match(text)
    try:
        found = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        raise Unusable(f"no JSON: {_shown(text)}") from None
    if not isinstance(found, dict):
        raise Unusable(f"no JSON object: {_shown(text)}")
    return found


def _quote(quote: object, passages: Sequence[Evidence]) -> tuple[int, str]:
    if not isinstance(quote, dict):
        raise Unusable("a quote is no object")
    number, text = quote.get("passage"), quote.get("text")
    if not isinstance(number, int) or isinstance(number, bool) or not isinstance(text, str):
        raise Unusable("a quote has no passage number, or no text")
    plain = _plain(text)
    if not plain:
        raise Unusable("a quote is empty")
    for passage in passages:
        if passage.number == number:
            if plain in _plain(passage.text):
                return number, text
            raise Unusable(f"passage {number} does not say {_shown(text)}")
    raise Unusable(f"there is no passage {number}")


def _plain(text: str) -> str:
    """A text without what people and models do not tell apart: case, white space, kinds of quotes and dashes."""
    folded = unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold()
    return " ".join(_DASHES.sub("-", folded).split()).strip("\"'… .")


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return repr(text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…")
