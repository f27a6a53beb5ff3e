"""Snapshots: the results of a store in one compact file, to be carried to another machine and merged there.

A snapshot holds stage results, judgments, which cases are unstable and, of the runs that are named, the records. It
holds no logs, and of cases nothing but what the results hold.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from oloproof.errors import OloproofError
from oloproof.store.database import SCHEMA_VERSION, create_tables
from oloproof.store.recency import STAGES, note_use, prune, remove_unnamed

#: The tables of a snapshot, in the order in which they are copied: what names others comes after them.
TABLES = ("text", "file_set", *STAGES, "judgment", "judge_call", "outline", "unstable", "last_used")
OF_RUNS = ("run", "run_case")
#: Columns that a snapshot leaves empty, with what is empty in each: what code printed, and what failed calls said, that
#: may quote an address with its secrets.
EMPTY = {
    ("retrieval", "log"): "''",
    ("generation", "log"): "''",
    ("run_case", "log"): "''",
    ("run_case", "attempts"): "'[]'",
}
#: After how long without a use the entries of an index version go.
UNSEEN_SECONDS = 30 * 86_400.0


class SnapshotRefused(OloproofError):
    """A file is no snapshot that this version can read: says what is wrong with it."""


@dataclass(frozen=True)
class Manifest:
    """What a snapshot holds. `counts` are rows by table, `keys` is the digest of the keys of all results, `runs` are
    the ids of the runs in it, `sha256` and `bytes` are those of the file, `schema` is the store's."""

    schema: int
    counts: dict[str, int]
    keys: str
    sha256: str
    bytes: int
    runs: Sequence[str] = ()


@dataclass(frozen=True)
class Merged:
    """How many rows came into each table, of those that a snapshot holds."""

    rows: dict[str, int]


def stored_keys(path: Path) -> str:
    """The digest of the keys of all results in a store or snapshot: equal when there is nothing new to save."""
    with _opened(path) as connection:
        return _keys(connection)


def write_snapshot(
    store: Path,
    target: Path,
    *,
    now: float,
    max_bytes: int | None = None,
    runs: Sequence[str] = (),
    only_of_runs: bool = False,
) -> Manifest:
    """Write the results of a store into a new file, without those that are too many (see `recency.prune`).

    `runs` are those whose records go with it; with `only_of_runs` nothing but what these runs used. Raises OSError and
    sqlite3.Error when the disk is full; the file is then removed.
    """
    target.unlink(missing_ok=True)
    try:
        with _opened(target, new=True) as connection:
            create_tables(connection)
            connection.execute("ATTACH ? AS store", (f"{store.absolute().as_uri()}?mode=ro",))
            connection.execute("BEGIN")
            _copy_runs(connection, runs)
            for table in TABLES:
                _copy(connection, table)
            note_use(connection, "store")
            if only_of_runs:
                _keep_what_runs_used(connection)
            connection.execute("COMMIT")
            connection.execute("DETACH store")
            connection.execute("BEGIN")
            went = prune(connection, now=now, unseen_seconds=UNSEEN_SECONDS, max_bytes=max_bytes)
            connection.execute("COMMIT")
            if went.total or only_of_runs:
                connection.execute("VACUUM")
            counts, keys = _counts(connection), _keys(connection)
        return Manifest(SCHEMA_VERSION, counts, keys, _sha256(target), target.stat().st_size, tuple(runs))
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def check_snapshot(path: Path, manifest: Manifest) -> None:
    """Raises SnapshotRefused unless a file is what its manifest says, whole, and nothing but tables of ours."""
    if manifest.schema != SCHEMA_VERSION:
        raise SnapshotRefused(
            f"it was made by another version (schema {manifest.schema}, not {SCHEMA_VERSION})"
        )
    try:
        if path.stat().st_size != manifest.bytes or _sha256(path) != manifest.sha256:
            raise SnapshotRefused("its content is not what its manifest says")
        with _opened(path) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != SCHEMA_VERSION or _tables(connection) != _expected_tables():
                raise SnapshotRefused("its tables are not those of a store")
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise SnapshotRefused("it is damaged")
            if {run for (run,) in connection.execute("SELECT id FROM run")} != set(manifest.runs):
                raise SnapshotRefused("its runs are not those that its manifest names")
    except (sqlite3.Error, OSError) as error:
        raise SnapshotRefused(f"it cannot be read ({error})") from None


