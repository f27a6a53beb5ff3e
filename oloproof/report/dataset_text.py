"""Whether the case file is still the one that a run was made on."""

from __future__ import annotations

from oloproof.report.terminal import plain
from oloproof.run_records import Run


def dataset_lines(run: Run, shown: str, digest: str | None) -> list[str]:
    """A line when the case file, named `shown`, no longer has the content it had: `digest` is that of now, None when
    there is no such file."""
    if digest == run.dataset_digest:
        return []
    happened = "cannot be read now" if digest is None else "has been edited since"
    return [f"Dataset: {plain(shown)} {happened}; the cases are those that {run.id} recorded"]
