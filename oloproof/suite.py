"""What a system is measured on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from oloproof.evaluators.relevance import RelevanceUnit
from oloproof.run_records import EvaluatorRecord
from oloproof.settings.cases import CaseFileFacts
from oloproof.settings.project import Project


@dataclass(frozen=True)
class Suite:
    """What a system is measured on: cases, evaluators, slices. In a comparison both systems share it."""

    project: str
    config: str
    facts: CaseFileFacts
    evaluators: tuple[Any, ...]
    relevance_unit: RelevanceUnit
    slices: tuple[str, ...]
    min_slice_support: int

    @classmethod
    def of(cls, project: Project, facts: CaseFileFacts, name: str, evaluators: Sequence[Any]) -> Suite:
        """A project's suite; `evaluators` are its own, with the code of those that are the user's."""
        config = project.config
        units = {config.relevance_unit, *(getattr(e, "relevance_unit", None) for e in config.evaluators)}
        return cls(
            project=config.project or name,
            config=str(project.path),
            facts=facts,
            evaluators=tuple(evaluators),
            relevance_unit="chunk" if "chunk" in units else "document",
            slices=tuple(config.slices),
            min_slice_support=config.min_slice_support,
        )


def evaluator_records(evaluators: Iterable[Any]) -> tuple[EvaluatorRecord, ...]:
    """Evaluators as a run records them."""
    return tuple(
        EvaluatorRecord(e.criterion_name, e.kind, e.reads, e.definition(), validated=e.validated)
        for e in evaluators
    )
