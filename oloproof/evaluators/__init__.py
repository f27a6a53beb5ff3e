"""The registry of evaluators: `AnyEvaluator` is the type of an entry of `evaluators:` in oloproof.yaml."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from oloproof.evaluators.base import Evaluator
from oloproof.evaluators.citations import CitationValidity
from oloproof.evaluators.judges import CitationSupportJudge, GroundednessJudge, JudgeEvaluator, RubricJudge
from oloproof.evaluators.python import PythonEvaluator
from oloproof.evaluators.ranking import HitRate, Mrr, Ndcg, RankingEvaluator, Recall
from oloproof.evaluators.text import Contains, ExactMatch, Regex

#: One evaluator, chosen by its `type`; usable as the type of a pydantic field.
AnyEvaluator: TypeAlias = Annotated[
    Contains
    | ExactMatch
    | Regex
    | HitRate
    | Recall
    | Mrr
    | Ndcg
    | CitationValidity
    | PythonEvaluator
    | GroundednessJudge
    | CitationSupportJudge
    | RubricJudge,
    Field(discriminator="type"),
]

__all__ = [
    "AnyEvaluator",
    "CitationSupportJudge",
    "CitationValidity",
    "Contains",
    "Evaluator",
    "ExactMatch",
    "GroundednessJudge",
    "HitRate",
    "JudgeEvaluator",
    "Mrr",
    "Ndcg",
    "PythonEvaluator",
    "RankingEvaluator",
    "Recall",
    "Regex",
    "RubricJudge",
]
