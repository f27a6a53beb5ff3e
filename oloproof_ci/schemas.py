"""JSON Schemas of the files that people write and that the bot leaves, made from the models that read and write them.

`python -m oloproof_ci.schemas [FOLDER]` writes them (default: docs/schemas). A schema accepts whatever its model does;
what takes more than one value to see, such as an id that stands twice, only the model refuses.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from oloproof.cli import guarded
from oloproof.cli.output import emit
from oloproof.errors import EXIT_OK
from oloproof.settings.policy import PolicyConfig
from oloproof.settings.project import ProjectConfig
from oloproof_ci.outcome import JobOutcome
from oloproof_ci.report import Report
from oloproof_ci.report_files import write

FOLDER = Path("docs/schemas")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MADE_BY = "Made by `python -m oloproof_ci.schemas`; do not edit."

_NOT_BLANK = {"type": "string", "pattern": r"\S"}
_NAME = {"type": "string", "minLength": 1}
_UNIT = {
    "doc_id": {**_NAME, "description": "The document's id, as the retriever gives it."},
    "chunk_id": {"anyOf": [_NAME, {"type": "null"}], "description": "One chunk of the document."},
}
#: A case is checked line by line without a model, for speed (`oloproof.settings.caselines`).
_CASE: dict[str, Any] = {
    "title": "Case",
    "description": "One line of a case file.",
    "type": "object",
    "additionalProperties": False,
    "required": ["id", "input"],
    "properties": {
        "id": {**_NOT_BLANK, "description": "The case's own name, which no other case has."},
        "input": {"not": {"type": "null"}, "description": "What both stages are called with."},
        "expected": {
            "type": "object",
            "description": "What evaluators read: the answer under any name, and the keys below.",
            "properties": {
                "relevant": {
                    "type": "array",
                    "description": "The documents or chunks that answer the question.",
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["doc_id"],
                        "properties": {
                            **_UNIT,
                            "grade": {
                                "type": "number",
                                "minimum": 0,
                                "maximum": 1e300,
                                "default": 1,
                                "description": "How relevant it is; 0 is not.",
                            },
                        },
                    },
                },
                "gold_context": {
                    "type": "array",
                    "minItems": 1,
                    "description": "The passages that answer the question, for the diagnosis.",
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["doc_id", "text"],
                        "properties": {**_UNIT, "text": _NOT_BLANK},
                    },
                },
            },
        },
        "metadata": {"type": "object", "description": "What slices are made of."},
    },
}


def schemas() -> dict[str, Any]:
    """Every schema by the name of its file."""
    return {
        "oloproof.schema.json": _schema(ProjectConfig.model_json_schema()),
        "policy.schema.json": _schema(PolicyConfig.model_json_schema()),
        "case.schema.json": _schema(_CASE),
        "report.schema.json": _schema(TypeAdapter(Report).json_schema(mode="serialization")),
        "outcome.schema.json": _schema(TypeAdapter(JobOutcome).json_schema(mode="serialization")),
    }


def _schema(made: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": _DIALECT, "$comment": _MADE_BY, **_tidied(made)}


def _tidied(value: Any) -> Any:
    """Without titles that only repeat a key, and defaults of null, which say that a key may be left out."""
    if isinstance(value, list):
        return [_tidied(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    is_field = isinstance(value.get("title"), str) and "properties" not in value
    dropped = {"title"} if is_field else set()
    if is_field and value.get("default", ...) is None:
        dropped.add("default")
    return {key: _tidied(inner) for key, inner in value.items() if key not in dropped}


def text(schema: dict[str, Any]) -> str:
    """A schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write every schema into a folder; gives the exit code."""
    folder = Path(arguments[0]) if arguments else FOLDER

    def command() -> int:
        for name, schema in schemas().items():
            write(folder, name, text(schema))
            emit(f"Wrote {folder / name}")
        return EXIT_OK

    return guarded(command, "oloproof_ci.schemas", traceback=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
