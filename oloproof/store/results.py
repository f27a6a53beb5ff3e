"""Stage results and judgments, each under its identity."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from oloproof.identity.system import text_id
from oloproof.records import Candidate, Execution, Judgment, State
from oloproof.store.database import Database, in_parts, marks

#: How many characters of passages' texts are kept at hand; a retriever returns the same passages again and again.
MAX_TEXTS_AT_HAND = 8_000_000


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
        self._texts: dict[str, str] = {}
        self._texts_size = 0

    # ------------------------------------------------------------------------------------ texts

    def put_texts(self, texts: Iterable[str | None]) -> list[str | None]:
        """Store texts once each; gives their ids in order."""
        ids: list[str | None] = []
        for text in texts:
            name = None if text is None else text_id(text)
            ids.append(name)
            if name is not None and text is not None and name not in self._texts:
                self._database.add("text", [(name, text)])
                self._keep_at_hand(name, text)
        return ids

    def texts(self, ids: Iterable[str | None]) -> dict[str | None, str | None]:
        """The texts behind ids; None stands for itself."""
        found: dict[str | None, str | None] = {None: None}
        unknown: list[str] = []
        for name in ids:
            if name is None or name in found:
                continue
            text = self._texts.get(name)
            if text is None:
                unknown.append(name)
            else:
                found[name] = text
        if unknown:
            for name, text in self._database.find_all("text", sorted(set(unknown))).values():
                found[name] = text
                self._keep_at_hand(name, text)
        return found

    def _keep_at_hand(self, name: str, text: str) -> None:
        if self._texts_size > MAX_TEXTS_AT_HAND:
            self._texts.clear()
            self._texts_size = 0
        self._texts[name] = text
        self._texts_size += len(text)

    # ----------------------------------------------------------------------------------- stages

    def retrieval(self, identity: bytes) -> StoredRetrieval | None:
        row = self._database.find("retrieval", identity)
        return None if row is None else StoredRetrieval(row[1], _candidates(row[2]), row[3], row[4])

    def put_retrieval(self, identity: bytes, found: StoredRetrieval, made: float, index_version: str) -> None:
        candidates = json.dumps(found.candidates, ensure_ascii=False, separators=(",", ":"))
        row = (identity, found.query, candidates, found.seconds, found.log, made, index_version)
        self._database.add("retrieval", [row])

    def token_counts(self, ids: Sequence[bytes]) -> dict[bytes, int]:
        return {row[0]: row[1] for row in self._database.find_all("token_count", ids).values()}

    def put_token_counts(self, counts: Iterable[tuple[bytes, int]]) -> None:
        self._database.add("token_count", counts)

    def generation(self, identity: bytes) -> StoredGeneration | None:
        row = self._database.find("generation", identity)
        return None if row is None else StoredGeneration(row[1], row[2], row[3])

    def put_generation(self, identity: bytes, answer: StoredGeneration, made: float) -> None:
        self._database.add("generation", [(identity, answer.output, answer.seconds, answer.log, made)])

    # ------------------------------------------------------------------------------- executions

    def put_execution(self, execution: Execution, retrieval: bytes | None, generation: bytes) -> None:
        gold = None if execution.gold is None else json.dumps(execution.gold, ensure_ascii=False)
        row = (execution.id, retrieval, generation, execution.top_k, execution.kept, gold)
        self._database.add("execution", [row])

    def executions(self, ids: Sequence[bytes]) -> dict[bytes, Execution]:
        """The stored executions among ids, each marked as a hit."""
        self._database.commit()  # the query joins tables, and sees only what was written
        found: dict[bytes, Execution] = {}
        for part in in_parts(ids):
            rows = self._database.read(
                "SELECT e.id, r.candidates, e.top_k, e.kept, g.output, e.gold FROM execution e "
                "JOIN generation g ON g.id = e.generation LEFT JOIN retrieval r ON r.id = e.retrieval "
                f"WHERE e.id IN ({marks(part)}) AND (e.retrieval IS NULL OR r.id IS NOT NULL)",
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
        return {
            identity: Judgment(State(state), value, reason)
            for identity, state, value, reason in self._database.find_all("judgment", ids).values()
        }

    def put_judgments(self, judgments: Iterable[tuple[bytes, Judgment]]) -> None:
        self._database.add(
            "judgment", [(identity, said.state, said.value, said.reason) for identity, said in judgments]
        )


def _candidates(text: str) -> tuple[Candidate, ...]:
    return tuple([Candidate(*row) for row in json.loads(text)])
