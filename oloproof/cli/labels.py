"""`oloproof labels export`, `labels import` and `labels review`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oloproof.cli.output import emit, emit_record
from oloproof.cli.review import review
from oloproof.cli.stored import existing_store
from oloproof.diagnosis.recorded import evaluator_from
from oloproof.errors import ConfigurationError
from oloproof.evaluators import JudgeEvaluator
from oloproof.labels.files import Label, labels_file, read_labels, read_name, replace_file, write_labels
from oloproof.labels.importing import Imported, take_over
from oloproof.labels.items import Item
from oloproof.labels.sampling import items_of_run, sample
from oloproof.labels.sheets import read_sheet, sheet_text
from oloproof.report.terminal import plain
from oloproof.run_records import Run
from oloproof.settings.project import load_project
from oloproof.workplace import Store


def command(given: argparse.Namespace) -> int:
    actions = {"export": _export, "import": _import, "review": _review}
    text, record = actions[given.action](given)
    if given.json:
        emit_record(record)
    else:
        emit(text)
    return 0


def _export(given: argparse.Namespace) -> tuple[str, Any]:
    root = given.config.absolute().parent
    out: Path = given.out or Path(f"{given.criterion}-labels.{given.format}")
    if out.absolute() == labels_file(root, given.criterion):
        raise ConfigurationError(f"{out}: labels are kept there; give a sheet another name with --out")
    if out.exists():  # somebody may have filled it in
        raise ConfigurationError(f"{out} is there already; import or remove it, or name another with --out")
    with existing_store(given.config) as store:
        run = store.runs.find_run(given.id)
        items, labelled = _items(given, store, run), read_labels(root, given.criterion)
        chosen = sample(items, given.sample, given.seed, labelled)
        if not chosen:
            raise ConfigurationError(_nothing_left(run, given.criterion, items))
    replace_file(out, sheet_text(chosen, given.criterion, run.id, given.format))
    done = sum(item.id in labelled for item in items)
    record = {"run": run.id, "criterion": given.criterion, "file": str(out), "answers": len(items)}
    record |= {"labelled": done, "exported": [item.id for item in chosen]}
    lines = [
        f"Wrote {plain(str(out))}: {len(chosen)} of {_answers(len(items))} of {run.id}, {done} labelled already",
        "Fill in the verdicts (pass, fail, unsure), then: oloproof labels import " + plain(str(out)),
    ]
    return "\n".join(lines), record


def _import(given: argparse.Namespace) -> tuple[str, Any]:
    root, by = given.config.absolute().parent, _name(given.by)
    evaluators = load_project(given.config).config.evaluators
    judges = {e.criterion_name: e for e in evaluators if isinstance(e, JudgeEvaluator)}
    lines, empty = read_sheet(given.file)
    lines = [line if line.by else replace(line, by=by) for line in lines]
    known = _KnownItems(given.config)
    done = take_over(
        str(given.file), lines, lambda name: read_labels(root, name), known.of, judges, given.replace
    )
    for criterion, labels in done.labels.items():
        write_labels(root, criterion, labels)
    record: dict[str, Any] = {"added": done.added, "changed": done.changed, "same": done.same, "empty": empty}
    record |= {"outdated": done.outdated}
    record |= {"labels": {name: len(labels) for name, labels in done.labels.items()}}
    return _imported_text(done, empty), record


def _imported_text(done: Imported, empty: int) -> str:
    counts = [
        f"{done.added} added",
        f"{done.changed} changed",
        f"{done.same} there already",
        f"{empty} empty",
    ]
    lines = [f"Labels: {', '.join(counts)}"]
    if done.outdated:
        lines.append(
            f"  {done.outdated} of another question than the configured judge asks, which do not count for it"
        )
    for name, labels in done.labels.items():
        lines.append(f"  labels/{name}.jsonl now holds {len(labels)}; commit it, so that CI has it too")
    return "\n".join(lines)


class _KnownItems:
    """What was judged, by run and criterion, looked up once each."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._found: dict[tuple[str, str], Mapping[str, Item] | None] = {}

    def of(self, run: str, criterion: str) -> Mapping[str, Item] | None:
        if (run, criterion) not in self._found:
            self._found[run, criterion] = self._look(run, criterion)
        return self._found[run, criterion]

    def _look(self, run: str, criterion: str) -> Mapping[str, Item] | None:
        try:
            with existing_store(self._config) as store:
                found = store.runs.find_run(run)
                items = items_of_run(found, judge_of(found, criterion), store.runs, store.results)
                return {each.item.id: each.item for each in items}
        except ConfigurationError:
            return None


def _review(given: argparse.Namespace) -> tuple[str, Any]:
    root, by = given.config.absolute().parent, _name(given.by)
    labels = read_labels(root, given.criterion)
    with existing_store(given.config) as store:
        run = store.runs.find_run(given.id)
        items = _items(given, store, run)
    chosen = sample(items, given.sample, given.seed, labels)
    if not chosen:
        raise ConfigurationError(_nothing_left(run, given.criterion, items))

    def keep(item: Item, verdict: str) -> None:
        nonlocal labels
        labels = read_labels(root, given.criterion)  # others may label at the same time
        labels[item.id] = Label(item, verdict, by)
        write_labels(root, given.criterion, labels)

    done = review(chosen, keep)
    record = {"run": run.id, "criterion": given.criterion, "reviewed": done, "labels": len(labels)}
    return f"{done} judged; labels/{given.criterion}.jsonl now holds {len(labels)}", record


def judge_of(run: Run, criterion: str) -> JudgeEvaluator:
    """The judge of a run. Raises ConfigurationError when the criterion is none's."""
    position = run.evaluator_index(criterion)
    judges = [each.criterion for each in run.evaluators if "rubric" in each.definition]
    if position is None or criterion not in judges:
        names = ", ".join(judges) or "none"
        raise ConfigurationError(f"{run.id} has no judge {criterion}; its judges: {names}")
    judge: JudgeEvaluator = evaluator_from(run.evaluators[position].definition)
    return judge


def _items(given: argparse.Namespace, store: Store, run: Run) -> list[Item]:
    judge = judge_of(run, given.criterion)
    return [each.item for each in items_of_run(run, judge, store.runs, store.results)]


def _nothing_left(run: Run, criterion: str, items: list[Item]) -> str:
    if not items:
        return f"{run.id} has no answer that {criterion} could judge"
    return f"all {len(items)} answers of {run.id} that {criterion} judges have a label"


def _name(text: str) -> str:
    try:
        return read_name(text)
    except ValueError as error:
        raise ConfigurationError(f"--by: {error}") from None


def _answers(count: int) -> str:
    return "1 answer" if count == 1 else f"{count} answers"
