"""Stage results of earlier jobs: restored into a store before a run, and saved after it when something was learned."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from oloproof.errors import OloproofError
from oloproof.store.database import SCHEMA_VERSION
from oloproof.store.snapshots import (
    Manifest,
    SnapshotRefused,
    check_snapshot,
    stored_keys,
    take_in,
    write_snapshot,
)
from oloproof_ci.actions_cache import keys
from oloproof_ci.actions_cache.access import Access
from oloproof_ci.actions_cache.archives import ArchiveRefused, pack, unpack
from oloproof_ci.actions_cache.service import CacheService, Entry
from oloproof_ci.actions_cache.transfers import Transfers

#: Where a snapshot stands for whoever restores it with `actions/cache`, relative to the workspace.
PATH = ".oloproof/stages"
MANIFEST, RESULTS = "manifest.json", "results.sqlite3"
FORMAT = 1
#: The largest manifest that is read; ours have some hundred bytes.
MAX_MANIFEST = 10_000
#: By how much a restored snapshot may be larger than what we would save.
TOLERANCE = 4
#: Why nothing was saved when a warning says more.
FAILED = "it failed"
VERSION = keys.cache_version([PATH])
_RUN = re.compile(r"run_[0-9A-Z]{26}")


@dataclass(frozen=True)
class Restored:
    """What came from the cache. `key` is None when there was nothing, `same_index` says whether it was saved under the
    present index version, `bytes` is the size of the archive, `results` counts stage results and judgments, `stored` is
    the digest of their keys."""

    key: str | None = None
    same_index: bool = False
    bytes: int = 0
    results: int = 0
    stored: str = ""


@dataclass(frozen=True)
class Saved:
    """What went into the cache. `key` is None when nothing was saved, and `reason` then says why."""

    key: str | None = None
    bytes: int = 0
    results: int = 0
    reason: str = ""


class StageCache:
    """The cache as one job uses it. Nothing here raises for what the cache or its entries do: each is one warning.

    `scratch` is a folder for archives, best on the file system of the store; `clock` gives seconds since the epoch.
    `known` is the digest of what the job has restored already: a store with the same keys has nothing new.
    """

    def __init__(
        self,
        access: Access,
        transfers: Transfers,
        scratch: Path,
        warn: Callable[[str], None],
        clock: Callable[[], float],
        max_bytes: int,
        known: str = "",
    ) -> None:
        self._access = access
        self._transfers = transfers
        self._scratch = scratch
        self._warn = warn
        self._clock = clock
        self._max_bytes = max_bytes
        self._known = {known}

    def restore(self, suite: str, index_version: str, store: Path) -> Restored:
        """Take the newest results of an index version into a store, else the newest of the suite: generations and
        judgments count all the same."""
        same = keys.stage_prefix(SCHEMA_VERSION, suite, index_version)
        found = self._take_in([same, keys.any_stage_prefix(SCHEMA_VERSION, suite)], store)
        if found is None:
            return Restored()
        entry, manifest, size = found
        self._known.add(manifest.keys)
        same_index = entry.key.lower().startswith(same)
        return Restored(entry.key, same_index, size, _results(manifest), manifest.keys)

    def save(self, suite: str, index_version: str, store: Path) -> Saved:
        """Save a store's results, unless it has learned nothing since they were restored."""
        service = self._writing()
        if service is None or not store.exists():
            return Saved(reason=self._access.reason or "the cache is not written in this job")
        with self._guarded("stage results could not be saved"):
            stored = stored_keys(store)
            if stored in self._known:
                return Saved(reason="nothing new was learned")
            self._known.add(stored)
            with self._archive(store, max_bytes=self._max_bytes) as (archive, manifest):
                if manifest.keys in self._known - {stored}:
                    return Saved(reason="nothing new was learned")
                key = keys.stage_key(SCHEMA_VERSION, suite, index_version, manifest.keys)
                if not service.save(key, VERSION, archive):
                    return Saved(reason="another job has saved the same")
                return Saved(key, archive.stat().st_size, _results(manifest))
        return Saved(reason=FAILED)

    # --------------------------------------------------------------------------------- baselines

    def restore_baseline(self, suite: str, commit: str, inputs: str, store: Path) -> str | None:
        """Take the run on a commit into a store, when it was saved with the same inputs; gives its id."""
        found = self._take_in([keys.baseline_key(SCHEMA_VERSION, suite, commit, inputs)], store)
        return str(found[1].runs[0]) if found is not None and found[1].runs else None

    def save_baseline(self, suite: str, commit: str, inputs: str, store: Path, run: str) -> Saved:
        """Save a run, with the results it used, for pull requests into its commit."""
        service = self._writing()
        if service is None:
            return Saved(reason=self._access.reason or "the cache is not written in this job")
        with (
            self._guarded("the baseline could not be saved"),
            self._archive(store, runs=[run], only_of_runs=True) as (archive, manifest),
        ):
            key = keys.baseline_key(SCHEMA_VERSION, suite, commit, inputs)
            if not service.save(key, VERSION, archive):
                return Saved(reason="it has been saved before")
            return Saved(key, archive.stat().st_size, _results(manifest))
        return Saved(reason=FAILED)

    # ----------------------------------------------------------------------------------- entries

    def _writing(self) -> CacheService | None:
        return self._access.service if self._access.writable else None

    def _take_in(self, wanted: Sequence[str], store: Path) -> tuple[Entry, Manifest, int] | None:
        service = self._access.service if self._access.readable else None
        if service is None:
            return None
        with self._guarded("stage results could not be restored"):
            entry = service.find(wanted, VERSION)
            if entry is None or not entry.key.lower().startswith(tuple(wanted)):
                return None
            with tempfile.TemporaryDirectory(dir=self._scratch, prefix="restored-") as folder:
                archive, inside = Path(folder) / "archive.tzst", Path(folder) / "unpacked"
                limit = self._max_bytes * TOLERANCE
                size = self._transfers.download(entry.url, archive, limit)
                unpack(archive, PATH, frozenset({MANIFEST, RESULTS}), inside, limit)
                manifest = _manifest(inside / MANIFEST)
                check_snapshot(inside / RESULTS, manifest)
                take_in(inside / RESULTS, store)
                return entry, manifest, size
        return None

    @contextmanager
    def _archive(
        self,
        store: Path,
        *,
        max_bytes: int | None = None,
        runs: Sequence[str] = (),
        only_of_runs: bool = False,
    ) -> Iterator[tuple[Path, Manifest]]:
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix="saved-") as folder:
            inside = Path(folder) / "snapshot"
            inside.mkdir()
            manifest = write_snapshot(
                store,
                inside / RESULTS,
                now=self._clock(),
                max_bytes=max_bytes,
                runs=runs,
                only_of_runs=only_of_runs,
            )
            record = {"format": FORMAT, **asdict(manifest)}
            (inside / MANIFEST).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            archive = Path(folder) / "archive.tzst"
            pack(inside, PATH, archive)
            shutil.rmtree(inside)
            yield archive, manifest

    @contextmanager
    def _guarded(self, what: str) -> Iterator[None]:
        try:
            yield
        except ArchiveRefused as error:
            self._warn(f"{what}: the entry's archive was refused: {error}")
        except SnapshotRefused as error:
            self._warn(f"{what}: the entry was refused: {error}")
        except OloproofError as error:
            self._warn(f"{what}: {error}")
        except OSError as error:
            self._warn(f"{what}: {error.strerror or error}")
        except sqlite3.Error as error:
            self._warn(f"{what}: {error}")


def _manifest(path: Path) -> Manifest:
    try:
        if path.stat().st_size > MAX_MANIFEST:
            raise SnapshotRefused("its manifest is too large")
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.pop("format") != FORMAT:
            raise SnapshotRefused("its manifest is of another format")
        manifest = Manifest(**found)
        kinds = {"schema": int, "bytes": int, "keys": str, "sha256": str, "runs": list, "counts": dict}
        if not all(type(getattr(manifest, name)) is kind for name, kind in kinds.items()):
            raise TypeError
        if not all(type(count) is int for count in manifest.counts.values()):
            raise TypeError
        if not all(type(run) is str and _RUN.fullmatch(run) for run in manifest.runs):
            raise TypeError
        return manifest
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise SnapshotRefused("its manifest cannot be read") from None


def _results(manifest: Manifest) -> int:
    names = ("retrieval", "token_count", "generation", "execution", "judgment")
    return sum(manifest.counts.get(name, 0) for name in names)
