"""Text comparison: contains, exact match, regular expression.

Both sides are brought into Unicode normal form C first, so that an umlaut typed as one character equals the
same umlaut typed as two; nothing else is normalised. `ignore_case` compares by full case folding, so
"Straße" equals "STRASSE"; in a regular expression it is Python's IGNORECASE.

Source: Unicode Standard Annex #15 (normal forms) and the Unicode Standard, section 3.13 (caseless matching).
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self

from pydantic import ConfigDict, model_validator

from oloproof.canonical import canonical_json
from oloproof.evaluators.base import CriterionName, Evaluator, FieldName, require_type
from oloproof.evaluators.fields import ABSENT, describe, find_field
from oloproof.records import FAILED, PASSED, Case, Execution, Judgment, missing

_ABSENT = missing("output_field_absent")
_NOT_TEXT = missing("output_field_not_text")
#: Only when a case with a problem is judged all the same: such a case neither passes nor fails.
_UNUSABLE = missing("expected_value_unusable")


class TextEvaluator(Evaluator):
    """What the text evaluators share: one string of the output against one expected string.

    `field` names the output's field, `expected_field` the expected one. An output without that field,
    or with something else than a string in it, makes the case missing.
    """

    needs: ClassVar[str] = "a string"

    criterion: CriterionName
    field: FieldName
    expected_field: FieldName | None
    ignore_case: bool = False

    def expected_key(self, case: Case) -> str:
        value = self._expected(case)
        return "" if value is ABSENT else canonical_json(value)

    def case_problem(self, case: Case) -> str | None:
        value = self._expected(case)
        if self._usable(value):
            return None
        return f"expected.{self.expected_field} is {describe(value)}; {self.type} needs {self.needs}"

    def assess(self, case: Case, execution: Execution) -> Judgment:
        text = find_field(execution.output, self.field)
        if not isinstance(text, str):
            return _ABSENT if text is ABSENT else _NOT_TEXT
        expected = self._expected(case)
        if not self._usable(expected):
            return _UNUSABLE
        return PASSED if self.matches(text, expected) else FAILED

    def matches(self, text: str, expected: str) -> bool:
        """Whether the output's text meets the expected one; neither is normalised yet."""
        raise NotImplementedError

    def _expected(self, case: Case) -> Any:
        return ABSENT if self.expected_field is None else find_field(case.expected, self.expected_field)

    def _usable(self, value: Any) -> bool:
        """Whether the expected value is one that some output can meet and another can miss."""
        return isinstance(value, str)

    def _normal(self, text: str) -> str:
        if not self.ignore_case:
            return _composed(text)
        return _composed(_composed(text).casefold())


class Contains(TextEvaluator):
    """Whether the output's text contains the expected one."""

    needs: ClassVar[str] = "a non-empty string"

    type: Literal["contains"] = "contains"
    expected_field: FieldName

    def matches(self, text: str, expected: str) -> bool:
        return self._normal(expected) in self._normal(text)

    def _usable(self, value: Any) -> bool:
        return isinstance(value, str) and bool(value.strip())  # a blank stands in almost any answer


class ExactMatch(TextEvaluator):
    """Whether the output's text equals the expected one, white space included."""

    type: Literal["exact_match"] = "exact_match"
    expected_field: FieldName

    def matches(self, text: str, expected: str) -> bool:
        return self._normal(expected) == self._normal(text)


def _one_source(schema: dict[str, Any]) -> None:
    """The schema's words for what `Regex` checks: its pattern comes from one place."""
    require_type(schema)
    sources = ("pattern", "expected_field")
    schema["oneOf"] = [{"required": [name], "properties": {name: {"type": "string"}}} for name in sources]


class Regex(TextEvaluator):
    """Whether a Python regular expression is found anywhere in the output's text.

    Exactly one of `pattern` (the same for every case) and `expected_field` (each case brings its own).
    """

    model_config = ConfigDict(json_schema_extra=_one_source)

    needs: ClassVar[str] = "a regular expression in a non-empty string"

    type: Literal["regex"] = "regex"
    expected_field: FieldName | None = None
    pattern: FieldName | None = None

    @model_validator(mode="after")
    def _check_pattern(self) -> Self:
        if (self.pattern is None) == (self.expected_field is None):
            raise ValueError("regex needs exactly one of pattern and expected_field")
        if self.pattern is not None and (fault := _pattern_fault(self.pattern)):
            raise ValueError(f"pattern is not a valid regular expression: {fault}")
        return self

    def expected_key(self, case: Case) -> str:
        return "" if self.pattern is not None else super().expected_key(case)

    def case_problem(self, case: Case) -> str | None:
        if self.pattern is not None:
            return None
        value = self._expected(case)
        if isinstance(value, str) and value and (fault := _pattern_fault(value)):
            return f"expected.{self.expected_field} is not a valid regular expression: {fault}"
        return super().case_problem(case)

    def matches(self, text: str, expected: str) -> bool:
        found = _compiled(expected, self.ignore_case).search(_composed(text))
        return found is not None

    def _expected(self, case: Case) -> Any:
        return super()._expected(case) if self.pattern is None else self.pattern

    def _usable(self, value: Any) -> bool:
        return isinstance(value, str) and value != "" and _pattern_fault(value) is None


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


@lru_cache(maxsize=65_536)
def _compiled(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a later Python may read differently is no fault of the run
        return re.compile(_composed(pattern), re.IGNORECASE if ignore_case else 0)


@lru_cache(maxsize=65_536)
def _pattern_fault(pattern: str) -> str | None:
    """Why a pattern cannot be compiled, with the position of the fault, else None."""
    try:
        _compiled(pattern, False)
    except re.error as error:
        position = "" if error.pos is None else f" at position {error.pos}"
        return f"{error.msg}{position}"
    except (OverflowError, RecursionError) as error:
        return f"{error} (the pattern is too large)"
    return None