def take_in(snapshot: Path, store: Path) -> Merged:
    """Merge a checked snapshot into a store, where what is there already stays as it is. A store that does not exist
    yet is the snapshot itself, moved to its place."""
    if not store.exists():
        with _opened(snapshot) as connection:
            counts = _counts(connection)
        store.parent.mkdir(parents=True, exist_ok=True)
        if os.stat(snapshot).st_dev == os.stat(store.parent).st_dev:
            os.replace(snapshot, store)
        else:
            draft = store.with_name(store.name + ".new")
            try:
                shutil.copyfile(snapshot, draft)
                os.replace(draft, store)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
        return Merged(counts)
    with _opened(store, write=True) as connection:
        connection.execute("ATTACH ? AS store", (f"{snapshot.absolute().as_uri()}?mode=ro&immutable=1",))
        connection.execute("BEGIN IMMEDIATE")
        before = connection.total_changes
        rows = {}
        for table in (*TABLES, *OF_RUNS):
            connection.execute(_merging(table))
            rows[table] = connection.total_changes - before
            before = connection.total_changes
        connection.execute("COMMIT")
    return Merged(rows)


def _merging(table: str) -> str:
    if table == "last_used":
        return (
            "INSERT INTO main.last_used SELECT id, at FROM store.last_used WHERE true "
            "ON CONFLICT (id) DO UPDATE SET at = max(at, excluded.at)"
        )
    if table == "unstable":
        return (
            "INSERT INTO main.unstable SELECT * FROM store.unstable WHERE true ON CONFLICT (pair, criterion) "
            "DO UPDATE SET differed = excluded.differed, repeats = excluded.repeats WHERE excluded.repeats > repeats"
        )
    return f"INSERT OR IGNORE INTO main.{table} SELECT * FROM store.{table}"


def _copy(connection: sqlite3.Connection, table: str, where: str = "true") -> None:
    names = [name for _, name, *_ in connection.execute(f"PRAGMA main.table_info({table})")]
    values = ", ".join(EMPTY.get((table, name), name) for name in names)
    connection.execute(
        f"INSERT INTO main.{table} SELECT {values} FROM store.{table} WHERE {where} ORDER BY {names[0]}"
    )


def _copy_runs(connection: sqlite3.Connection, runs: Sequence[str]) -> None:
    connection.execute("CREATE TEMP TABLE wanted (id TEXT PRIMARY KEY)")
    connection.executemany("INSERT INTO temp.wanted VALUES (?)", [(run,) for run in runs])
    _copy(connection, "run", "id IN (SELECT id FROM temp.wanted)")
    _copy(connection, "run_case", "run IN (SELECT id FROM temp.wanted)")
    connection.execute("DROP TABLE temp.wanted")


def _keep_what_runs_used(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM main.execution WHERE id NOT IN (SELECT execution FROM main.run_case)")
    connection.execute(
        "DELETE FROM main.retrieval WHERE id NOT IN (SELECT retrieval FROM main.execution WHERE retrieval IS NOT NULL "
        "UNION SELECT retrieval FROM main.run_case WHERE retrieval IS NOT NULL)"
    )
    connection.execute("DELETE FROM main.generation WHERE id NOT IN (SELECT generation FROM main.execution)")
    for table in ("token_count", "judge_call", "outline", "unstable"):
        connection.execute(f"DELETE FROM main.{table}")
    remove_unnamed(connection)


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    return {
        table: int(connection.execute(f"SELECT count(*) FROM main.{table}").fetchone()[0])
        for table in (*TABLES, *OF_RUNS)
    }


def _keys(connection: sqlite3.Connection) -> str:
    found = hashlib.sha256()
    for table in (*STAGES, "judgment", "judge_call"):
        found.update(table.encode())
        for (key,) in connection.execute(f"SELECT CAST(id AS BLOB) FROM main.{table} ORDER BY id"):
            found.update(key)
    # Judgments are made anew under the same key when what their function reads has changed: so have the sets of files.
    for table in ("unstable", "file_set"):
        for row in connection.execute(f"SELECT * FROM main.{table} ORDER BY 1, 2"):
            found.update(repr(row).encode())
    return found.hexdigest()


def _tables(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    return sorted(connection.execute("SELECT type, name, coalesce(sql, '') FROM main.sqlite_master"))


def _expected_tables() -> list[tuple[str, str, str]]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        create_tables(connection)
        return _tables(connection)
    finally:
        connection.close()


@contextmanager
def _opened(path: Path, *, new: bool = False, write: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection to a file; a new one is written without a journal, since it is removed when that fails."""
    mode = "rwc" if new else "rw" if write else "ro"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=60.0
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cache_size = -16000")
        if new:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
        yield connection
    finally:
        connection.close()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
