"""The cases that the store remembers as unstable, as any report marks them."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.report.terminal import plain
from oloproof.store.unstable import UnstableCase

#: How many cases a line names.
MAX_NAMED = 20


def unstable_lines(known: Sequence[UnstableCase], criteria: Sequence[str]) -> list[str]:
    """One line that names the cases, for those of the criteria; none where nothing is known."""
    found = [each for each in known if each.criterion in criteria]
    if not found:
        return []
    several = len({each.criterion for each in found}) > 1
    shown = [unstable_text(each, several) for each in found[:MAX_NAMED]]
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return [f"Unstable when repeated before: {', '.join(shown)}{more}"]


def unstable_text(case: UnstableCase, with_criterion: bool = True) -> str:
    """`flaky (answer_correct differed in 2 of 3 repeats)`."""
    what = f"{case.criterion} " if with_criterion else ""
    noun = "repeat" if case.repeats == 1 else "repeats"
    return f"{plain(case.case_id)} ({what}differed in {case.differed} of {case.repeats} {noun})"
