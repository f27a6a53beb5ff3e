"""Taking the verdicts of a filled sheet over into the files of labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from oloproof.evaluators import JudgeEvaluator
from oloproof.labels.files import Label, Problems
from oloproof.labels.items import Item, asks_the_same
from oloproof.labels.sheets import SheetLine

#: Gives the items of a run by digest, for a criterion; None when there is no such run, or no such judge in it.
Known = Callable[[str, str], Mapping[str, Item] | None]


@dataclass
class Imported:
    """The labels by criterion and item once a sheet is taken over: `added` are new, `changed` had another verdict,
    `same` stood there already. `outdated` of all these are about another question than the configured judge asks."""

    labels: dict[str, dict[str, Label]] = field(default_factory=dict)
    added: int = 0
    changed: int = 0
    same: int = 0
    outdated: int = 0


def take_over(
    shown: str,
    lines: Sequence[SheetLine],
    stored: Callable[[str], dict[str, Label]],
    known: Known,
    judges: Mapping[str, JudgeEvaluator],
    replace: bool,
) -> Imported:
    """All lines of a sheet, or none: raises ConfigurationError with each line that is wrong, up to 20. `stored` gives
    the labels of a criterion; `judges` are the configured ones by criterion. A verdict that contradicts a stored one is
    wrong unless `replace` is set."""
    problems, done = Problems(shown), Imported()
    first: dict[tuple[str, str], SheetLine] = {}
    for line in lines:
        earlier = first.setdefault((line.criterion, line.item), line)
        try:
            if earlier is not line:
                what = "again" if earlier.verdict == line.verdict else f"as {earlier.verdict}"
                raise ValueError(f"the item of line {earlier.number} {what}; give one verdict an item")
            judge = judges.get(line.criterion)
            if judge is None:
                names = ", ".join(judges) or "none"
                raise ValueError(f"{line.criterion} is no judge of the configuration; judges are {names}")
            if line.criterion not in done.labels:
                done.labels[line.criterion] = stored(line.criterion)
            item = _content(line, known)
            if item.judge != judge.type:
                raise ValueError(f"its item is one of a {item.judge}; {line.criterion} is a {judge.type}")
            _take(line, done, item, replace)
            done.outdated += not asks_the_same(judge, item)
        except ValueError as error:
            problems.add(line.number, str(error))
    problems.end()
    return done


def _take(line: SheetLine, done: Imported, item: Item, replace: bool) -> None:
    labels = done.labels[line.criterion]
    before = labels.get(line.item)
    if before is not None and before.verdict == line.verdict:
        done.same += 1
        return
    if before is not None:
        if not replace:
            by = f" by {before.by}" if before.by else ""
            raise ValueError(
                f"{line.verdict} contradicts the label{by}, which is {before.verdict}; --replace overwrites it"
            )
        done.changed += 1
    else:
        done.added += 1
    labels[line.item] = Label(item, line.verdict, line.by)


def _content(line: SheetLine, known: Known) -> Item:
    """What was judged. Raises ValueError when it is not known."""
    if line.content is not None:
        return line.content
    items = known(line.run, line.criterion)
    if items is None:
        raise ValueError(
            f"the run {line.run or '(none)'} is not in this store; import the sheet where it was made"
        )
    if line.item not in items:
        raise ValueError(
            f"no answer of {line.run} has the digest {line.item[:16]}; leave the column as it is"
        )
    return items[line.item]
