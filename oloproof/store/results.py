"""Stage results and judgments, each under its identity."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from oloproof.identity.system import text_id
from oloproof.records import Candidate, Execution, Judgment, State
from oloproof.store.database import Database

#: How many ids one look-up names; below SQLite's limit of host parameters.
CHUNK = 500


@dataclass(frozen=True, slots=True)
class StoredRetrieval:
    """A recorded retrieval. `query` is JSON text."""

    query: str
    candidates: tuple[Candidate, ...]
    seconds: float
    log: str


@dataclass(frozen=True, slots=True)
class StoredGeneration:
    """A recorded answer. `output` is the JSON text of the dict that `generate` returned."""

    output: str
    seconds: float
    log: str


class Results:
    """What stages produced, by identity. Entries are never overwritten: the first one stands."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known_texts: set[str] = set()

    # ------------------------------------------------------------------------------------ texts

    def put_texts(self, texts: Iterable[str | None]) -> list[str | None]:
        """Store texts once each; gives their ids in order."""
        ids: list[str | None] = []
        rows: list[tuple[object, ...]] = []
        for text in texts:
            if text is None:
                ids.append(None)
                continue
            name = text_id(text)
            ids.append(name)
            if name not in self._known_texts:
                if len(self._known_texts) > 100_000:
                    self._known_texts.clear()
                self._known_texts.add(name)
                rows.append((name, text))
        if rows:
            self._database.write("INSERT OR IGNORE INTO text VALUES (?, ?)", rows)
        return ids

    def texts(self, ids: Iterable[str | None]) -> dict[str | None, str | None]:
        """The texts behind ids; None stands for itself."""
        wanted = sorted({name for name in ids if name is not None})
        found: dict[str | None, str | None] = {None: None}
        for part in _chunks(wanted):
            found.update(
                self._database.read(f"SELECT id, body FROM text WHERE id IN ({_marks(part)})", tuple(part))
            )
        return found

    # ----------------------------------------------------------------------------------- stages

    def retrieval(self, identity: bytes) -> StoredRetrieval | None:
        row = self._database.read(
            "SELECT query, candidates, seconds, log FROM retrieval WHERE id = ?", (identity,)
        ).fetchone()
        return None if row is None else StoredRetrieval(row[0], _candidates(row[1]), row[2], row[3])

    def put_retrieval(self, identity: bytes, found: StoredRetrieval, made: float, index_version: str) -> None:
        candidates = json.dumps(found.candidates, ensure_ascii=False, separators=(",", ":"))
        self._database.write(
            "INSERT OR IGNORE INTO retrieval VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(identity, found.query, candidates, found.seconds, found.log, made, index_version)],
        )

    def token_counts(self, ids: Sequence[bytes]) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        for part in _chunks(ids):
            found.update(
                self._database.read(
                    f"SELECT id, tokens FROM token_count WHERE id IN ({_marks(part)})", tuple(part)
                )
            )
        return found

    def put_token_counts(self, counts: Iterable[tuple[bytes, int]]) -> None:
        self._database.write("INSERT OR IGNORE INTO token_count VALUES (?, ?)", list(counts))

    def generation(self, identity: bytes) -> StoredGeneration | None:
        row = self._database.read(
            "SELECT output, seconds, log FROM generation WHERE id = ?", (identity,)
        ).fetchone()
        return None if row is None else StoredGeneration(*row)

    def put_generation(self, identity: bytes, answer: StoredGeneration, made: float) -> None:
        self._database.write(
            "INSERT OR IGNORE INTO generation VALUES (?, ?, ?, ?, ?)",
            [(identity, answer.output, answer.seconds, answer.log, made)],
        )

    # ------------------------------------------------------------------------------- executions

    def put_execution(self, execution: Execution, retrieval: bytes | None, generation: bytes) -> None:
        gold = None if execution.gold is None else json.dumps(execution.gold, ensure_ascii=False)
        self._database.write(
            "INSERT OR IGNORE INTO execution VALUES (?, ?, ?, ?, ?, ?)",
            [(execution.id, retrieval, generation, execution.top_k, execution.kept, gold)],
        )

    def executions(self, ids: Sequence[bytes]) -> dict[bytes, Execution]:
        """The stored executions among ids, each marked as a hit."""
        found: dict[bytes, Execution] = {}
        for part in _chunks(ids):
            rows = self._database.read(
                "SELECT e.id, r.candidates, e.top_k, e.kept, g.output, e.gold FROM execution e "
                "JOIN generation g ON g.id = e.generation LEFT JOIN retrieval r ON r.id = e.retrieval "
                f"WHERE e.id IN ({_marks(part)}) AND (e.retrieval IS NULL OR r.id IS NOT NULL)",
                tuple(part),
            )
            for identity, candidates, top_k, kept, output, gold in rows:
                found[identity] = Execution(
                    id=identity,
                    candidates=_candidates(candidates) if candidates else (),
                    top_k=top_k,
                    kept=kept,
                    output=json.loads(output),
                    gold=_candidates(gold) if gold else None,
                    hit=True,
                )
        return found

    # -------------------------------------------------------------------------------- judgments

    def judgments(self, ids: Sequence[bytes]) -> dict[bytes, Judgment]:
        found: dict[bytes, Judgment] = {}
        for part in _chunks(ids):
            rows = self._database.read(
                f"SELECT id, state, value, reason FROM judgment WHERE id IN ({_marks(part)})", tuple(part)
            )
            for identity, state, value, reason in rows:
                found[identity] = Judgment(State(state), value, reason)
        return found

    def put_judgments(self, judgments: Iterable[tuple[bytes, Judgment]]) -> None:
        self._database.write(
            "INSERT OR IGNORE INTO judgment VALUES (?, ?, ?, ?)",
            [(identity, said.state, said.value, said.reason) for identity, said in judgments],
        )


def _candidates(text: str) -> tuple[Candidate, ...]:
    return tuple([Candidate(*row) for row in json.loads(text)])


def _chunks(ids: Sequence[Any]) -> Iterable[Sequence[Any]]:
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]


def _marks(part: Sequence[Any]) -> str:
    return ",".join("?" * len(part))
