"""Makes a store with two large runs: `python benchmarks/stored_runs.py TEMPLATE FOLDER CASES SLICES`.

A program of its own, so that what it needs is not counted to what is measured. Both runs have the same cases, 5
metrics and as many slices as asked for. The judgments are drawn at random: two pass/fail criteria, one score with few
values and two with many; the second run differs from the first in one case of ten. The newest run in TEMPLATE, a
project's folder, lends everything that is not counted here.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from oloproof.records import Case, Judgment, State
from oloproof.run_records import CaseRow, EvaluatorRecord, Run
from oloproof.store.runs import case_digest, pair_digest
from oloproof.workplace import opened_store


def main(template: str, folder: str, cases: int, slices: int) -> None:
    with opened_store(Path(template)) as store:
        (run,) = store.runs.newest(1)
    Path(folder).mkdir()
    store_two_runs(Path(folder), run, cases, slices)


def store_two_runs(folder: Path, template: Run, cases: int, slices: int) -> None:
    names = tuple(f"metadata.group_{number}" for number in range(slices))
    run = replace(template, evaluators=_EVALUATORS, slices=names, cases=cases, attempted=cases)
    drawing = random.Random(20260916)
    rows = list(_rows(drawing, cases, slices))
    with opened_store(folder) as store:
        for number in range(2):
            stored = replace(run, id=f"run_{number:026d}")
            store.runs.put(stored)
            store.runs.append(stored.id, rows)
            rows = [(_shaken(drawing, row), case) for row, case in rows]


_KINDS = ("pass_fail", "pass_fail", "score", "score", "score")
_EVALUATORS = tuple(
    EvaluatorRecord(f"metric_{number}", kind, "answer", {"type": "contains", "field": "answer"})
    for number, kind in enumerate(_KINDS)
)


def _rows(drawing: random.Random, cases: int, slices: int) -> Iterator[tuple[CaseRow, Case]]:
    for position in range(cases):
        expected = {"answer": f"the answer to question {position}"}
        case = Case(f"case-{position:06d}", {"question": f"question {position}?"}, expected, {}, None, None)
        row = CaseRow(
            position=position,
            case_id=case.id,
            body=case_digest(case),
            pair=pair_digest(case),
            execution=position.to_bytes(32, "big"),
            judgments=_judgments(drawing),
            tags=tuple([f"value {drawing.randrange(6)}" for _ in range(slices)]),
            error=None,
            seconds={"retrieve": 0.01, "generate": 0.5},
            log="",
        )
        yield row, case


def _judgments(drawing: random.Random) -> tuple[Judgment, ...]:
    values = (
        float(drawing.random() < 0.8),
        float(drawing.random() < 0.95),
        drawing.randrange(5) / 4,
        round(drawing.random(), 2),
        drawing.random(),
    )
    return tuple([Judgment(State.OBSERVED, value) for value in values])


def _shaken(drawing: random.Random, row: CaseRow) -> CaseRow:
    return row._replace(judgments=_judgments(drawing)) if drawing.random() < 0.1 else row


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
