"""Stage results carried from job to job: restored before each suite is measured, saved once the verdict is out."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from oloproof.settings.project import Project
from oloproof.store.database import FILE, FOLDER
from oloproof_ci.actions_cache.access import access
from oloproof_ci.actions_cache.stages import FAILED, Restored, Saved, StageCache
from oloproof_ci.actions_cache.transfers import Budget, Transfers

#: How long restoring may take in all, and how long saving, in seconds.
RESTORE_SECONDS = 120.0
SAVE_SECONDS = 240.0
MB = 1_000_000
NOT_RESTORED = Restored()
NOT_SAVED = Saved(reason="the evaluation did not get so far")
OTHERS_CODE = "a pull request's code was measured where the branch's own jobs would read what is saved"


@dataclass
class Carried:
    """The results of one suite on their way. `store` is where they lie once they are set aside."""

    config: str
    suite: str
    index_version: str
    store: Path
    max_bytes: int
    restored: Restored = NOT_RESTORED
    saved: Saved = NOT_SAVED


@dataclass(frozen=True)
class Seed:
    """A run of the base branch, for pull requests into its commit."""

    suite: str
    commit: str
    inputs: str
    run: str


@dataclass
class CarriedResults:
    """All suites of one job. `scratch` is a folder of ours that outlives the stores; `warnings` collects what could not
    be done, one sentence each, since nothing about the cache fails a job. Without `saving` results are only restored.
    """

    environment: Mapping[str, str]
    scratch: Path
    enabled: bool
    warnings: list[str] = field(default_factory=list)
    suites: list[Carried] = field(default_factory=list)
    seeds: list[Seed] = field(default_factory=list)
    saving: bool = True
    #: What is left of the time for each, over all suites.
    seconds: dict[str, float] = field(
        default_factory=lambda: {"restore": RESTORE_SECONDS, "save": SAVE_SECONDS}
    )

    def restore(self, project: Project, suite: str, index_version: str, folder: Path) -> None:
        """Bring earlier results into the store that is kept in `folder`."""
        if not self.enabled:
            return
        store = folder / FOLDER / FILE
        carried = Carried(str(project.path), suite, index_version, store, project.config.cache.max_mb * MB)
        self.suites.append(carried)
        with self._cache(carried, "restore") as cache:
            carried.restored = cache.restore(suite, index_version, store)

    def baseline(self, suite: str, commit: str, inputs: str, folder: Path) -> str | None:
        """Bring the run on a commit into the store of a suite that was restored before; gives its id."""
        carried = self._of(suite, folder)
        if carried is None:
            return None
        with self._cache(carried, "restore") as cache:
            return cache.restore_baseline(suite, commit, inputs, carried.store)

    def seed(self, suite: str, commit: str, inputs: str, run: str) -> None:
        """Keep a run for pull requests into its commit. What a job saves that was started by a pull request is out of
        reach of the base branch's jobs by the cache's own rules."""
        self.seeds.append(Seed(suite, commit, inputs, run))

    def set_aside(self) -> None:
        """Move the stores to where they outlive the job's other files; nothing is measured after this. Suites in one
        folder have one store."""
        for carried in self.suites:
            if carried.store.exists():
                target = self.scratch / f"store-{self.suites.index(carried)}"
                before = carried.store.parent
                shutil.move(before, target)
                for each in self.suites:
                    if each.store.parent == before:
                        each.store = target / FILE

    def save(self) -> None:
        """Save what was learned, also when the gate blocks or an evaluation failed half way."""
        for carried in self.suites:
            if not self.saving:
                carried.saved = Saved(reason=OTHERS_CODE)
                continue
            with self._cache(carried, "save") as cache:
                carried.saved = cache.save(carried.suite, carried.index_version, carried.store)
                if carried.saved.reason == FAILED:  # and has been told; the seed would fail in the same way
                    continue
                for seed in self.seeds:
                    if seed.suite == carried.suite:
                        cache.save_baseline(seed.suite, seed.commit, seed.inputs, carried.store, seed.run)

    def _of(self, suite: str, folder: Path) -> Carried | None:
        store = folder / FOLDER / FILE
        return next((each for each in self.suites if (each.suite, each.store) == (suite, store)), None)

    @contextmanager
    def _cache(self, carried: Carried, what: str) -> Iterator[StageCache]:
        began = time.monotonic()
        transfers = Transfers(Budget(self.seconds[what]))
        try:
            found = access(self.environment, transfers)
            yield StageCache(
                found,
                transfers,
                self.scratch,
                self.warnings.append,
                time.time,
                carried.max_bytes,
                carried.restored.stored,
            )
        finally:
            transfers.close()
            self.seconds[what] -= time.monotonic() - began


@contextmanager
def carried_results(
    environment: Mapping[str, str], *, enabled: bool, saving: bool = True
) -> Iterator[CarriedResults]:
    """The results of a job, with a folder that nobody else may enter."""
    with tempfile.TemporaryDirectory(prefix="oloproof-cache-") as scratch:
        yield CarriedResults(environment, Path(scratch), enabled, saving=saving)
