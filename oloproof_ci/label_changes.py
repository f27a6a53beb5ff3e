"""What a pull request changes of the labels by which judges are held against people: it may let a judge decide, or keep
one from it, so a reader is told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from oloproof.judge_checks import Labels
from oloproof.labels.files import FOLDER
from oloproof.pairing import EvaluatorChange
from oloproof.settings.project import Project
from oloproof_ci.base_files import BaseFiles
from oloproof_ci.report import Loosening


def changed_labels(
    labels: Labels, base: Project, files: BaseFiles, evaluators: Sequence[EvaluatorChange]
) -> list[Loosening]:
    """Where the head's labels are other than the base's, a line a file. A judge that was renamed had its labels under
    its former name."""
    former = {change.criterion: change.detail[0] for change in evaluators if change.change == "renamed"}
    found = []
    for criterion, after in labels.items():
        content = files.content(base.root / FOLDER / f"{former.get(criterion, criterion)}.jsonl")
        before = _verdicts(content or b"")
        text = _difference(before, {item: label.verdict for item, label in after.items()})
        if text:
            name = f"{FOLDER}/{criterion}.jsonl"
            found.append(Loosening(name, f"labels of {criterion}", _counted(len(before)), text))
    return found


def _verdicts(content: bytes) -> dict[str, str]:
    """The verdicts by item, as far as the base's file can be read."""
    found = {}
    for line in content.splitlines():
        try:
            record = json.loads(line)
            found[str(record["item"])] = str(record["verdict"])
        except (ValueError, RecursionError, TypeError, LookupError):
            continue
    return found


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    counts = {
        "added": len(after.keys() - before.keys()),
        "changed": sum(before[item] != after[item] for item in before.keys() & after.keys()),
        "removed": len(before.keys() - after.keys()),
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def _counted(count: int) -> str:
    return "1 label" if count == 1 else f"{count} labels"
