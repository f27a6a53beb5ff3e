"""When results were last used, and which go when there are too many.

A result was used when a stored run has a case with it, or when `last_used` says so, which is where that knowledge
stands once the run's own record is gone. What a used execution was made of was used with it. Of a judge's answer only
is known when it was given.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from oloproof.ids import milliseconds

#: What a row costs beside its texts: ids, lengths, its place in an index.
ROW_BYTES = 220
#: Which share of the room token counts may take before they go all together.
TOKEN_COUNTS_SHARE = 0.2
#: The tables whose rows are results of stages.
STAGES = ("retrieval", "token_count", "generation", "execution")


@dataclass(frozen=True)
class Pruned:
    """How many rows of each table went."""

    rows: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def note_use(connection: sqlite3.Connection, store: str = "main") -> None:
    """Write into `last_used` what the runs of a store used; `store` is that store's name on the connection."""
    runs = connection.execute(f"SELECT id FROM {store}.run").fetchall()
    moments = [(run, milliseconds(run.removeprefix("run_")) / 1000) for (run,) in runs]
    connection.execute("CREATE TEMP TABLE moment (run TEXT PRIMARY KEY, at REAL NOT NULL)")
    connection.executemany("INSERT INTO temp.moment VALUES (?, ?)", moments)
    for column in ("execution", "retrieval"):
        connection.execute(
            f"INSERT INTO main.last_used SELECT c.{column}, max(m.at) FROM {store}.run_case c "
            f"JOIN temp.moment m ON m.run = c.run WHERE c.{column} IS NOT NULL GROUP BY 1 "
            "ON CONFLICT (id) DO UPDATE SET at = max(at, excluded.at)"
        )
    connection.execute("DROP TABLE temp.moment")


def prune(
    connection: sqlite3.Connection, *, now: float, unseen_seconds: float | None, max_bytes: int | None
) -> Pruned:
    """Remove results, least recently used first, until what is left takes about `max_bytes`; before that, all of index
    versions of which nothing was used for `unseen_seconds`. `last_used` must be up to date (`note_use`)."""
    before = _counts(connection)
    too_large = max_bytes is not None and size(connection) > max_bytes
    if not too_large and not (unseen_seconds is not None and _any_older(connection, now - unseen_seconds)):
        return Pruned({})
    _rank(connection)
    if unseen_seconds is not None:
        connection.execute(
            "DELETE FROM temp.ranked WHERE index_version IN (SELECT index_version FROM temp.ranked "
            "WHERE index_version IS NOT NULL GROUP BY index_version HAVING max(at) < ?)",
            (now - unseen_seconds,),
        )
        _remove_unranked(connection)
    if max_bytes is not None and size(connection) > max_bytes:
        _keep_newest(connection, max_bytes)
        _remove_unranked(connection)
    connection.execute("DROP TABLE temp.ranked")
    after = _counts(connection)
    return Pruned({table: before[table] - after[table] for table in before if before[table] != after[table]})


def size(connection: sqlite3.Connection) -> int:
    """About how many bytes the results take."""
    parts = {
        "text": "length(CAST(body AS BLOB))",
        "retrieval": "length(CAST(candidates AS BLOB)) + length(CAST(query AS BLOB)) + length(CAST(log AS BLOB))",
        "token_count": "0",
        "generation": "length(CAST(output AS BLOB)) + length(CAST(log AS BLOB))",
        "execution": "coalesce(length(CAST(gold AS BLOB)), 0)",
        "judgment": "coalesce(length(CAST(reason AS BLOB)), 0)",
        "judge_call": "length(CAST(answer AS BLOB)) + length(CAST(detail AS BLOB))",
        "file_set": "length(CAST(files AS BLOB))",
    }
    total = 0
    for table, texts in parts.items():
        (found,) = connection.execute(
            f"SELECT coalesce(sum({texts} + {ROW_BYTES}), 0) FROM main.{table}"
        ).fetchone()
        total += int(found)
    return total


def _any_older(connection: sqlite3.Connection, moment: float) -> bool:
    """Whether any retrieval was made before a moment: only then can its index version be long out of use."""
    return (
        connection.execute("SELECT 1 FROM main.retrieval WHERE made < ? LIMIT 1", (moment,)).fetchone()
        is not None
    )


def _rank(connection: sqlite3.Connection) -> None:
    """temp.ranked: each retrieval, generation, execution and judge's answer with the time of its last use, and its
    bytes."""
    connection.execute(
        "CREATE TEMP TABLE ranked (id BLOB PRIMARY KEY, at REAL NOT NULL, bytes INTEGER NOT NULL, index_version TEXT)"
    )
    connection.execute(
        f"INSERT OR IGNORE INTO temp.ranked SELECT e.id, coalesce(u.at, g.made), {ROW_BYTES} * 3, r.index_version "
        "FROM main.execution e JOIN main.generation g ON g.id = e.generation "
        "LEFT JOIN main.retrieval r ON r.id = e.retrieval LEFT JOIN main.last_used u ON u.id = e.id"
    )
    for table, texts, version in (
        ("retrieval", "length(t.candidates) + length(t.query)", "t.index_version"),
        ("generation", "length(t.output)", "NULL"),
    ):
        connection.execute("CREATE TEMP TABLE part (id BLOB PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID")
        connection.execute(
            f"INSERT INTO temp.part SELECT e.{table}, max(x.at) FROM main.execution e "
            f"JOIN temp.ranked x ON x.id = e.id WHERE e.{table} IS NOT NULL GROUP BY 1"
        )
        connection.execute(
            f"INSERT OR IGNORE INTO temp.ranked SELECT t.id, max(t.made, coalesce(x.at, 0), coalesce(u.at, 0)), "
            f"{texts} + {ROW_BYTES}, {version} FROM main.{table} t LEFT JOIN temp.part x ON x.id = t.id "
            "LEFT JOIN main.last_used u ON u.id = t.id"
        )
        connection.execute("DROP TABLE temp.part")
    connection.execute(
        f"INSERT OR IGNORE INTO temp.ranked SELECT id, made, length(answer) + length(detail) + {ROW_BYTES}, NULL "
        "FROM main.judge_call"
    )


