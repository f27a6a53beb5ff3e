"""How much of each part the comment shows, so that it stays below GitHub's limit."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Room:
    """How many of each thing are shown; the rest is counted.

    `names` is how many case ids one list gives, `hidden_names` the same inside a part that opens on a click, `error`
    how many lines of an error, `errored` how many rows of errored cases. `failures` counts rows for each of
    `criteria`; `answers` says whether the answers behind them are shown.
    """

    slices: int = 60
    answers: bool = True
    hidden_names: int = 200
    names: int = 10
    failures: int = 25
    errored: int = 20
    criteria: int = 12
    factors: int = 5
    metrics: int = 40
    rules: int = 40
    loosened: int = 30
    edits: int = 20
    evaluators: int = 20
    warnings: int = 12
    error: int = 15


def everything() -> Room:
    """For a page that may be long: as much as anybody scrolls through."""
    many = 1000
    return Room(
        slices=many,
        hidden_names=5 * many,
        names=100,
        failures=many,
        errored=many,
        criteria=100,
        factors=20,
        metrics=200,
        rules=200,
        loosened=many,
        edits=many,
        evaluators=200,
        warnings=100,
        error=100,
    )


def rooms() -> tuple[Room, ...]:
    """From all to least, in the order in which parts are given up: slices, answers, ids, then rows of failures and
    of errored cases. The heading and the rules are always there; only of an absurd number of rules the last are
    counted."""
    whole = Room()
    no_slices = replace(whole, slices=0)
    no_answers = replace(no_slices, answers=False)
    no_ids = replace(no_answers, hidden_names=0)
    fewer = [replace(no_ids, failures=rows, errored=rows, names=min(rows, 5)) for rows in (15, 8, 3)]
    few = replace(
        fewer[-1], failures=0, errored=0, criteria=4, factors=2, metrics=20, warnings=5, edits=5, loosened=10
    )
    least = replace(few, names=1, criteria=2, factors=1, metrics=6, rules=6, warnings=2, error=5)
    least = replace(least, loosened=0, edits=0, evaluators=0)
    return whole, no_slices, no_answers, no_ids, *fewer, few, least
