"""Opening the store: one SQLite file in WAL mode, with a schema version.

New entries wait in memory and are written together by `commit`, which the run calls whenever it has nothing else
ready to do, and which is called here when many wait. A kill loses what was in flight, and of stages so quick that
there is always something to do, what finished in the last fraction of a second.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from oloproof.errors import ConfigurationError, UnfinishedError
from oloproof.store.claims import Claims

SCHEMA_VERSION = 3
FOLDER = ".oloproof"
FILE = "store.sqlite3"
CLAIMS = "claims"
#: How long a command waits for another one that writes.
BUSY_SECONDS = 60
#: How many entries may wait to be written: those of some hundred cases, which is a fraction of a second when stages
#: are so quick that nothing else calls for a commit.
MAX_WAITING = 4_000
#: Up to how many identities of a table are known by heart.
MAX_KNOWN = 200_000
#: Tables whose entries stand under an identity, the second column, in several variants.
WITH_VARIANTS = frozenset({"retrieval", "token_count", "generation", "execution"})
#: How many ids one look-up names; SQLite has a limit of its own.
MAX_IDS = 500

Entry = tuple[Any, ...]

_SCHEMA = """
CREATE TABLE text (id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE retrieval (
    id BLOB PRIMARY KEY, identity BLOB NOT NULL, files BLOB NOT NULL, query TEXT NOT NULL, candidates TEXT NOT NULL,
    seconds REAL NOT NULL, log TEXT NOT NULL, made REAL NOT NULL, index_version TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE token_count (
    id BLOB PRIMARY KEY, identity BLOB NOT NULL, files BLOB NOT NULL, tokens INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE generation (
    id BLOB PRIMARY KEY, identity BLOB NOT NULL, files BLOB NOT NULL, output TEXT NOT NULL,
    seconds REAL NOT NULL, log TEXT NOT NULL, made REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE execution (
    id BLOB PRIMARY KEY, identity BLOB NOT NULL, files BLOB NOT NULL, retrieval BLOB, generation BLOB NOT NULL,
    top_k INTEGER NOT NULL, kept INTEGER NOT NULL, gold TEXT) WITHOUT ROWID;
CREATE INDEX retrieval_by_identity ON retrieval (identity);
CREATE INDEX token_count_by_identity ON token_count (identity);
CREATE INDEX generation_by_identity ON generation (identity);
CREATE INDEX execution_by_identity ON execution (identity);
CREATE TABLE file_set (id BLOB PRIMARY KEY, files TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file_digest (
    path TEXT PRIMARY KEY, size INTEGER NOT NULL, changed INTEGER NOT NULL, content TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE outline (id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE judgment (
    id BLOB PRIMARY KEY, execution BLOB NOT NULL, state TEXT NOT NULL, value REAL, reason TEXT) WITHOUT ROWID;
CREATE TABLE judge_call (
    id BLOB PRIMARY KEY, model TEXT NOT NULL, answer TEXT NOT NULL, fault TEXT NOT NULL, detail TEXT NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, made REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE last_used (id BLOB PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE case_body (id BLOB PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE run (id TEXT PRIMARY KEY, parent TEXT, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE run_case (
    run TEXT NOT NULL, position INTEGER NOT NULL, case_id TEXT NOT NULL, body BLOB NOT NULL, pair BLOB NOT NULL,
    execution BLOB, judgments TEXT NOT NULL, tags TEXT NOT NULL, error TEXT, seconds TEXT NOT NULL,
    log TEXT NOT NULL, attempts TEXT NOT NULL, retrieval BLOB, kept INTEGER NOT NULL,
    PRIMARY KEY (run, position)) WITHOUT ROWID;
CREATE INDEX run_case_by_id ON run_case (run, case_id);
CREATE TABLE unstable (
    pair BLOB NOT NULL, criterion TEXT NOT NULL, differed INTEGER NOT NULL, repeats INTEGER NOT NULL,
    PRIMARY KEY (pair, criterion)) WITHOUT ROWID;
CREATE TABLE document (id TEXT PRIMARY KEY, kind TEXT NOT NULL, made REAL NOT NULL, record TEXT NOT NULL)
    WITHOUT ROWID;
"""


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


class Database:
    """A connection that turns SQLite's errors into sentences."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._ignore_in_git(path.parent)
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
            self._waiting: defaultdict[str, dict[Any, Entry]] = defaultdict(dict)
            self._by_identity: defaultdict[str, defaultdict[Any, list[Entry]]] = defaultdict(
                lambda: defaultdict(list)
            )
            self._count = 0
            #: Asked before anything is written; what it raises keeps the entries that wait from being written.
            self.guard: Callable[[], None] | None = None
            #: Tables that held nothing at first, and the identities that were added to each since.
            self._was_empty: dict[str, bool] = {}
            self._mine: defaultdict[str, set[Any]] = defaultdict(set)
            self.connection = connection
            #: What this process is getting for the store, so that no other pays for it too.
            self.claims = Claims(path.parent / CLAIMS)
            try:
                self._prepare()
                self._first_version = self._data_version = self._version()
            except BaseException:
                connection.close()
                raise
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_FULL", "SQLITE_IOERR")):
                raise self._failure(error) from None
            if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
                raise UnfinishedError(
                    f"{path}: another command has kept the store locked for {BUSY_SECONDS} seconds; let it end, then "
                    "run this again"
                ) from None
            raise ConfigurationError(
                f"{path}: cannot be opened as a store ({error}); "
                + (
                    "the store and its folder must be writable"
                    if path.is_file() and not _is_writable(path)
                    else "move it away to start with an empty one"
                )
            ) from None
        except OSError as error:
            raise ConfigurationError(f"{path}: cannot be made ({error.strerror or error})") from None

    @staticmethod
    def _ignore_in_git(folder: Path) -> None:
        marker = folder / ".gitignore"
        if not marker.exists():
            marker.write_text("*\n", encoding="utf-8")

    def _prepare(self) -> None:
        connection = self.connection
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        self._write_ahead()
        connection.execute("PRAGMA synchronous = NORMAL")
        # Ids are digests, so entries fall on pages all over the file: those are kept at hand, and moved from the log to
        # their places seldom (sizes in KB and in pages of 4 KB).
        connection.execute("PRAGMA cache_size = -16000")
        connection.execute("PRAGMA wal_autocheckpoint = 8000")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._create()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != SCHEMA_VERSION:
            raise ConfigurationError(
                f"{self.path}: made by another version of Oloproof (schema {version}, this one reads "
                f"{SCHEMA_VERSION}); move it away to start with an empty store, or use that version"
            )

    def _write_ahead(self) -> None:
        """Switch to a write-ahead log. Of two processes that do so at once to a new file SQLite refuses one, without
        the wait that `busy_timeout` asks for."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self.connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.005)

    def _create(self) -> None:
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not tables:
                create_tables(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite has ended it by itself when the disk is full
                connection.execute("ROLLBACK")
            raise

    # ----------------------------------------------------------------------------- entries by id

    def add(self, table: str, entries: Iterable[Entry]) -> None:
        """Keep entries, whose first column is their id, for the next commit. The first one of an id stands."""
        waiting = self._waiting[table]
        before = len(waiting)
        variants = self._by_identity[table] if table in WITH_VARIANTS else None
        if variants is not None:
            self._is_ours(table)  # looked at before the first entry is written
        mine = self._mine[table]
        for entry in entries:
            if entry[0] not in waiting:
                waiting[entry[0]] = entry
                if variants is not None:
                    variants[entry[1]].append(entry)
                    mine.add(entry[1])
        self._count += len(waiting) - before
        if self._count >= MAX_WAITING:
            self.commit()

    def find(self, table: str, identity: Any) -> Entry | None:
        """The entry of an id, written or waiting."""
        waiting = self._waiting[table].get(identity)
        if waiting is not None:
            return waiting
        found: Entry | None = self.read(f"SELECT * FROM {table} WHERE id = ?", (identity,)).fetchone()
        return found

    def find_all(self, table: str, ids: Sequence[Any]) -> dict[Any, Entry]:
        """The entries among ids, written or waiting, by id."""
        waiting = self._waiting[table]
        found = {identity: waiting[identity] for identity in ids if identity in waiting}
        for part in in_parts(ids if not found else [identity for identity in ids if identity not in found]):
            rows = self.read(f"SELECT * FROM {table} WHERE id IN ({marks(part)})", tuple(part))
            found |= {row[0]: row for row in rows}
        return found

    def variants(self, table: str, identities: Sequence[Any]) -> dict[Any, list[Entry]]:
        """The entries of each identity, written or waiting: one for each state of the files that they depend on."""
        found: dict[Any, list[Entry]] = {}
        identities = self.conceivable(table, identities)
        if not identities:
            return found
        waiting = self._by_identity[table]
        if waiting:
            found = {identity: list(waiting[identity]) for identity in identities if identity in waiting}
        for part in in_parts(identities):
            for row in self.read(f"SELECT * FROM {table} WHERE identity IN ({marks(part)})", tuple(part)):
                found.setdefault(row[1], []).append(row)
        return found

    def conceivable(self, table: str, identities: Sequence[Any]) -> Sequence[Any]:
        """Those of the identities of which there may be entries, as far as that is known without looking."""
        if not self._is_ours(table):
            return identities
        mine = self._mine[table]
        return [identity for identity in identities if identity in mine]

    @property
    def shared(self) -> bool:
        """Whether another connection has written since this one was opened, as of the last commit."""
        return self._data_version != self._first_version

    def _is_ours(self, table: str) -> bool:
        """Whether all that a table holds was written by this connection, which then knows what there is to find."""
        if table not in self._was_empty:
            self._was_empty[table] = self.read(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None
        return self._was_empty[table] and not self.shared and len(self._mine[table]) < MAX_KNOWN

    # ---------------------------------------------------------------------------------- statements

    def write(self, statement: str, rows: list[Entry]) -> None:
        """Run one statement for each row, inside the open transaction (one is begun when there is none)."""
        try:
            if not self.connection.in_transaction:
                self.connection.execute("BEGIN IMMEDIATE")
            self.connection.executemany(statement, rows)
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def write_among_others(self, statement: str, rows: list[Entry]) -> None:
        """As `write`; while others write too it is committed at once, since they wait for as long as it is not."""
        self.write(statement, rows)
        if self.shared:
            self.commit()

    def read(self, statement: str, parameters: Entry = ()) -> sqlite3.Cursor:
        """What a query finds; it does not see entries that wait."""
        try:
            return self.connection.execute(statement, parameters)
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def commit(self) -> None:
        """Write what waits, and make it last; `guard` is asked first, when something waits, and may raise."""
        if self._count and self.guard is not None:
            try:
                self.guard()
            except BaseException:
                self._discard()
                raise
        for table, entries in self._waiting.items():
            if entries:
                rows = sorted(entries.values())  # neighbours lie on the same page of the file
                self.write(f"INSERT OR IGNORE INTO {table} VALUES ({marks(rows[0])})", rows)
                entries.clear()
        self._by_identity.clear()
        self._count = 0
        try:
            if self.connection.in_transaction:
                self.connection.execute("COMMIT")
                self._data_version = self._version()
        except sqlite3.Error as error:
            raise self._failure(error) from None
        self.claims.committed()

    def _version(self) -> int:
        """A number that changes when another connection has written."""
        (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def _discard(self) -> None:
        """Forget what waits: it is not what its identity says."""
        self._waiting.clear()
        self._by_identity.clear()
        self._count = 0

    def close(self) -> None:
        try:
            self.guard = None
            self.commit()
        finally:
            self.connection.close()
            self.claims.close()

    def _failure(self, error: sqlite3.Error) -> UnfinishedError:
        return UnfinishedError(f"{self.path}: the store failed ({error}); what was stored before is kept")


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of a store in an empty database."""
    for statement in _SCHEMA.split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def in_parts(ids: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """The ids in parts that one look-up can name."""
    for start in range(0, len(ids), MAX_IDS):
        yield ids[start : start + MAX_IDS]


def marks(part: Sequence[Any]) -> str:
    """Place holders for the values of one look-up or row."""
    return ",".join("?" * len(part))
