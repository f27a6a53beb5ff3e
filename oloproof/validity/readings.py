"""The files that the stored results of a run were made from, and which of them have changed since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from oloproof.canonical import canonical_json, digest, given_json
from oloproof.evaluators import PythonEvaluator
from oloproof.identity.files import ProjectFiles
from oloproof.identity.system import Identities, judgment_id
from oloproof.run_records import CaseRow, Run
from oloproof.store.results import Results
from oloproof.store.runs import Runs
from oloproof.validity.difference import JUDGE, STAGES, Change

#: How many cases are looked up at once.
WINDOW = 250
#: How many characters of a file's digest are told.
SHORT = 16


def changed_files(run: Run, runs: Runs, results: Results, files: ProjectFiles) -> tuple[Change, ...]:
    """The files that the run's results depend on and that are no longer what they were, by name."""
    found: dict[tuple[str, str | None, str | None], list[str]] = {}
    read: dict[str, Iterable[bytes]] = {**results.file_sets_of(run.id)}
    read["count_tokens"] = _read_in_counting(run, runs, results)
    read[JUDGE] = _read_in_judging(run, runs)
    for part in (*STAGES, JUDGE):
        seen: set[bytes] = set()
        for identity in read[part]:
            for change in files.changes(identity, seen):
                parts = found.setdefault(change, [])
                if part not in parts:
                    parts.append(part)
    return tuple(
        Change(
            f"{'folder' if path.endswith('/') else 'file'} {path}",
            before and before[:SHORT],
            after and after[:SHORT],
            tuple(parts) if JUDGE in parts else (*parts, JUDGE),
        )
        for (path, before, after), parts in sorted(found.items(), key=lambda entry: entry[0][0])
    )


def _read_in_counting(run: Run, runs: Runs, results: Results) -> set[bytes]:
    """The sets of files behind the token counts of a run. A count is one for each passage and not for each case, so it
    is found by its identity; of its variants those count whose files were as the execution found them."""
    sets: set[bytes] = set()
    if run.system.token_budget is None:
        return sets
    identities = Identities(run.system)
    for rows in _windows(runs.rows(run.id)):
        ids = [row.execution for row in rows if row.execution is not None]
        for files, executions in results.executions_by_files(ids).items():
            candidates = {c for execution in executions for c in execution.candidates[: execution.top_k]}
            counts = results.token_counts([identities.token_count(c) for c in candidates])
            variants = {variant for each in counts.values() for variant, _ in each}
            known = results.file_set(files)
            sets |= variants & {files, *(known.sets if known is not None else ())}
    return sets


def _read_in_judging(run: Run, runs: Runs) -> Iterator[bytes]:
    """The identities of the judgments of the user's own evaluators, under which the files that each read are kept."""
    own = [each.definition for each in run.evaluators if each.definition["type"] == "python"]
    names = [digest("evaluator", canonical_json(dict(definition))) for definition in own]
    for rows in _windows(runs.rows(run.id)) if names else ():
        bodies = runs.bodies([row.body for row in rows])
        for row in rows:
            if row.execution is not None:
                expected = _expected_key(bodies[row.body])
                yield from (judgment_id(row.execution, name, expected) for name in names)


def _expected_key(body: Mapping[str, object]) -> str:
    return PythonEvaluator.key_of(body["input"], body["expected"])


def changed_cases(run: Run, runs: Runs, inputs: Iterable[tuple[str, bytes]]) -> tuple[Change, ...]:
    """What of the case file differs from a run's: inputs that the run had not, and expected values. `inputs` gives each
    case's input and pair, as JSON (`Case.input_given`) and as the digest that pairs two cases."""
    known: set[str] = set()
    pairs: set[bytes] = set()
    for rows in _windows(runs.rows(run.id)):
        pairs.update(row.pair for row in rows)
        known.update(given_json(body["input"]) for body in runs.bodies([row.body for row in rows]).values())
    cases = new_inputs = new_pairs = 0
    for text, pair in inputs:
        cases += 1
        new_inputs += text not in known
        new_pairs += text in known and pair not in pairs
    changes = []
    if new_inputs:
        changes.append(Change("inputs of cases", None, f"{new_inputs} of {cases} are new", (*STAGES, JUDGE)))
    if new_pairs:
        changes.append(Change("expected values of cases", None, f"{new_pairs} of {cases} are new", (JUDGE,)))
    return tuple(changes)


def _windows(rows: Iterator[CaseRow]) -> Iterator[Sequence[CaseRow]]:
    while window := list(islice(rows, WINDOW)):
        yield window
