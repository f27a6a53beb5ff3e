"""What a run would do now, told from the store without calling anything of the app."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from oloproof.execution.steps import CaseSteps
from oloproof.judging import WINDOW, Judging
from oloproof.records import Case, Execution
from oloproof.run_records import Tally


@dataclass(frozen=True)
class Outlook:
    """How many executions and judgments the store has, and how many calls of each stage a run would make.

    `unsure` of the generations follow a retrieval or token count that is made first: those whose context then comes
    out as one that is stored are not made. Calls of `count_tokens` are those that are sure; after a new retrieval
    there may be more. A judgment is made again with its execution.
    """

    execution: Tally
    retrieve: int
    count_tokens: int
    generate: int
    unsure: int
    judgment: Tally


def outlook(cases: Iterable[Case], steps: CaseSteps, judging: Judging) -> Outlook:
    """Go through the cases as a run would, up to the first call of each."""
    calls = {"retrieve": 0, "count_tokens": 0, "generate": 0}
    hits = misses = judged = unjudged = 0
    #: What became of each input: an execution that is there, or none.
    seen: dict[bytes, Execution | None] = {}
    for window in _windows(cases):
        names = {id(case): steps.identity(case) for case in window}
        stored = steps.stored(list(dict.fromkeys(names.values())))
        for case in window:
            name = names[id(case)]
            if name not in seen:
                seen[name] = stored.get(name) or _assembled(case, steps, calls)
                misses += name not in stored
                hits += name in stored
            else:
                hits += 1
            execution = seen[name]
            known = judging.known(case, execution) if execution is not None else None
            there = sum(judgment is not None for _, judgment in known or ())
            judged += there
            unjudged += judging.criteria - there
    unsure = calls["retrieve"] + calls["count_tokens"]
    return Outlook(
        execution=Tally(hits, misses),
        retrieve=calls["retrieve"],
        count_tokens=calls["count_tokens"],
        generate=calls["generate"] + unsure,
        unsure=unsure,
        judgment=Tally(judged, unjudged),
    )


def _assembled(case: Case, steps: CaseSteps, calls: dict[str, int]) -> Execution | None:
    """The execution, when it can be put together of stored results; else note the first call that it needs."""
    way = steps.full(case)
    try:
        request = next(way)
    except StopIteration as end:
        execution: Execution = end.value
        return execution
    calls[request["op"]] += 1
    way.close()
    return None


def _windows(cases: Iterable[Case]) -> Iterator[list[Case]]:
    rest = iter(cases)
    while window := list(islice(rest, WINDOW)):
        yield window
