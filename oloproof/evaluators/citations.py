"""Whether the passages an answer cites are passages it was given.

This looks at ids only: whether a cited passage supports the answer is a question for a judge.
"""

from __future__ import annotations

from typing import Literal

from oloproof.evaluators.base import Evaluator, FieldName
from oloproof.evaluators.fields import ABSENT, find_field
from oloproof.records import FAILED, PASSED, Case, Execution, Judgment, missing

_MALFORMED = missing("citations_malformed")


class CitationValidity(Evaluator):
    """Every citation must name a passage of the context: `doc_id`, or `doc_id#chunk_id`.

    `field` holds a list of strings. An answer that cites nothing (the field absent, null or an empty list)
    passes, unless `require_citations` is set. Anything else than a list of strings makes the case missing.
    """

    type: Literal["citation_validity"] = "citation_validity"
    field: FieldName = "citations"
    require_citations: bool = False

    @property
    def criterion_name(self) -> str:
        return self.criterion or "citations_valid"

    def assess(self, case: Case, execution: Execution) -> Judgment:
        cited = find_field(execution.output, self.field)
        if cited is ABSENT or cited is None:
            cited = []
        if not isinstance(cited, list) or not all(isinstance(citation, str) for citation in cited):
            return _MALFORMED
        if not cited:
            return FAILED if self.require_citations else PASSED
        return PASSED if _citable(execution).issuperset(cited) else FAILED


def _citable(execution: Execution) -> set[str]:
    """Every name a citation may use; whole names are compared, so an id may itself hold a '#'."""
    names = set()
    for passage in execution.context:
        names.add(passage.doc_id)
        if passage.chunk_id is not None:
            names.add(f"{passage.doc_id}#{passage.chunk_id}")
    return names
