"""Loaded YAML against a pydantic model: the model, or every problem as a sentence with file, line and key."""

from __future__ import annotations

import datetime
import re
import types
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from oloproof.errors import ConfigurationError
from oloproof.settings.wording import capped, hint, shortened
from oloproof.settings.yamlfile import KeyPath, LoadedYaml

M = TypeVar("M", bound=BaseModel)


def validate(model: type[M], loaded: LoadedYaml) -> M:
    """The model instance. Raises ConfigurationError with all problems, in the order of their lines."""
    try:
        return model.model_validate(loaded.data)
    except ValidationError as error:
        found: dict[tuple[KeyPath, str], int] = {}
        for entry in error.errors(include_url=False):
            told = _tell(model, loaded, entry)
            if told is not None:
                found.setdefault(told, loaded.lines.line(*told[0]))
    problems = [loaded.lines.problem(*told) for told in sorted(found, key=found.__getitem__)]
    raise ConfigurationError(*capped(problems))


def _tell(model: type[BaseModel], loaded: LoadedYaml, entry: Mapping[str, Any]) -> tuple[KeyPath, str] | None:
    """Where an error of pydantic's is, and its sentence; None when another entry says it already."""
    kind, context = entry["type"], entry.get("ctx", {})
    path, holder, here = _locate(model, entry["loc"])
    if kind == "extra_forbidden":
        return path, f"unknown key; {hint(str(path[-1]), _fields(holder), 'known here are')}"
    if kind == "missing":
        return path, "missing; this key is required"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        key = context["discriminator"].strip("'")
        path = (*path, key)
        value = entry["input"].get(key)
        if value is None:
            return path, f"missing; this key is required, one of {', '.join(_tags(here, key))}"
        found = _Found(value, loaded.written.get(path))
        return path, f"unknown {key} {found.as_name}; {hint(str(found.value), _tags(here, key))}"
    if kind in ("too_short", "too_long"):
        return _wrong_length(path, entry)
    return path, _sentence(kind, context, entry["msg"], _Found(entry["input"], loaded.written.get(path)))


def _wrong_length(path: KeyPath, entry: Mapping[str, Any]) -> tuple[KeyPath, str] | None:
    size, context = len(entry["input"]), entry["ctx"]
    if entry["type"] == "too_long":
        return path, f"has {size} entries, and may have at most {context['max_length']}"
    least = context["min_length"]
    if size >= least:  # entries were dropped for problems of their own
        return None
    return path, f"needs at least {least} {'entry' if least == 1 else 'entries'}, found {size or 'none'}"


# ------------------------------------------------------------------------------------------ sentences

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "finite_number": "a finite number",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping (keys and values)",
    "model_type": "a mapping (keys and values)",
    "model_attributes_type": "a mapping (keys and values)",
}

_PATTERNS = {r"^[\w.-]+$": "letters, digits and any of . _ - only"}

_BOUNDS: dict[str, tuple[str, str]] = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}


class _Found:
    """A value that was found, in the user's words."""

    def __init__(self, value: object, written: str | None) -> None:
        self.value = value
        self.written = written if written is not None else str(value)

    @property
    def quotable(self) -> bool:
        """Whether quotes would make it the text that was meant."""
        return isinstance(self.value, bool | int | float | datetime.date)

    @property
    def as_name(self) -> str:
        return _quoted(self.value) if isinstance(self.value, str) else self.described

    @property
    def described(self) -> str:
        if self.value is None:
            return "nothing; write a value or remove the key"
        if isinstance(self.value, str):
            return f"the text {_quoted(self.value)}"
        if isinstance(self.value, bool):
            return f"the truth value {self.written}"
        if isinstance(self.value, datetime.date):
            return f"the date {self.written}"
        if isinstance(self.value, int | float):
            return f"the number {shortened(self.written)}"
        return "a mapping" if isinstance(self.value, dict) else "a list"


