"""`oloproof cache`."""

from __future__ import annotations

import argparse
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from oloproof.cli.output import emit, emit_record
from oloproof.cli.stored import existing_store
from oloproof.errors import UnfinishedError
from oloproof.report.store_text import pruned_text, stats_text
from oloproof.settings.project import CacheSettings, load_project
from oloproof.store.holdings import Holdings, holdings
from oloproof.store.recency import Pruned, note_use, prune
from oloproof.workplace import Store

MB = 1_000_000
DAY = 86_400.0


def command(given: argparse.Namespace) -> int:
    with existing_store(given.config) as store, _told(store):
        if given.action == "stats":
            found = holdings(store.database.connection, store.database.path)
            if given.json:
                emit_record(found.to_json())
            else:
                emit(stats_text(found))
            return 0
        limit = given.max_mb or _max_mb(given)
        before, went, after = _prune(store, limit * MB, given.unused_days * DAY)
        if given.json:
            emit_record({"removed": went.rows, "bytes_before": before.bytes, "bytes_after": after.bytes})
        else:
            emit(pruned_text(went, before, after))
        return 0


def _max_mb(given: argparse.Namespace) -> int:
    if not given.config.exists():
        return CacheSettings().max_mb
    return load_project(given.config).config.cache.max_mb


def _prune(store: Store, max_bytes: int, unseen_seconds: float) -> tuple[Holdings, Pruned, Holdings]:
    connection, path = store.database.connection, store.database.path
    before = holdings(connection, path)
    connection.execute("BEGIN IMMEDIATE")
    try:
        note_use(connection)
        went = prune(connection, now=time.time(), unseen_seconds=unseen_seconds, max_bytes=max_bytes)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    if went.total:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return before, went, holdings(connection, path)


@contextmanager
def _told(store: Store) -> Iterator[None]:
    """SQLite's errors as sentences, a store that a run is writing to among them."""
    try:
        yield
    except sqlite3.Error as error:
        raise UnfinishedError(
            f"{store.database.path}: the store failed ({error}); nothing was removed"
        ) from None
