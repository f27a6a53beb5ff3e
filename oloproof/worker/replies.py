"""What a reply may hold, as the engine checks it: the worker's own word is not enough, since the user's code runs in
that process too and may have altered anything there."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NoReturn

from oloproof.contract import SystemSettings
from oloproof.worker.returns import MAX_DEPTH, depth_exceeds

#: What a worker says of a call that came to nothing; that it crashed or hung is the engine's to say.
KINDS = frozenset({"exception", "invalid_return", "exit"})
_SETTINGS = frozenset(SystemSettings.__dataclass_fields__)


def checked(request: dict[str, Any], value: Any) -> Any:
    """The value of a reply to a request. Raises ValueError or RecursionError when no stage of ours can have sent it."""
    check = _CHECKS.get(request["op"])
    if check is not None and not check(request, value):
        raise ValueError
    return value


def error_of(error: Any) -> tuple[str, str, str | None]:
    """Kind, message and traceback of an error that was sent. Raises ValueError when it is none."""
    kind, message, trace = error["kind"], error["message"], error["traceback"]
    if kind not in KINDS or not is_text(message) or not (trace is None or is_text(trace)):
        raise ValueError
    return kind, message, trace


def is_text(value: Any) -> bool:
    """Whether it is a string that can be written as UTF-8."""
    if not isinstance(value, str):
        return False
    if not value.isascii():
        value.encode()  # a UnicodeEncodeError is a ValueError
    return True


def is_number(value: Any) -> bool:
    """Whether it is a finite number."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _is_description(_: dict[str, Any], value: Any) -> bool:
    settings = value["settings"]
    sizes = [settings[name] for name in ("depth", "top_k")]
    return (
        settings.keys() == _SETTINGS
        and all(is_text(settings[name]) for name in ("name", "version", "index_version"))
        and all(type(size) is int and size > 0 for size in sizes)
        and (settings["token_budget"] is None or type(settings["token_budget"]) is int)
        and isinstance(value["modules"], dict)
        and all(is_text(name) and is_text(file) for name, file in value["modules"].items())
        and all(isinstance(value[names], list) for names in ("search", "installed"))
        and all(map(is_text, [*value["search"], *value["installed"]]))
        and isinstance(value["counts_tokens"], bool)
        and is_text(value["python"])
    )


def _is_retrieval(request: dict[str, Any], value: Any) -> bool:
    rows = value["candidates"]
    if len(rows) > request["depth"]:
        return False
    for doc_id, chunk_id, score, text in rows:
        if not (doc_id and is_text(doc_id) and (score is None or is_number(score))):
            return False
        if not ((chunk_id is None or is_text(chunk_id)) and (text is None or is_text(text))):
            return False
    _json(value["query"])
    return len({(row[0], row[1]) for row in rows}) == len(rows)


def _are_counts(request: dict[str, Any], value: Any) -> bool:
    return len(value) == len(request["passages"]) and all(
        type(count) is int and 0 <= count < 2**63 for count in value
    )


def _is_answer(_: dict[str, Any], value: Any) -> bool:
    return isinstance(_json(value), dict)


def _is_order(request: dict[str, Any], value: Any) -> bool:
    given = range(len(request["candidates"]))
    return len(set(value)) == len(value) and all(type(index) is int and index in given for index in value)


def _is_verdict(_: dict[str, Any], value: Any) -> bool:
    return value is None or isinstance(value, bool) or (is_number(value) and 0 <= value <= 1)


_CHECKS: dict[str, Callable[[dict[str, Any], Any], bool]] = {
    "describe": _is_description,
    "retrieve": _is_retrieval,
    "count_tokens": _are_counts,
    "generate": _is_answer,
    "rerank": _is_order,
    "evaluate": _is_verdict,
}


def _refuse(_: str) -> NoReturn:
    raise ValueError


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def _json(text: Any) -> Any:
    """What a JSON text of a worker stands for; raises ValueError when it is not what `returns.json_text` makes."""
    if not is_text(text):
        raise ValueError
    value = _DECODER.decode(text)
    if "\\u" in text:  # it may stand for half a character
        json.dumps(value, ensure_ascii=False).encode()
    if text.count("{") + text.count("[") > MAX_DEPTH and depth_exceeds(value, MAX_DEPTH):
        raise ValueError
    return value