def _sentence(kind: str, context: Mapping[str, Any], message: str, found: _Found) -> str:
    expected = _EXPECTED.get(kind)
    if expected is not None:
        return f"expected {expected}, found {found.described}{_repair(kind, found)}"
    if kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        repair = _share(found.value) if context[bound] == 1 and bound in ("le", "lt") else ""
        return f"must be {words} {context[bound]:.15g}, found {shortened(found.written)}{repair}"
    if kind == "literal_error":
        options = re.findall(r"'([^']*)'", context["expected"])
        if isinstance(found.value, str):
            return f"unknown value {found.as_name}; {hint(found.value, options)}"
        return f"expected one of {context['expected']}, found {found.described}"
    if kind == "string_too_short":
        return "must not be empty"
    if kind == "string_too_long":
        return f"must not be longer than {context['max_length']} characters"
    if kind == "string_pattern_mismatch":
        pattern = context["pattern"]
        return f"expected {_PATTERNS.get(pattern, f'text that matches {pattern}')}, found {found.described}"
    if kind in ("value_error", "assertion_error"):
        return str(context["error"])
    message = message.replace("Input should be", "expected", 1)
    return message[:1].lower() + message[1:]


def _repair(kind: str, found: _Found) -> str:
    """What to write instead, where that is plain."""
    if kind == "string_type" and found.quotable:
        return f'; quote it: "{shortened(found.written)}"'
    if kind in ("int_type", "float_type") and isinstance(found.value, str):
        if re.fullmatch(
            r"-?\d{1,15}" if kind == "int_type" else r"-?\d{1,15}(\.\d{1,15})?", found.value, re.A
        ):
            return f"; write {found.value} without quotes"
        if kind == "float_type" and re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?[eE]-?\d{1,2}", found.value, re.A):
            return f"; write {Decimal(found.value):f}"  # YAML reads 1e-3 as text
        return ""
    if kind == "bool_type" and str(found.value).lower() in ("true", "false", "yes", "no", "on", "off"):
        return "; remove the quotes"
    if kind in ("list_type", "tuple_type") and isinstance(found.value, str):
        return f"; write [{shortened(found.value)}]"
    return ""


def _share(value: object) -> str:
    """The hint for a percentage where a share is expected."""
    if isinstance(value, int | float) and 1 < value <= 100:
        return f"; write {value:.15g}% as {value / 100:.15g}"
    return ""


def _quoted(text: str) -> str:
    return f'"{shortened(text)}"'


# ---------------------------------------------------------------------------- from pydantic's place to ours


def _locate(model: type[BaseModel], place: tuple[str | int, ...]) -> tuple[KeyPath, Any, Any]:
    """The path in the file, the type that holds its last part, and the type there.

    Pydantic's place also names the chosen member of a union, which does not stand in the file: the types say
    which parts those are.
    """
    path: KeyPath = ()
    holder: Any = None
    here: Any = model
    for part in place:
        here = _bare(here)
        if _is_model(here):
            holder, path = here, (*path, part)
            here = _fields(here).get(str(part))
        elif get_origin(here) in (list, tuple, dict):
            holder, path = here, (*path, part)
            here = get_args(here)[-1 if get_origin(here) is dict else 0]
        elif _is_union(here):
            here = _member(here, str(part))
    return path, holder, _bare(here)


def _bare(annotation: Any) -> Any:
    """A type without Annotated and without `| None`."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if _is_union(annotation):
        members = [member for member in get_args(annotation) if member is not types.NoneType]
        if len(members) == 1:
            return _bare(members[0])
    return annotation


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _fields(annotation: Any) -> dict[str, Any]:
    """The keys a model takes with their types; none for what is no model."""
    if not _is_model(annotation):
        return {}
    return {info.alias or name: info.annotation for name, info in annotation.model_fields.items()}


def _tag_values(member: Any, key: str) -> list[str]:
    return [str(value) for value in get_args(_fields(member).get(key))]


def _tags(union: Any, key: str) -> list[str]:
    """The names that choose a member of a union."""
    members = get_args(union) if _is_union(union) else (union,)
    return [tag for member in map(_bare, members) for tag in _tag_values(member, key)]


def _member(union: Any, tag: str) -> Any:
    """The member of a union that a tag chooses; our unions are told apart by `type` or `kind`."""
    for member in map(_bare, get_args(union)):
        if tag in _tag_values(member, "type") or tag in _tag_values(member, "kind"):
            return member
    return None
