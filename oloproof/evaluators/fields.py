"""Fields of JSON objects, named by a key or by a dotted path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: What `find_field` returns when there is no such field: JSON's null is a value, this is none.
ABSENT: Final = object()


def find_field(record: Mapping[str, Any] | None, path: str) -> Any:
    """The value under a key, else under a dotted path through nested objects, else ABSENT.

    A key that itself holds a dot is found before the path is split: in {"a.b": 1, "a": {"b": 2}} the field
    `a.b` is 1. Lists have no fields.
    """
    if record is None:
        return ABSENT
    if path in record:
        return record[path]
    if "." not in path:
        return ABSENT
    value: Any = record
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return ABSENT
        value = value[name]
    return value


def describe(value: Any) -> str:
    """A field's value in the words of a sentence: `expected.answer is null`."""
    if value is ABSENT:
        return "not declared"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "a string" if value.strip() else "blank" if value else "empty"
    if isinstance(value, Mapping):
        return "an object"
    return f"the number {value!r}" if isinstance(value, (int, float)) else "a list"
