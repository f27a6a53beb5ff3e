"""What a stage may return: the checks, and the plain JSON that is recorded.

Loaded inside the user's own interpreter, so it uses the standard library, the contract module and `jsontext` only.
"""

from __future__ import annotations

import math
from itertools import islice
from json import dumps, loads
from typing import Any

from oloproof.contract import Passage, Retrieval
from oloproof.jsontext import json_writer

#: Longest answer, query, or texts of one retrieval taken together, in characters.
MAX_RECORD = 16_000_000
#: How many levels of lists and objects an answer may have; case files have the same limit.
MAX_DEPTH = 100


class InvalidReturn(Exception):
    """A stage returned something that cannot be recorded; the text says what and what was expected."""


def passages(rows: list[list[Any]]) -> tuple[Passage, ...]:
    """The passages that the engine sent."""
    return tuple(Passage(doc_id=d, chunk_id=c, score=s, text=t) for d, c, s, t in rows)


def retrieval(value: Any, depth: int) -> dict[str, Any]:
    """What `retrieve` returned as plain data; `depth` is what it was asked for."""
    if not isinstance(value, Retrieval):
        raise InvalidReturn(f"retrieve must return a Retrieval, got {kind(value)}")
    said = _plain(value.depth)
    if isinstance(said, bool) or not isinstance(said, int):
        raise InvalidReturn(f"Retrieval.depth must be a whole number, got {kind(said)}")
    if said != depth:
        raise InvalidReturn(
            f"Retrieval.depth is {_number(said)}, but retrieve was asked for {depth}; pass on the depth it is given"
        )
    candidates = value.candidates
    if not isinstance(candidates, (tuple, list)):
        raise InvalidReturn(f"Retrieval.candidates must be a tuple of Passage, got {kind(candidates)}")
    # A class of the user's own may list them otherwise, and for ever.
    if type(candidates) not in (tuple, list):
        candidates = tuple(islice(candidates, max(len(candidates), depth + 1)))
    if len(candidates) > depth:
        raise InvalidReturn(f"retrieve returned {len(candidates)} candidates for a depth of {depth}")
    rows = []
    size = 0
    seen: dict[tuple[str, str | None], int] = {}
    for position, passage in enumerate(candidates, 1):
        if not isinstance(passage, Passage):
            raise InvalidReturn(f"candidate {position} must be a Passage, got {kind(passage)}")
        row = _passage_row(passage, f"candidate {position}")
        first = seen.setdefault((row[0], row[1]), position)
        if first != position:
            name = row[0] if row[1] is None else f"{row[0]}#{row[1]}"
            raise InvalidReturn(f"candidates {first} and {position} are the same passage, {name[:200]!r}")
        size += sum(len(part) for part in (row[0], row[1], row[3]) if part)
        rows.append(row)
    if size > MAX_RECORD:
        raise InvalidReturn(_too_long("the candidates together", size))
    return {"query": json_text(value.query, "Retrieval.query"), "candidates": rows}


def token_count(value: Any) -> int:
    """What `count_tokens` returned."""
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise InvalidReturn(f"count_tokens must return a whole number of at least 0, got {kind(value)}")
    return int(value)


def answer(value: Any) -> str:
    """What `generate` returned as JSON text; the engine stores it as it is."""
    if not isinstance(value, dict):
        raise InvalidReturn(f"generate must return a dict, got {kind(value)}")
    return json_text(value, "the answer of generate")


def reranked(value: Any, candidates: tuple[Passage, ...], name: str) -> list[int]:
    """What the reranker of this name returned, as the indexes (from 0) of the candidates that it was given."""
    if not isinstance(value, (tuple, list)):
        raise InvalidReturn(f"{name} must return a tuple of the Passages it was given, got {kind(value)}")
    given = {(passage.doc_id, passage.chunk_id): index for index, passage in enumerate(candidates)}
    order: dict[int, int] = {}
    for position, passage in enumerate(value, 1):
        where = f"passage {position} of what {name} returned"
        if not isinstance(passage, Passage):
            raise InvalidReturn(f"{where} must be a Passage, got {kind(passage)}")
        row = _passage_row(passage, where)
        shown = repr((row[0] if row[1] is None else f"{row[0]}#{row[1]}")[:200])
        index = given.get((row[0], row[1]))
        if index is None:
            raise InvalidReturn(
                f"{where}, {shown}, is none of those it was given; it may reorder and drop, not add"
            )
        original = candidates[index]
        if row[2:] != [original.score, original.text]:
            changed = "score" if row[2] != original.score else "text"
            raise InvalidReturn(
                f"{where}, {shown}, has another {changed} than it was given; it may not be altered"
            )
        if index in order:
            raise InvalidReturn(f"{where}, {shown}, was returned before, as passage {order[index]}")
        order[index] = position
    return list(order)


