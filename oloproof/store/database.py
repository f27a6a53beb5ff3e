"""Opening the store: one SQLite file in WAL mode, with a schema version.

Writes are collected in a transaction and committed by `commit`, which the run calls whenever it has nothing else
ready to do; a kill loses what finished in the last milliseconds at most.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from oloproof.errors import ConfigurationError, UnfinishedError

SCHEMA_VERSION = 1
FOLDER = ".oloproof"
FILE = "store.sqlite3"

_SCHEMA = """
CREATE TABLE text (id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE retrieval (
    id BLOB PRIMARY KEY, query TEXT NOT NULL, candidates TEXT NOT NULL, seconds REAL NOT NULL, log TEXT NOT NULL,
    made REAL NOT NULL, index_version TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE token_count (id BLOB PRIMARY KEY, tokens INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE generation (
    id BLOB PRIMARY KEY, output TEXT NOT NULL, seconds REAL NOT NULL, log TEXT NOT NULL,
    made REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE execution (
    id BLOB PRIMARY KEY, retrieval BLOB, generation BLOB NOT NULL, top_k INTEGER NOT NULL, kept INTEGER NOT NULL,
    gold TEXT) WITHOUT ROWID;
CREATE TABLE judgment (id BLOB PRIMARY KEY, state TEXT NOT NULL, value REAL, reason TEXT) WITHOUT ROWID;
CREATE TABLE case_body (id BLOB PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE run (id TEXT PRIMARY KEY, parent TEXT, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE run_case (
    run TEXT NOT NULL, position INTEGER NOT NULL, case_id TEXT NOT NULL, body BLOB NOT NULL, pair BLOB NOT NULL,
    execution BLOB, judgments TEXT NOT NULL, tags TEXT NOT NULL, error TEXT, seconds TEXT NOT NULL,
    log TEXT NOT NULL, PRIMARY KEY (run, position)) WITHOUT ROWID;
CREATE INDEX run_case_by_id ON run_case (run, case_id);
CREATE TABLE document (id TEXT PRIMARY KEY, kind TEXT NOT NULL, made REAL NOT NULL, record TEXT NOT NULL)
    WITHOUT ROWID;
"""


class Database:
    """A connection that turns SQLite's errors into sentences."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._ignore_in_git(path.parent)
            self.connection = sqlite3.connect(path, timeout=60.0, isolation_level=None)
            self._prepare()
        except sqlite3.DatabaseError as error:
            raise ConfigurationError(
                f"{path}: cannot be opened as a store ({error}); move it away to start with an empty one"
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
        connection.execute("PRAGMA busy_timeout = 60000")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._create()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != SCHEMA_VERSION:
            raise ConfigurationError(
                f"{self.path}: made by another version of Oloproof (schema {version}, this one reads "
                f"{SCHEMA_VERSION}); move it away to start with an empty store, or use that version"
            )

    def _create(self) -> None:
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not tables:
                for statement in _SCHEMA.split(";"):
                    if statement.strip():
                        connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    def write(self, statement: str, rows: list[tuple[object, ...]]) -> None:
        """Run one statement for each row, inside the open transaction (one is begun when there is none)."""
        try:
            if not self.connection.in_transaction:
                self.connection.execute("BEGIN IMMEDIATE")
            self.connection.executemany(statement, rows)
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def read(self, statement: str, parameters: tuple[object, ...] = ()) -> sqlite3.Cursor:
        try:
            return self.connection.execute(statement, parameters)
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def commit(self) -> None:
        try:
            if self.connection.in_transaction:
                self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def close(self) -> None:
        self.commit()
        self.connection.close()

    def _failure(self, error: sqlite3.Error) -> UnfinishedError:
        return UnfinishedError(f"{self.path}: the store failed ({error}); what was stored before is kept")