def _keep_newest(connection: sqlite3.Connection, max_bytes: int) -> None:
    """Leave in temp.ranked the most recently used, up to a size. A passage's text counts with the first retrieval that
    has it."""
    counts = _counts(connection)["token_count"] * ROW_BYTES
    if counts > max_bytes * TOKEN_COUNTS_SHARE:  # they are quickly made again
        connection.execute("DELETE FROM main.token_count")
        counts = 0
    left = max_bytes - counts
    texts = dict(connection.execute("SELECT id, length(CAST(body AS BLOB)) FROM main.text").fetchall())
    kept: list[tuple[bytes]] = []
    rows = connection.execute(
        "SELECT k.id, k.bytes, r.candidates FROM temp.ranked k LEFT JOIN main.retrieval r ON r.id = k.id "
        "ORDER BY k.at DESC, k.id"
    )
    for identity, own, candidates in rows:
        left -= own
        if candidates:
            for row in json.loads(candidates):
                length = texts.pop(row[3], None)
                left -= 0 if length is None else length + ROW_BYTES
        if left < 0:
            break
        kept.append((identity,))
    rows.close()
    connection.execute("CREATE TEMP TABLE kept (id BLOB PRIMARY KEY) WITHOUT ROWID")
    connection.executemany("INSERT INTO temp.kept VALUES (?)", kept)
    connection.execute("DELETE FROM temp.ranked WHERE id NOT IN (SELECT id FROM temp.kept)")
    connection.execute("DROP TABLE temp.kept")


def _remove_unranked(connection: sqlite3.Connection) -> None:
    """Remove results that are not ranked, and then what nothing names any more."""
    for table in ("retrieval", "generation", "execution", "judge_call"):
        connection.execute(f"DELETE FROM main.{table} WHERE id NOT IN (SELECT id FROM temp.ranked)")
    connection.execute(
        "DELETE FROM main.execution WHERE generation NOT IN (SELECT id FROM main.generation) "
        "OR (retrieval IS NOT NULL AND retrieval NOT IN (SELECT id FROM main.retrieval))"
    )
    remove_unnamed(connection)
    connection.execute(
        "DELETE FROM temp.ranked WHERE id NOT IN (SELECT id FROM main.execution) "
        "AND id NOT IN (SELECT id FROM main.retrieval) AND id NOT IN (SELECT id FROM main.generation) "
        "AND id NOT IN (SELECT id FROM main.judge_call)"
    )


def remove_unnamed(connection: sqlite3.Connection) -> None:
    """Remove judgments of executions that are gone, texts and sets of files that no result has, and their uses."""
    connection.execute("DELETE FROM main.judgment WHERE execution NOT IN (SELECT id FROM main.execution)")
    connection.execute("CREATE TEMP TABLE named (id PRIMARY KEY) WITHOUT ROWID")
    for source in ("retrieval, json_each(candidates)", "execution, json_each(gold)"):
        connection.execute(
            "INSERT OR IGNORE INTO temp.named SELECT json_extract(value, '$[3]') FROM main."
            f"{source} WHERE json_extract(value, '$[3]') IS NOT NULL"
        )
    connection.execute("DELETE FROM main.text WHERE id NOT IN (SELECT id FROM temp.named)")
    connection.execute("DELETE FROM temp.named")
    for table in STAGES:
        connection.execute(f"INSERT OR IGNORE INTO temp.named SELECT files FROM main.{table}")
    connection.execute(
        "INSERT OR IGNORE INTO temp.named SELECT id FROM main.judgment"
    )  # what its function read
    _name_sets_of_sets(connection)
    connection.execute("DELETE FROM main.file_set WHERE id NOT IN (SELECT id FROM temp.named)")
    connection.execute("DROP TABLE temp.named")
    connection.execute(
        "DELETE FROM main.last_used WHERE id NOT IN (SELECT id FROM main.execution) "
        "AND id NOT IN (SELECT id FROM main.retrieval)"
    )


def _name_sets_of_sets(connection: sqlite3.Connection) -> None:
    """Add to temp.named the sets of files of which those consist that are named there."""
    parts = {
        identity: [bytes.fromhex(each) for each in json.loads(sets)]
        for identity, sets in connection.execute(
            "SELECT id, json_extract(files, '$.sets') FROM main.file_set"
        )
    }
    waiting = [
        identity for (identity,) in connection.execute("SELECT id FROM temp.named") if identity in parts
    ]
    named = set(waiting)
    while waiting:
        for part in parts.get(waiting.pop(), ()):
            if part not in named:
                named.add(part)
                waiting.append(part)
    connection.executemany("INSERT OR IGNORE INTO temp.named VALUES (?)", [(each,) for each in named])


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    return {
        table: int(connection.execute(f"SELECT count(*) FROM main.{table}").fetchone()[0])
        for table in (*STAGES, "judgment", "judge_call", "text", "file_set")
    }
