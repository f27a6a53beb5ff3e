"""The kinds of values that our settings are made of."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

T = TypeVar("T")


class Settings(BaseModel):
    """Base of all settings: no conversion of types, no unknown keys, no change afterwards. What reads a file is built
    when the first one is read, which spares every command what it does not read."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    return text


def _first_version(version: int) -> int:
    if version != 1:
        raise ValueError(f"expected 1, found {version}; this version of Oloproof reads version 1")
    return version


def not_null(value: Any) -> Any:
    """Refuse a key without a value."""
    if value is None:
        raise ValueError("expected a value, found nothing; write one or remove the key")
    return value


Version = Annotated[int, AfterValidator(_first_version), WithJsonSchema({"const": 1})]
Text = Annotated[str, AfterValidator(_not_blank), WithJsonSchema({"type": "string", "pattern": r"\S"})]
#: At least 1; the upper end only keeps what is absurd out of the store.
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
CountOrZero = Annotated[int, Field(ge=0, le=1_000_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]
#: A key that may be left out but, where it stands, has a value.
OptionalText = Annotated[Text | None, BeforeValidator(not_null, json_schema_input_type=Text)]
OptionalCount = Annotated[Count | None, BeforeValidator(not_null, json_schema_input_type=Count)]
OptionalShare = Annotated[Share | None, BeforeValidator(not_null, json_schema_input_type=Share)]
#: YAML gives lists; the models, being frozen, hold tuples.
ListOf = Annotated[tuple[T, ...], Field(strict=False)]
