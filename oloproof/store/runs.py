"""Runs and their cases, comparisons and diagnoses: appended as they come to be, found by any unique prefix."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from oloproof.canonical import canonical_json, digest, given_json
from oloproof.errors import ConfigurationError
from oloproof.jsonform import from_json, to_json
from oloproof.jsontext import json_writer
from oloproof.records import Attempt, Case, StageError
from oloproof.run_records import CaseRow, Run, judgment_from_json, judgment_to_json
from oloproof.store.database import Database, in_parts, marks

_COLUMNS = "position, case_id, body, pair, execution, judgments, tags, error, seconds, log, attempts, retrieval, kept"

_plain_json = json_writer()
_readable_json = json_writer(ensure_ascii=False)


def case_digest(case: Case) -> bytes:
    """Identity of a case's whole content, order of keys included, since the app sees it."""
    content = (case.input_given, given_json(dict(case.expected)), canonical_json(dict(case.metadata)))
    return digest("case", case.id, *content)


def pair_digest(case: Case) -> bytes:
    """Identity of what two runs must share for a case to pair: input and expected value."""
    return digest("pair", case.input_json, case.expected_json)


class Runs:
    """The records of runs and of what was made from them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # ----------------------------------------------------------------------------------- writing

    def put(self, run: Run) -> None:
        """Store a run's record, or replace it (a run is stored when it starts and when it ends)."""
        record = json.dumps(to_json(run), ensure_ascii=False)
        self._database.write("INSERT OR REPLACE INTO run VALUES (?, ?, ?)", [(run.id, run.parent, record)])

    def append(self, run_id: str, rows: Iterable[tuple[CaseRow, Case]]) -> None:
        bodies: list[tuple[object, ...]] = []
        lines: list[tuple[object, ...]] = []
        for row, case in rows:
            bodies.append((row.body, _readable_json(case.to_json())))
            lines.append(
                (
                    run_id,
                    row.position,
                    row.case_id,
                    row.body,
                    row.pair,
                    row.execution,
                    _plain_json([judgment_to_json(j) for j in row.judgments]),
                    _readable_json(row.tags),
                    None if row.error is None else _readable_json(row.error),
                    _plain_json(row.seconds) if row.seconds else "{}",
                    row.log,
                    _readable_json(row.attempts) if row.attempts else "[]",
                    row.retrieval,
                    row.kept,
                )
            )
        self._database.write("INSERT OR IGNORE INTO case_body VALUES (?, ?)", bodies)
        self._database.write(
            "INSERT OR REPLACE INTO run_case VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", lines
        )

    def put_document(self, identity: str, kind: str, made: float, record: Any) -> None:
        """Store a comparison or a diagnosis under the digest of its content."""
        self._database.write(
            "INSERT OR REPLACE INTO document VALUES (?, ?, ?, ?)",
            [(identity, kind, made, json.dumps(record, ensure_ascii=False))],
        )

    # ----------------------------------------------------------------------------------- finding

    def resolve(self, wanted: str) -> tuple[str, str]:
        """(kind, id) for an id, a unique prefix of one, `latest` or `latest~N`; kind is run, comparison or
        diagnosis. Raises ConfigurationError when there is none or more than one."""
        if wanted == "latest" or wanted.startswith("latest~"):
            return "run", self._latest(wanted)
        found: list[tuple[str, str]] = []
        for prefix, is_run in (
            (wanted, True),
            (f"run_{wanted}", True),
            (wanted, False),
            (f"sha256:{wanted}", False),
        ):
            table = "SELECT 'run', id FROM run" if is_run else "SELECT kind, id FROM document"
            upper = prefix.upper().replace("RUN_", "run_", 1) if is_run else prefix.lower()
            found += self._database.read(
                f"{table} WHERE substr(id, 1, ?) = ? ORDER BY id LIMIT 9", (len(upper), upper)
            ).fetchall()
        found = list(dict.fromkeys(found))
        exact = [entry for entry in found if entry[1] == wanted]
        if exact:
            return exact[0]
        if not found or not wanted:
            raise ConfigurationError(
                f"no run, comparison or diagnosis {wanted!r} in {self._database.path}; "
                "`oloproof runs` lists what is there"
            )
        if len(found) > 1:
            some = ", ".join(identity[:20] + "…" * (len(identity) > 20) for _, identity in found[:4])
            raise ConfigurationError(f"{wanted!r} fits more than one: {some}; give more of it")
        return found[0]

    def _latest(self, wanted: str) -> str:
        back = "0" if wanted == "latest" else wanted.removeprefix("latest~")
        if not (back.isascii() and back.isdecimal()):
            raise ConfigurationError(
                f"{wanted!r} is no id: after latest~ comes a whole number such as latest~1"
            )
        row = self._database.read(
            "SELECT id FROM run WHERE parent IS NULL ORDER BY id DESC LIMIT 1 OFFSET ?", (int(back[:18]),)
        ).fetchone()
        if row is None:
            raise ConfigurationError(
                f"there is no run {wanted} in {self._database.path}; `oloproof run` makes one"
            )
        return str(row[0])

    def find_run(self, wanted: str) -> Run:
        kind, identity = self.resolve(wanted)
        if kind != "run":
            raise ConfigurationError(f"{wanted!r} is a {kind}; a run is needed here")
        return self.get(identity)

    def get(self, run_id: str) -> Run:
        row = self._database.read("SELECT record FROM run WHERE id = ?", (run_id,)).fetchone()
        if row is None:
            raise ConfigurationError(f"no run {run_id} in {self._database.path}")
        return from_json(Run, row[0])

    def document(self, identity: str) -> Any:
        row = self._database.read("SELECT record FROM document WHERE id = ?", (identity,)).fetchone()
        return json.loads(row[0])

    def newest(self, limit: int) -> list[Run]:
        """The newest runs that are not part of a diagnosis, newest first."""
        rows = self._database.read(
            "SELECT record FROM run WHERE parent IS NULL ORDER BY id DESC LIMIT ?", (limit,)
        ).fetchall()
        return [from_json(Run, record) for (record,) in rows]

    def diagnoses(self, run_id: str) -> Iterator[tuple[str, str]]:
        """(id, record as JSON) of the diagnoses of a run, newest first."""
        return self._database.read(
            "SELECT id, record FROM document WHERE kind = 'diagnosis' AND json_extract(record, '$.run') = ? "
            "ORDER BY made DESC, id",
            (run_id,),
        )

    # ------------------------------------------------------------------------------------- cases

    def rows(self, run_id: str, case_ids: Sequence[str] | None = None) -> Iterator[CaseRow]:
        """The cases of a run, all in their order, or those named in the order of the names."""
        if case_ids is None:
            cursor = self._database.read(
                f"SELECT {_COLUMNS} FROM run_case WHERE run = ? ORDER BY position", (run_id,)
            )
            yield from map(_row, cursor)
            return
        for part in in_parts(case_ids):
            cursor = self._database.read(
                f"SELECT {_COLUMNS} FROM run_case WHERE run = ? AND case_id IN ({marks(part)})",
                (run_id, *part),
            )
            found = {row.case_id: row for row in map(_row, cursor)}
            yield from (found[case_id] for case_id in part if case_id in found)

    def bodies(self, ids: Sequence[bytes]) -> dict[bytes, dict[str, Any]]:
        """The contents of cases, as they stood in the case file."""
        found = {}
        for part in in_parts(ids):
            query = f"SELECT id, body FROM case_body WHERE id IN ({marks(part)})"
            for identity, body in self._database.read(query, tuple(part)):
                found[identity] = json.loads(body)
        return found


def _row(columns: tuple[Any, ...]) -> CaseRow:
    (
        position,
        case_id,
        body,
        pair,
        execution,
        judgments,
        tags,
        error,
        seconds,
        log,
        attempts,
        retrieval,
        kept,
    ) = columns
    return CaseRow(
        position=position,
        case_id=case_id,
        body=body,
        pair=pair,
        execution=execution,
        judgments=tuple([judgment_from_json(value) for value in json.loads(judgments)]),
        tags=tuple(json.loads(tags)),
        error=None if error is None else StageError(*json.loads(error)),
        seconds=json.loads(seconds),
        log=log,
        retrieval=retrieval,
        kept=kept,
        attempts=() if attempts == "[]" else tuple([Attempt(*each) for each in json.loads(attempts)]),
    )
