"""The comment on a suite that could not be evaluated, which is when a comment is needed most."""

from __future__ import annotations

from collections.abc import Sequence

from oloproof.errors import EXIT_CONFIGURATION
from oloproof_ci.markdown import alert, code, fenced
from oloproof_ci.outcome import Failure
from oloproof_ci.sections.headline import TOOL

_LINES, _WIDTH = 30, 300


def failed_comment(config: str, failure: Failure, notes: Sequence[str] = ()) -> str:
    """`## ⛔ Oloproof · oloproof.yaml · BLOCK`, what kind of failure it is, and its message as it was printed."""
    what = (
        "**The input is wrong**" if failure.exit_code == EXIT_CONFIGURATION else "**The run did not finish**"
    )
    parts = [
        f"## ⛔ {TOOL} · {code(config)} · BLOCK",
        f"{what}, so nothing is known of this change, and that blocks.",
        alert("NOTE", notes) if notes else "",
        fenced(failure.message, _LINES, _WIDTH),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
