"""Stage results and judgments, each under its identity.

A stage result depends on its identity and on the files that were read to make it. So an identity can have several
variants, one for each state of those files; which of them is valid is for the caller to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from oloproof.canonical import digest
from oloproof.identity.files import NOTHING_READ, FileSet
from oloproof.identity.system import text_id
from oloproof.jsontext import json_writer
from oloproof.once import once
from oloproof.records import FAILED, PASSED, Candidate, Execution, Judgment, State
from oloproof.store.database import Database, Entry, in_parts, marks

#: How many characters of passages' texts are kept at hand; a retriever returns the same passages again and again.
MAX_TEXTS_AT_HAND = 8_000_000

_compact_json = json_writer(ensure_ascii=False, separators=(",", ":"))
#: The value that a text of ours begins with, and where it ends.
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True)
class Key:
    """The name of a stage result: its identity, and the set of files that were read for it."""

    identity: bytes
    files: bytes

    @once
    def id(self) -> bytes:
        return self.identity if self.files == NOTHING_READ else digest("variant", self.identity, self.files)


@dataclass(frozen=True, slots=True)
class StoredRetrieval:
    """A recorded retrieval. `query` is JSON text."""

    key: Key
    query: str
    candidates: tuple[Candidate, ...]
    seconds: float
    log: str


@dataclass(frozen=True, slots=True)
class StoredGeneration:
    """A recorded answer. `output` is the JSON text of the dict that `generate` returned."""

    key: Key
    output: str
    seconds: float
    log: str


class Results:
    """What stages produced, by identity. Entries are never overwritten: the first one stands."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: Texts at hand by their names, and the names by the texts.
        self._texts: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._texts_size = 0

    @property
    def shared(self) -> bool:
        """Whether another run has written to the same store meanwhile."""
        return self._database.shared

    # ------------------------------------------------------------------------------------ texts

    def put_texts(self, texts: Iterable[str | None]) -> list[str | None]:
        """Store texts once each; gives their ids in order."""
        ids: list[str | None] = []
        for text in texts:
            name = None if text is None else self._names.get(text)
            if name is None and text is not None:
                name = text_id(text)
                self._database.add("text", [(name, text)])
                self._keep_at_hand(name, text)
            ids.append(name)
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
            self._names.clear()
            self._texts_size = 0
        self._texts[name] = text
        self._names[text] = name
        self._texts_size += len(text)

    # ------------------------------------------------------------------------------------ files

    def file_set(self, identity: bytes) -> FileSet | None:
        """The set of files of this identity, None when it is not known."""
        row = self._database.find("file_set", identity)
        if row is None:
            return None
        record = json.loads(row[1])
        sets = [bytes.fromhex(each) for each in record["sets"]]
        return FileSet(tuple(sets), tuple([(path, content) for path, content in record["files"]]))

    def put_file_set(self, identity: bytes, files: FileSet) -> None:
        self._database.add("file_set", [(identity, _file_set_json(files))])

    def replace_file_set(self, identity: bytes, files: FileSet) -> None:
        self._database.write(
            "INSERT OR REPLACE INTO file_set VALUES (?, ?)", [(identity, _file_set_json(files))]
        )

    def file_sets_of(self, run: str) -> dict[str, set[bytes]]:
        """The sets of files that a run's retrievals and generations depend on."""
        retrieve = self._database.read(
            "SELECT DISTINCT r.files FROM run_case c LEFT JOIN execution e ON e.id = c.execution "
            "JOIN retrieval r ON r.id = coalesce(e.retrieval, c.retrieval) WHERE c.run = ?",
            (run,),
        )
        generate = self._database.read(
            "SELECT DISTINCT g.files FROM run_case c JOIN execution e ON e.id = c.execution "
            "JOIN generation g ON g.id = e.generation WHERE c.run = ?",
            (run,),
        )
        return {"retrieve": {row[0] for row in retrieve}, "generate": {row[0] for row in generate}}

    def known_digest(self, path: str, size: int, changed: int) -> str | None:
        row = self._database.find("file_digest", path)
        return str(row[3]) if row is not None and row[1:3] == (size, changed) else None

    def put_digest(self, path: str, size: int, changed: int, content: str) -> None:
        self._database.write(
            "INSERT OR REPLACE INTO file_digest VALUES (?, ?, ?, ?)", [(path, size, changed, content)]
        )

    # ----------------------------------------------------------------------------------- stages

    def retrievals(self, identity: bytes) -> list[StoredRetrieval]:
        """The variants of a retrieval."""
        return [_retrieval(row) for row in self._database.variants("retrieval", [identity]).get(identity, ())]

    def retrieval(self, key: bytes) -> StoredRetrieval | None:
        """A recorded retrieval by its key."""
        row = self._database.find("retrieval", key)
        return (
            None
            if row is None
            else StoredRetrieval(Key(row[1], row[2]), row[3], _candidates(row[4]), row[5], row[6])
        )

    def retrieval_key(self, identity: bytes) -> Key:
        """The key of a recorded retrieval, which has to be there."""
        row = self._database.find("retrieval", identity)
        assert row is not None
        return Key(row[1], row[2])

    def put_retrieval(self, found: StoredRetrieval, made: float, index_version: str) -> None:
        candidates = _compact_json(found.candidates)
        row = (*_columns(found.key), found.query, candidates, found.seconds, found.log, made, index_version)
        self._database.add("retrieval", [row])

    def token_counts(self, identities: Sequence[bytes]) -> dict[bytes, list[tuple[bytes, int]]]:
        """For each identity the variants of a count: the set of files it depends on, and the number."""
        found = self._database.variants("token_count", identities)
        return {identity: [(row[2], row[3]) for row in rows] for identity, rows in found.items()}

    def put_token_counts(self, files: bytes, counts: Iterable[tuple[bytes, int]]) -> None:
        rows = [(*_columns(Key(identity, files)), tokens) for identity, tokens in counts]
        self._database.add("token_count", rows)

    def generations(self, identity: bytes) -> list[StoredGeneration]:
        """The variants of a generation."""
        return [
            StoredGeneration(Key(row[1], row[2]), row[3], row[4], row[5])
            for row in self._database.variants("generation", [identity]).get(identity, ())
        ]

    def put_generation(self, answer: StoredGeneration, made: float) -> None:
        row = (*_columns(answer.key), answer.output, answer.seconds, answer.log, made)
        self._database.add("generation", [row])

    # ------------------------------------------------------------------------------- executions

    def put_execution(self, execution: Execution, key: Key, generation: bytes) -> None:
        gold = None if execution.gold is None else json.dumps(execution.gold, ensure_ascii=False)
        row = (*_columns(key), execution.retrieval, generation, execution.top_k, execution.kept, gold)
        self._database.add("execution", [row])

    def executions(self, ids: Sequence[bytes]) -> dict[bytes, Execution]:
        """The stored executions among ids, each marked as a hit."""
        return {execution.id: execution for _, execution in self._read_executions("id", ids)}

    def executions_by_files(self, ids: Sequence[bytes]) -> dict[bytes, list[Execution]]:
        """The stored executions among ids, by the set of files that they depend on."""
        found: dict[bytes, list[Execution]] = {}
        for key, execution in self._read_executions("id", ids):
            found.setdefault(key.files, []).append(execution)
        return found

    def variants_of_executions(
        self, identities: Sequence[bytes]
    ) -> dict[bytes, list[tuple[bytes, Execution]]]:
        """For each identity the variants of an execution, each with the set of files that it depends on."""
        found: dict[bytes, list[tuple[bytes, Execution]]] = {}
        identities = self._database.conceivable("execution", identities)
        for key, execution in self._read_executions("identity", identities) if identities else ():
            found.setdefault(key.identity, []).append((key.files, execution))
        return found

    def _read_executions(self, column: str, values: Sequence[bytes]) -> Iterable[tuple[Key, Execution]]:
        self._database.commit()  # the query joins tables, and sees only what was written
        for part in in_parts(values):
            rows = self._database.read(
                "SELECT e.id, e.identity, e.files, e.retrieval, r.candidates, e.top_k, e.kept, g.output, e.gold "
                "FROM execution e "
                "JOIN generation g ON g.id = e.generation LEFT JOIN retrieval r ON r.id = e.retrieval "
                f"WHERE e.{column} IN ({marks(part)}) AND (e.retrieval IS NULL OR r.id IS NOT NULL)",
                tuple(part),
            )
            for identity, name, files, retrieval, candidates, top_k, kept, output, gold in rows:
                yield (
                    Key(name, files),
                    Execution(
                        id=identity,
                        candidates=_candidates(candidates) if candidates else (),
                        top_k=top_k,
                        kept=kept,
                        output=_decode(output)[0],
                        gold=_candidates(gold) if gold else None,
                        hit=True,
                        retrieval=retrieval,
                    ),
                )

    def files_behind(self, executions: Sequence[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
        """For each stored execution the sets of files that its retrieval and its generation depend on."""
        self._database.commit()
        found: dict[bytes, tuple[bytes, bytes]] = {}
        for part in in_parts(executions):
            rows = self._database.read(
                "SELECT e.id, coalesce(r.files, x''), g.files "
                "FROM execution e JOIN generation g ON g.id = e.generation "
                f"LEFT JOIN retrieval r ON r.id = e.retrieval WHERE e.id IN ({marks(part)})",
                tuple(part),
            )
            found.update((name, (retrieval, generation)) for name, retrieval, generation in rows)
        return found

    def printed(self, execution: bytes) -> str:
        """What the stages behind a stored execution printed when they ran."""
        row = self._database.read(
            "SELECT coalesce(r.log, '') || g.log FROM execution e JOIN generation g ON g.id = e.generation "
            "LEFT JOIN retrieval r ON r.id = e.retrieval WHERE e.id = ?",
            (execution,),
        ).fetchone()
        return "" if row is None else str(row[0])

    # -------------------------------------------------------------------------------- judgments

    def judgments(self, ids: Sequence[bytes]) -> dict[bytes, Judgment]:
        """The judgments that are stored, by identity."""
        return {
            identity: _USUAL.get((state, value, reason)) or Judgment(State(state), value, reason)
            for identity, _, state, value, reason in self._database.find_all("judgment", ids).values()
        }

    def replace_judgment(self, identity: bytes, execution: bytes, said: Judgment) -> None:
        """Keep a judgment in place of the one that was kept under the same identity."""
        row = (identity, execution, said.state, said.value, said.reason)
        self._database.write_among_others("INSERT OR REPLACE INTO judgment VALUES (?, ?, ?, ?, ?)", [row])

    def put_judgments(self, execution: bytes, judgments: Iterable[tuple[bytes, Judgment]]) -> None:
        """Keep judgments of an execution, each under its identity."""
        self._database.add(
            "judgment",
            [(identity, execution, said.state, said.value, said.reason) for identity, said in judgments],
        )


class Outlines:
    """What was found in the project's source files, by their content: the cache of the code fingerprint."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, key: str) -> str | None:
        row = self._database.find("outline", key)
        return None if row is None else str(row[1])

    def write(self, entries: Mapping[str, str]) -> None:
        self._database.add("outline", entries.items())


#: What most judgments are; they share one record.
_USUAL = {(said.state.value, said.value, said.reason): said for said in (PASSED, FAILED)}


def _file_set_json(files: FileSet) -> str:
    return json.dumps({"sets": [each.hex() for each in files.sets], "files": files.files})


def _retrieval(row: Entry) -> StoredRetrieval:
    _, identity, files, query, candidates, seconds, log, *_ = row
    return StoredRetrieval(Key(identity, files), query, _candidates(candidates), seconds, log)


def _columns(key: Key) -> tuple[bytes, bytes, bytes]:
    return key.id, key.identity, key.files


def _candidates(text: str) -> tuple[Candidate, ...]:
    rows, _ = _decode(text)
    return tuple(map(Candidate._make, rows))
