"""What every evaluator is: a frozen group of settings that judges one case at a time.

An evaluator yields one criterion. Its settings are validated when the configuration is read, its case
problems are found before anything runs, and its judgments are stored under its definition. To add
one, subclass `Evaluator` in a file of its own and list it in `oloproof.evaluators`.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

from oloproof.records import Case, Execution, Judgment, missing

#: "pass_fail": a value is 1.0 or 0.0; "score": a value lies in [0, 1].
Kind = Literal["pass_fail", "score"]
#: The stage whose result an evaluator needs: one that reads the retrieval judges even when generate errored.
Reads = Literal["retrieval", "answer"]

#: The name of a criterion appears in tables, policies and file names.
CriterionName = Annotated[str, StringConstraints(pattern=r"^[\w.-]+$", max_length=100)]
#: The name of a field, or its dotted path (see `oloproof.evaluators.fields`).
FieldName = Annotated[str, StringConstraints(min_length=1)]


def require_type(schema: dict[str, Any]) -> None:
    """`type` has a default so that Python code may leave it out; a configuration file may not."""
    schema["required"] = ["type", *(name for name in schema.get("required", ()) if name != "type")]


class Evaluator(BaseModel):
    """Base of all evaluators. Equal settings make equal, hashable evaluators.

    Subclasses give `type` a Literal with that value as default, and implement `assess`. `code_version`
    goes up by one whenever the same settings would judge anything differently than before.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, json_schema_extra=require_type, defer_build=True
    )

    values: ClassVar[Kind] = "pass_fail"
    reads: ClassVar[Reads] = "answer"
    code_version: ClassVar[int] = 1
    #: Whether judging is a call of the user's code in the worker.
    asks_worker: ClassVar[bool] = False
    #: Whether judging is a question to a model.
    asks_model: ClassVar[bool] = False

    #: False of one whose judgments have to be checked against people's first, and were not: no rule may rest on it.
    validated: ClassVar[bool] = True

    type: str
    criterion: CriterionName | None = None

    @property
    def criterion_name(self) -> str:
        """The criterion as it is printed and named in policies; defaults to the type."""
        return self.criterion or self.type

    @property
    def kind(self) -> Kind:
        """Whether the criterion is passed or failed, or a score."""
        return self.values

    def definition(self) -> dict[str, Any]:
        """The identity of the evaluator as JSON: every setting, defaults resolved, and the code version."""
        return {
            **self.model_dump(mode="json"),
            "criterion": self.criterion_name,
            "code_version": self.code_version,
        }

    def expected_key(self, case: Case) -> str:
        """Canonical JSON of the part of the expected value the judgment depends on; "" when of none."""
        return ""

    def case_problem(self, case: Case) -> str | None:
        """A sentence saying why this evaluator can never judge the case as it is written, else None."""
        return None

    def binary_on(self, case: Case) -> bool:
        """Whether the value of this case can only be 0 or 1: then the criterion is a rate."""
        return self.kind == "pass_fail"

    def judge(self, case: Case, execution: Execution) -> Judgment:
        """Judge one case. Never raises, whatever JSON the system returned.

        Missing with the kind of the stage error when the stage it reads did not finish.
        """
        error = execution.error
        if self.reads == "answer":
            if error is not None:
                return missing(error.kind)
        elif not execution.retrieved:
            return missing("not_retrieved" if error is None else error.kind)
        return self.assess(case, execution)

    def assess(self, case: Case, execution: Execution) -> Judgment:
        """The judgment when the stage this evaluator reads finished."""
        raise NotImplementedError
