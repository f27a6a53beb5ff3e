"""Where the relevant units of a case stand in a retrieval.

A unit is a document or one chunk of it. Positions are 1-based and follow the order `retrieve` returned;
scores never re-sort. Only units with a grade above 0 are relevant; a unit that comes up several times
counts once, at its best position. Ids are compared as exact strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from oloproof.records import Candidate, GoldPassage, Relevant

RelevanceUnit: TypeAlias = Literal["document", "chunk"]
#: A document is its doc_id, a chunk (doc_id, chunk_id).
Unit: TypeAlias = str | tuple[str, str | None]


def unit_of(passage: Candidate | Relevant | GoldPassage, unit: RelevanceUnit) -> Unit:
    """The unit a passage or a label belongs to."""
    return passage.doc_id if unit == "document" else (passage.doc_id, passage.chunk_id)


def unit_grades(relevant: Iterable[Relevant] | None, unit: RelevanceUnit) -> dict[Unit, float]:
    """The relevant units in the order declared, each with its highest grade; empty without labels."""
    grades: dict[Unit, float] = {}
    for entry in relevant or ():
        if entry.grade > 0:
            key = unit_of(entry, unit)
            grades[key] = max(entry.grade, grades.get(key, 0.0))
    return grades


def find_positions(
    candidates: Iterable[Candidate], units: Iterable[Unit], unit: RelevanceUnit
) -> dict[Unit, int | None]:
    """The best position of each of the units, None for those not among the candidates."""
    positions: dict[Unit, int | None] = dict.fromkeys(units)
    by_document = unit == "document"
    for position, candidate in enumerate(candidates, start=1):
        key: Unit = candidate.doc_id if by_document else (candidate.doc_id, candidate.chunk_id)
        if key in positions and positions[key] is None:
            positions[key] = position
    return positions


def unit_positions(
    candidates: Iterable[Candidate], relevant: Iterable[Relevant] | None, unit: RelevanceUnit
) -> dict[Unit, int | None]:
    """The best position of each relevant unit (grade > 0), None for those that were not retrieved."""
    return find_positions(candidates, unit_grades(relevant, unit), unit)


def best_position(
    candidates: Iterable[Candidate], relevant: Iterable[Relevant] | None, unit: RelevanceUnit
) -> int | None:
    """The smallest position of any relevant unit, None when none was retrieved or none is declared."""
    return smallest(unit_positions(candidates, relevant, unit))


def smallest(positions: Mapping[Unit, int | None]) -> int | None:
    """The smallest of the positions that are known."""
    return min((position for position in positions.values() if position is not None), default=None)


def unit_mismatch(
    candidates: Sequence[Candidate], relevant: Iterable[Relevant] | None, unit: RelevanceUnit
) -> bool:
    """Whether labels and retrieval cannot be compared: by chunk, but only one side has any chunk ids.

    Without this a retriever that returns whole documents would look as if it had missed every chunk.
    """
    if unit == "document" or not candidates:
        return False
    labels = {entry.chunk_id is None for entry in relevant or () if entry.grade > 0}
    return bool(labels) and labels.isdisjoint(candidate.chunk_id is None for candidate in candidates)
