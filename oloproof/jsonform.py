"""The JSON form of records: made from their types, checked when read back."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")

_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def to_json(record: Any) -> Any:
    """Plain data (dicts, lists, strings, numbers) of a record."""
    return _adapter(type(record)).dump_python(record, mode="json")


def from_json(kind: type[T], data: str | bytes, *, strict: bool | None = None) -> T:
    """A record from its JSON text. Raises pydantic.ValidationError when it does not fit; with `strict` no value is
    converted, such as a text that holds a number."""
    record: T = _adapter(kind).validate_json(data, strict=strict)
    return record