def verdict(value: Any, name: str) -> bool | float | None:
    """What the evaluator of this name returned: whether the case passes, a score, or None when it does not apply.
    The whole numbers 0 and 1 are scores."""
    value = _plain(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and 0 <= value <= 1 and 0 <= (score := float(value)) <= 1:
        return score
    raise InvalidReturn(f"{name} must return True, False, a number from 0 to 1, or None, got {kind(value)}")


def json_text(value: Any, where: str) -> str:
    """The JSON text of a value. Raises InvalidReturn, in which `where` names the value."""
    try:
        try:
            text = _strict_json(value)
        except RecursionError:  # it is nested too deep or contains itself: this tells which
            text = dumps(value, ensure_ascii=False, allow_nan=False, default=_plain_or_refuse)
        text.encode()
    except InvalidReturn as error:
        raise InvalidReturn(f"{where} {error}") from None
    except UnicodeEncodeError:
        raise InvalidReturn(f"{where} is not valid Unicode: it holds a lone surrogate") from None
    except RecursionError:
        raise InvalidReturn(_too_deep(where)) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidReturn(f"{where} is not JSON: {_reason(error)}") from None
    if len(text) > MAX_RECORD:
        raise InvalidReturn(_too_long(where, len(text)))
    if text.count("{") + text.count("[") > MAX_DEPTH and depth_exceeds(loads(text), MAX_DEPTH):
        raise InvalidReturn(_too_deep(where))
    return text


def _passage_row(passage: Passage, where: str) -> list[Any]:
    doc_id = _text(passage.doc_id, f"{where}: doc_id")
    if not doc_id:
        raise InvalidReturn(f"{where}: doc_id must not be empty")
    chunk_id = None if passage.chunk_id is None else _text(passage.chunk_id, f"{where}: chunk_id")
    text = None if passage.text is None else _text(passage.text, f"{where}: text")
    return [doc_id, chunk_id, _score(passage.score, where), text]


def _score(value: Any, where: str) -> float | None:
    if value is None:
        return None
    score = _plain(value)
    try:
        if not isinstance(score, bool) and isinstance(score, (int, float)):
            number = float(score)  # a class of the user's own may make anything of it
            if math.isfinite(number):
                return number
    except OverflowError:  # a whole number beyond the largest float
        pass
    raise InvalidReturn(f"{where}: score must be a finite number, got {kind(score)}")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidReturn(f"{where} must be a string, got {kind(value)}")
    # Whatever a class of the user's own makes of itself.
    text = value if type(value) is str else str.__str__(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidReturn(f"{where} is not valid Unicode: it holds a lone surrogate") from None
    return text


def _plain(value: Any) -> Any:
    """A numpy scalar as the Python number it holds; anything else as it is."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    return value


def _plain_or_refuse(value: Any) -> Any:
    plain = _plain(value)
    if plain is value or type(plain).__module__ == "numpy":
        raise InvalidReturn(f"holds {kind(value)}, which is not JSON")
    return plain


_strict_json = json_writer(ensure_ascii=False, allow_nan=False, default=_plain_or_refuse)


def depth_exceeds(value: Any, limit: int) -> bool:
    """Whether plain data has more levels of lists and objects than this."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            child
            for container in level
            if isinstance(container, (dict, list))
            for child in (container.values() if isinstance(container, dict) else container)
        ]
        if not level:
            return False
    return True


def _reason(error: Exception) -> str:
    reason = str(error)
    if "Circular" in reason:
        return "it contains itself"
    if "JSON compliant" in reason:
        return "it holds NaN or an infinity"
    if "integer string conversion" in reason:
        return "it holds a whole number with too many digits"
    return reason[:500]


def _too_deep(where: str) -> str:
    return f"{where} is nested more than {MAX_DEPTH} levels deep"


def _too_long(where: str, size: int) -> str:
    return f"{where} is {size:,} characters long; at most {MAX_RECORD:,} can be recorded"


def kind(value: Any) -> str:
    """A value in the words of a message: what it is, not what it holds, unless it is a number."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"class {value.__name__}"
    if type(value) in (bool, int, float):
        return f"{type(value).__name__} {_number(value)}"
    return f"an object of type {type(value).__name__}"


def _number(value: float) -> str:
    if isinstance(value, int) and value.bit_length() > 128:
        return f"of {value.bit_length()} bits"
    return repr(value)
