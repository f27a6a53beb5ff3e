"""What a store holds, and what was removed from it, for a terminal."""

from __future__ import annotations

from datetime import UTC, datetime

from oloproof.report.tables import grid
from oloproof.report.terminal import plain
from oloproof.store.holdings import NAMES, Holdings
from oloproof.store.recency import Pruned

#: How many index versions are listed.
MAX_INDEXES = 20


def stats_text(found: Holdings) -> str:
    lines = [f"Store {plain(found.path)}: {_megabytes(found.bytes)}", ""]
    lines += grid(
        ["Kept", "Entries"], [[NAMES[table], f"{count:,}"] for table, count in found.counts.items()]
    )
    if found.indexes:
        rows = [
            [
                plain(each.index_version),
                f"{each.retrievals:,}",
                f"{datetime.fromtimestamp(each.newest, UTC):%Y-%m-%d}",
            ]
            for each in found.indexes[:MAX_INDEXES]
        ]
        lines += ["", *grid(["Index version", "Retrievals", "Newest"], rows)]
        if len(found.indexes) > MAX_INDEXES:
            lines.append(f"and {len(found.indexes) - MAX_INDEXES} more index versions")
    return "\n".join(lines)


def pruned_text(went: Pruned, before: Holdings, after: Holdings) -> str:
    if not went.total:
        return f"Nothing to remove: {_megabytes(after.bytes)} are within the limit and in use."
    removed = ", ".join(f"{count:,} {NAMES[table]}" for table, count in went.rows.items() if table in NAMES)
    lines = [f"Removed {removed}: {_megabytes(before.bytes)} before, {_megabytes(after.bytes)} now."]
    if after.unanswered > before.unanswered:
        count = after.unanswered - before.unanswered
        lines.append(
            f"{count} stored run{'s' * (count > 1)} kept judgments and metrics, but no longer every recorded answer."
        )
    return "\n".join(lines)


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"
