"""What a store holds: how many results of each kind, and of which index versions."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

#: What a reader is told of, by table.
NAMES = {
    "retrieval": "retrievals",
    "token_count": "token counts",
    "generation": "generations",
    "execution": "executions",
    "judgment": "judgments",
    "judge_call": "judges' answers",
    "text": "passages",
    "run": "runs",
    "document": "comparisons and diagnoses",
}


@dataclass(frozen=True)
class IndexHoldings:
    """The retrievals of one index version. `newest` is when the last of them was made, in seconds since the epoch."""

    index_version: str
    retrievals: int
    newest: float


@dataclass(frozen=True)
class Holdings:
    """`counts` are rows by table; `bytes` is the store's size on disk; `unanswered` counts the runs some of whose
    recorded results have been removed."""

    path: str
    bytes: int
    counts: dict[str, int]
    indexes: tuple[IndexHoldings, ...]
    unanswered: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def holdings(connection: sqlite3.Connection, path: Path) -> Holdings:
    """Count what the store at `path` holds. Raises sqlite3.Error."""
    counts = {
        table: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in NAMES
    }
    indexes = connection.execute(
        "SELECT index_version, count(*), max(made) FROM retrieval GROUP BY 1 ORDER BY 3 DESC, 1"
    ).fetchall()
    (unanswered,) = connection.execute(
        "SELECT count(DISTINCT run) FROM run_case WHERE execution IS NOT NULL "
        "AND execution NOT IN (SELECT id FROM execution)"
    ).fetchone()
    files = (path, path.with_name(path.name + "-wal"))
    size = sum(file.stat().st_size for file in files if file.exists())
    return Holdings(str(path), size, counts, tuple(IndexHoldings(*row) for row in indexes), int(unanswered))
