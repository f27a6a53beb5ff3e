"""One line of a case file: from bytes to a JSON object, and what is wrong with it as a case."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from json import JSONDecodeError
from typing import Any, NoReturn

from oloproof.settings.wording import hint, shortened

_KEYS = frozenset(("id", "input", "expected", "metadata"))
_RELEVANT_KEYS = frozenset(("doc_id", "chunk_id", "grade"))
_GOLD_KEYS = frozenset(("doc_id", "text", "chunk_id"))
_MAX_DEPTH = 100


class NotACase(ValueError):
    """The line holds no JSON object that can be stored."""


def parse_line(line: bytes) -> dict[str, Any]:
    """The object on a line. Raises NotACase with one sentence, with the column counted from 1."""
    try:
        text = line.rstrip(b"\r\n").decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        byte = line[error.start]
        raise NotACase(f"byte 0x{byte:02x} at column {column} is not UTF-8; save the file as UTF-8") from None
    try:
        obj = _STRICT.decode(text)
    except JSONDecodeError as error:
        raise NotACase(_malformed(error)) from None
    except RecursionError:
        raise NotACase(f"nested more than {_MAX_DEPTH} levels deep") from None
    except NotACase:
        raise
    except ValueError:  # Python's own limit on the digits of an integer
        raise NotACase("holds a whole number with too many digits") from None
    if type(obj) is not dict:
        raise NotACase(f"expected a JSON object with id and input, found {_named(obj)}")
    if line.count(b"{") + line.count(b"[") > _MAX_DEPTH and _depth_exceeds(obj, _MAX_DEPTH):
        raise NotACase(f"nested more than {_MAX_DEPTH} levels deep")
    if b"\\ud" in line or b"\\uD" in line:
        _refuse_lone_surrogates(obj)
    return obj


def fast_parse(line: bytes) -> Any:
    """The value on a line that was checked before."""
    return _PLAIN.decode(line.decode())


def case_problems(obj: dict[str, Any], chunked: bool) -> list[str]:
    """What is wrong with an object as a case; with `chunked`, relevant entries need a chunk_id."""
    problems = []
    if not obj.keys() <= _KEYS:
        problems += [f'unknown key "{shortened(key)}"; {hint(key, _KEYS)}' for key in obj if key not in _KEYS]
    ident = obj.get("id", _ABSENT)
    if type(ident) is not str or not ident or ident.isspace():
        problems.append(_id_problem(ident))
    if obj.get("input") is None:
        problems.append("input is null" if "input" in obj else "no input")
    metadata = obj.get("metadata", _EMPTY)
    if type(metadata) is not dict:
        problems.append(f"metadata: expected an object, found {_named(metadata)}")
    expected = obj.get("expected", _EMPTY)
    if type(expected) is not dict:
        problems.append(f"expected: expected an object, found {_named(expected)}")
        return problems
    if "relevant" in expected:
        problems += _relevant_problems(expected["relevant"], chunked)
    if "gold_context" in expected:
        problems += _gold_problems(expected["gold_context"])
    return problems


# ----------------------------------------------------------------------------------------------- JSON


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    obj = dict(pairs)
    if len(obj) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise NotACase(f'the key "{shortened(twice)}" stands twice in one object')
    return obj


def _finite(text: str) -> float:
    number = float(text)
    if number in _INFINITIES:
        raise NotACase(f"{text[:40]} is too large for a number")
    return number


def _no_constant(text: str) -> NoReturn:
    raise NotACase(f"{text} is not a JSON number; leave the value out or write null")


_INFINITIES = (math.inf, -math.inf)
_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant)
_PLAIN = json.JSONDecoder()
_ABSENT = object()
_EMPTY: dict[str, Any] = {}


def _malformed(error: JSONDecodeError) -> str:
    text = error.doc.strip()
    if text in ("{", "["):
        return "not valid JSON: one whole object is expected on each line, not an array or an indented object"
    told = error.msg.rstrip(": ")
    sentence = next((ours for theirs, ours in _JSON_FAULTS.items() if theirs in told), told)
    return f"not valid JSON at column {error.colno}: {sentence}"


#: What Python's parser says, and what that means to the reader of a case file.
_JSON_FAULTS = {
    "Expecting value": "expected a value",
    "Expecting property name": "expected a key in double quotes",
    "Expecting ',' delimiter": "expected a comma or the end",
    "Expecting ':' delimiter": "expected a colon",
    "Illegal trailing comma": "expected no comma before the end",
    "Extra data": "expected the end of the line after the object",
    "Unterminated string": "this text has no closing quote",
    "Invalid control character": "a control character in text; write \\n, \\t or \\uXXXX",
    "Invalid \\u": "expected four hexadecimal digits after \\u",
    "Invalid \\": "a backslash in text; write it twice",
}


def _depth_exceeds(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [
            child
            for container in level
            if isinstance(container, dict | list)
            for child in (container.values() if isinstance(container, dict) else container)
        ]
        if not level:
            return False
    return True


def _refuse_lone_surrogates(obj: dict[str, Any]) -> None:
    try:
        json.dumps(obj, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        code = ord(error.object[error.start])
        raise NotACase(
            f"\\u{code:04x} is half of a character (a lone surrogate) and cannot be stored; remove it"
        ) from None


# ---------------------------------------------------------------------------------------------- cases


def _id_problem(ident: Any) -> str:
    if ident is _ABSENT:
        return "no id; every case needs one of its own"
    if isinstance(ident, str):
        return "the id is empty"
    if isinstance(ident, int | float) and not isinstance(ident, bool):
        return f'the id {shortened(str(ident))} is a number; quote it: "{shortened(str(ident))}"'
    return f"the id must be text, found {_named(ident)}"


def _relevant_problems(entries: Any, chunked: bool) -> list[str]:
    if type(entries) is not list:
        return [f"expected.relevant: expected a list, found {_named(entries)}"]
    problems = []
    seen = set()
    for index, entry in enumerate(entries):
        here = f"expected.relevant[{index}]"
        wrong = list(_unit_problems(entry, _RELEVANT_KEYS))
        if not wrong:
            unit = (entry["doc_id"], entry.get("chunk_id"))
            if unit in seen:
                name = shortened("#".join(filter(None, unit)))
                wrong.append(f"{name} stands in the list already")
            seen.add(unit)
            if chunked and unit[1] is None:
                wrong.append("no chunk_id, which relevance_unit: chunk needs")
            if "grade" in entry:
                wrong += _grade_problems(entry["grade"])
        problems += [f"{here}: {sentence}" for sentence in wrong]
    return problems


def _grade_problems(grade: Any) -> Iterator[str]:
    if type(grade) not in (int, float):
        yield f"grade: expected a number, found {_named(grade)}"
    elif not 0 <= grade <= 1e300:
        yield f"grade must be a number from 0 to 1e300, found {shortened(str(grade))}"


def _gold_problems(entries: Any) -> list[str]:
    if type(entries) is not list:
        return [f"expected.gold_context: expected a list, found {_named(entries)}"]
    if not entries:
        return ["expected.gold_context is empty; list a passage, or leave the key out"]
    problems = []
    for index, entry in enumerate(entries):
        wrong = list(_unit_problems(entry, _GOLD_KEYS))
        if type(entry) is dict:
            text = entry.get("text", _ABSENT)
            if text is _ABSENT:
                wrong.append("no text")
            elif type(text) is not str:
                wrong.append(f"text: expected text, found {_named(text)}")
            elif not text or text.isspace():
                wrong.append("the text is empty")
        problems += [f"expected.gold_context[{index}]: {sentence}" for sentence in wrong]
    return problems


def _unit_problems(entry: Any, known: frozenset[str]) -> Iterator[str]:
    """What is wrong with an entry's doc_id, chunk_id and keys."""
    if type(entry) is not dict:
        yield f"expected an object with a doc_id, found {_named(entry)}"
        return
    if not entry.keys() <= known:
        for key in entry.keys() - known:
            yield f'unknown key "{shortened(key)}"; {hint(key, known)}'
    doc_id = entry.get("doc_id", _ABSENT)
    if doc_id is _ABSENT:
        yield "no doc_id"
    elif type(doc_id) is not str or not doc_id:
        yield _text_problem("doc_id", doc_id)
    chunk_id = entry.get("chunk_id")
    if chunk_id is not None and (type(chunk_id) is not str or not chunk_id):
        yield _text_problem("chunk_id", chunk_id)


def _text_problem(key: str, value: Any) -> str:
    if value == "":
        return f"the {key} is empty"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'{key} {shortened(str(value))} is a number; quote it: "{shortened(str(value))}"'
    return f"{key}: expected text, found {_named(value)}"


def _named(value: Any) -> str:
    """A JSON value in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'the text "{shortened(value)}"'
    if isinstance(value, int | float):
        return f"the number {shortened(str(value))}"
    return "an array" if isinstance(value, list) else "an object"
