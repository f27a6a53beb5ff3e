"""The user's own evaluator: a function of theirs, called in the worker."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, PrivateAttr, WithJsonSchema

from oloproof.canonical import given_json
from oloproof.evaluators.base import CriterionName, Evaluator, Kind
from oloproof.records import FAILED, PASSED, Case, Execution, Judgment, State, excluded, missing

#: What the name of a function looks like, for editors that check a configuration while it is written.
_FUNCTION_SCHEMA = {"type": "string", "pattern": r"^\w+(\.\w+)*:\w+(\.\w+)*$"}


def function_path(text: str) -> str:
    """The text itself. Raises ValueError when it is not `module:function`."""
    module, colon, name = text.partition(":")
    if not (colon and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))):
        raise ValueError(f'expected module:function such as checks:polite, found "{text}"')
    return text


#: How many characters of a fault's message are kept with the judgment.
MAX_DETAIL = 500


class PythonEvaluator(Evaluator):
    """Calls `object` (module:function) with the keyword arguments input, expected, output and context (a tuple of
    Passage); it gives True or False, a score in [0, 1], or None when it does not apply.

    With the scale pass_fail a score other than 0 and 1 makes the judgment missing. What the function's code reaches
    is part of the evaluator's definition, so that a judgment is not reused once it has changed. An exception, a wrong
    value or a time-out makes the judgment missing, and the case is judged anew next time.
    """

    asks_worker: ClassVar[bool] = True

    type: Literal["python"] = "python"
    object: Annotated[str, AfterValidator(function_path), WithJsonSchema(_FUNCTION_SCHEMA)]
    criterion: CriterionName
    scale: Kind = "pass_fail"
    _code: str = PrivateAttr(default="")

    @property
    def kind(self) -> Kind:
        return self.scale

    def with_code(self, fingerprint: str) -> PythonEvaluator:
        """The same evaluator with the fingerprint of its function's code."""
        known = self.model_copy()
        known._code = fingerprint
        return known

    def definition(self) -> dict[str, Any]:
        return {**super().definition(), "code": self._code}

    def expected_key(self, case: Case) -> str:
        """All of the expected value, and the input, which the function sees too."""
        return self.key_of(case.input, case.expected)

    @staticmethod
    def key_of(input: Any, expected: Any) -> str:
        """`expected_key` of a case with this input and these expected values."""
        return given_json([input, dict(expected)])

    def binary_on(self, case: Case) -> bool:
        return self.scale == "pass_fail"

    def assess(self, case: Case, execution: Execution) -> Judgment:
        """Only the worker can say; `request` and `judge_reply` are what is asked of it and what it answers."""
        return missing("not_judged")

    def request(self, case: Case, execution: Execution, context: list[list[Any]]) -> dict[str, Any]:
        """The message to the worker. `context` holds doc_id, chunk_id, score and text of each passage."""
        return {
            "op": "evaluate",
            "object": self.object,
            "input": case.input,
            "expected": dict(case.expected),
            "output": execution.output,
            "context": context,
        }

    def judge_reply(self, value: Any, fault: str | None, message: str = "") -> Judgment:
        """The judgment from what the function gave; `fault` is the kind of error when it gave nothing, and `message`
        what was said of it."""
        if fault is not None:
            return missing(f"evaluator_{fault}", message[:MAX_DETAIL])
        if value is None:
            return excluded("evaluator_does_not_apply")
        if value in (0, 1):
            return PASSED if value else FAILED
        if self.scale == "pass_fail":
            return missing("score_under_scale_pass_fail")
        return Judgment(State.OBSERVED, float(value))
