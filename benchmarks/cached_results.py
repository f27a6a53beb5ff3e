"""Saving and restoring 100,000 stage results: `python benchmarks/cached_results.py make|save|restore|copy FOLDER`.

`make` fills a store with them. `save` writes a snapshot and its archive, `restore` unpacks and checks them and opens
them as a new store: all but the transfer. `copy` prints how many seconds a copy of the store takes.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from pathlib import Path

from oloproof.canonical import digest
from oloproof.records import PASSED, Candidate, Execution
from oloproof.store.results import Key, StoredGeneration, StoredRetrieval
from oloproof.workplace import Store, opened_store
from oloproof_ci.actions_cache.access import Access
from oloproof_ci.actions_cache.service import Entry
from oloproof_ci.actions_cache.stages import StageCache

#: Retrievals, generations and executions, a third each.
EACH = 33_334
PASSAGES = 20_000
WORDS = 45


class Folder:
    """A service whose entry is a file, and transfers that copy it."""

    def __init__(self, folder: Path) -> None:
        self._archive, self._key = folder / "archive", folder / "key"

    def find(self, keys: object, version: str) -> Entry:
        return Entry(self._key.read_text(), "")

    def save(self, key: str, version: str, archive: Path) -> bool:
        shutil.copy(archive, self._archive)
        self._key.write_text(key)
        return True

    def download(self, url: str, target: Path, max_bytes: int) -> int:
        shutil.copy(self._archive, target)
        return target.stat().st_size


def main(action: str, folder: Path) -> None:
    store = folder / ".oloproof" / "store.sqlite3"
    service, scratch = Folder(folder), folder / "scratch"
    if action == "make":
        _fill(folder)
        scratch.mkdir()
        return
    if action == "copy":
        started = time.perf_counter()
        shutil.copy(store, scratch / "copy")
        print(json.dumps(time.perf_counter() - started))
        return
    cache = StageCache(Access(service), service, scratch, print, time.time, 500_000_000)  # type: ignore[arg-type]
    if action == "save":
        assert cache.save("suite", "kb", store).key
        return
    target = folder / "restored"
    shutil.rmtree(target, ignore_errors=True)
    assert cache.restore("suite", "kb", target / ".oloproof" / "store.sqlite3").key
    with opened_store(target):
        pass


def _fill(folder: Path) -> None:
    drawing = random.Random(20260916)
    words = [f"word{number}" for number in range(5_000)]
    passages = [" ".join(drawing.choices(words, k=WORDS)) for _ in range(PASSAGES)]
    with opened_store(folder) as store:
        for number in range(EACH):
            _add(store, drawing, passages, words, number)


def _add(store: Store, drawing: random.Random, passages: list[str], words: list[str], number: int) -> None:
    texts = store.results.put_texts(drawing.choices(passages, k=8))
    candidates = tuple(
        Candidate(f"doc-{drawing.random()}", None, 1.0 / n, text) for n, text in enumerate(texts, 1)
    )
    retrieval, generation, execution = (Key(digest(name, str(number)), b"") for name in ("r", "g", "e"))
    store.results.put_retrieval(StoredRetrieval(retrieval, "{}", candidates, 0.1, ""), time.time(), "kb")
    output = json.dumps({"answer": " ".join(drawing.choices(words, k=60))})
    store.results.put_generation(StoredGeneration(generation, output, 0.1, ""), time.time())
    whole = Execution(execution.id, candidates, 4, 4, {}, retrieval=retrieval.id)
    store.results.put_execution(whole, execution, generation.id)
    store.results.put_judgments(whole.id, [(digest("j", str(number)), PASSED)])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
