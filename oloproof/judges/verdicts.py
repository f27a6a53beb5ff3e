"""What a judge's answer comes to: a verdict with its quotes checked, or the reason why it cannot be used."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oloproof.judges.prompts import Evidence, Prompt

#: The verdicts that a passage's words must back.
MUST_QUOTE = frozenset({"grounded", "supported"})
#: How much of an answer is kept to show why it could not be used.
MAX_SHOWN = 200
MAX_RATIONALE = 2_000
#: More words than these back no verdict better.
MOST_QUOTES = 100

_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
#: Hyphens and what is written for them. Dashes that part sentences stand alone.
_HYPHENS = re.compile(r"[‐-–−]")
_DASHES = re.compile(r"[—―]")
#: Around a place, "|": numbers such as 10,000 and 1.5, words such as non-refundable, and the end of one such as can't.
_JOINED = re.compile(r"\d\|[.,]\d|\d[.,]\|\d|[^\W\d_]\|[-'][^\W\d_]|[^\W\d_]-\|[^\W\d_]")
#: Small digits, fractions and digits in circles stay what they are: 10² is not 102.
_OWN = re.compile(r"([²³¹¼-¾⁰-₟⅐-⅟↉①-⓿]+)")
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
    if len(quotes) > MOST_QUOTES:
        raise Unusable(f"it quotes {len(quotes)} times, more than {MOST_QUOTES}")
    numbered = {each.number: _plain(each.text) for each in passages} if quotes else {}
    checked = tuple(_quote(quote, numbered) for quote in quotes)
    if verdict in MUST_QUOTE and not checked:
        raise Unusable(f"verdict is {verdict}, but nothing is quoted for it")
    return Verdict(verdict, rationale[:MAX_RATIONALE], checked)


def _object(text: str) -> dict[str, object]:
    fenced = _FENCED.match(text)
    try:
        found = json.loads(fenced[1] if fenced else text, object_pairs_hook=_members)
    except (ValueError, RecursionError):
        raise Unusable(f"no JSON: {_shown(text)}") from None
    if not isinstance(found, dict):
        raise Unusable(f"no JSON object: {_shown(text)}")
    return found


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object's members. Of two with one name nobody can say which is meant."""
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise Unusable(f"it holds {_shown(name)} twice")
        found[name] = value
    return found


def _quote(quote: object, passages: Mapping[int, str]) -> tuple[int, str]:
    if not isinstance(quote, dict):
        raise Unusable("a quote is no object")
    number, text = quote.get("passage"), quote.get("text")
    if not isinstance(number, int) or isinstance(number, bool) or not isinstance(text, str):
        raise Unusable("a quote has no passage number, or no text")
    plain = _plain(text)
    if not any(each.isalnum() for each in plain):
        raise Unusable("a quote is empty")
    if number not in passages:
        raise Unusable(f"there is no passage {number}")
    if not _says(passages[number], plain):
        raise Unusable(f"passage {number} does not say {_shown(text)}")
    return number, text


def _says(passage: str, quote: str) -> bool:
    """Whether a passage holds a quote as whole words: "able to" is no quote of "unable to", "you can" none of "you
    can't", and "000" none of "114,000"."""
    start = passage.find(quote)
    while start >= 0:
        if not (_within_a_word(passage, start) or _within_a_word(passage, start + len(quote))):
            return True
        start = passage.find(quote, start + 1)
    return False


def _within_a_word(text: str, place: int) -> bool:
    """Whether a place stands between two characters of one word or number. Scripts that put no spaces between words
    have no letter case; their letters are not joined."""
    before, after = text[max(0, place - 2) : place], text[place : place + 2]
    if _in_words(before[-1:]) and _in_words(after[:1]):
        return True
    around = f"{before:\0>2}|{after:\0<2}"
    return _JOINED.search(around) is not None


def _in_words(character: str) -> bool:
    return character.islower() or character.isnumeric()


def _plain(text: str) -> str:
    """A text without what people and models do not tell apart: case, white space, kinds of quotes and dashes."""
    parts = _OWN.split(text)
    parts[::2] = [unicodedata.normalize("NFKC", part) for part in parts[::2]]
    folded = "".join(parts).translate(_QUOTES).casefold()
    parted = _DASHES.sub(" - ", _HYPHENS.sub("-", folded))
    return " ".join(parted.split()).strip("\"'… .")


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return repr(text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…")
