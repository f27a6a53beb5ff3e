"""The answers of a run that a judge judges or could judge, and which of them people are asked about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from oloproof.canonical import digest
from oloproof.evaluators import JudgeEvaluator
from oloproof.labels.items import Item, item_of
from oloproof.records import Judgment
from oloproof.run_records import CaseRow, Run
from oloproof.settings.cases import case_from_json
from oloproof.store.results import Results
from oloproof.store.runs import Runs

_WINDOW = 250


class JudgedItem(NamedTuple):
    """An item with the judgment that the run has of it."""

    item: Item
    judgment: Judgment


def items_of_run(run: Run, judge: JudgeEvaluator, runs: Runs, results: Results) -> Iterator[JudgedItem]:
    """Each answer of a run of which there is something to ask, once, in the order of the cases."""
    position = run.evaluator_index(judge.criterion_name)
    assert position is not None
    seen: set[str] = set()
    rows = iter(runs.rows(run.id))
    while window := list(islice(rows, _WINDOW)):
        for row, item in _items(window, judge, runs, results):
            if item.id not in seen:
                seen.add(item.id)
                yield JudgedItem(item, row.judgments[position])


def _items(
    window: Sequence[CaseRow], judge: JudgeEvaluator, runs: Runs, results: Results
) -> Iterator[tuple[CaseRow, Item]]:
    bodies = runs.bodies([row.body for row in window])
    executions = results.executions([row.execution for row in window if row.execution is not None])
    texts = results.texts(c.text_id for each in executions.values() for c in each.context)
    for row in window:
        execution = None if row.execution is None else executions.get(row.execution)
        if execution is None:
            continue
        context = [(c.doc_id, c.chunk_id, c.score, texts.get(c.text_id)) for c in execution.context]
        item = item_of(judge, case_from_json(bodies[row.body]), execution, context)
        if item is not None:
            yield row, item


def sample(items: Iterable[Item], size: int, seed: int, labelled: Collection[str] = ()) -> list[Item]:
    """A random sample of the items that have no label yet. The seed puts all items in one order, from which labelled
    ones are left out: so what is drawn later goes on where an earlier sample ended, and all of it is random."""
    ordered = sorted(items, key=lambda item: digest("sample", str(seed), item.id))
    return list(islice((item for item in ordered if item.id not in labelled), size))
