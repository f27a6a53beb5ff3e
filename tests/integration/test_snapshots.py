"""Snapshots of a store: a run on another machine reuses what they hold, and nothing harmful gets in."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from projects import MakeProject, Oloproof, noted

from oloproof.store.database import FILE, FOLDER
from oloproof.store.recency import size
from oloproof.store.snapshots import (
    Manifest,
    SnapshotRefused,
    check_snapshot,
    stored_keys,
    take_in,
    write_snapshot,
)
from oloproof.workplace import opened_store

DAY = 86_400.0
OUTPUTS = "SELECT g.output FROM execution e JOIN generation g ON g.id = e.generation"
#: The small system, which notes each call.
COUNTING = """
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

def note(what):
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(what + "\\n")

@rag_system(name="small", version="1", depth=3, top_k=2, token_budget=50, index_version="INDEX")
class Rag:
    def __init__(self):
        note("constructor")

    def retrieve(self, input, depth):
        note("retrieve")
        print("searching")
        return Retrieval(query=input, depth=depth, candidates=(Passage(doc_id="d1", score=2.0, text="blue"),))

    def generate(self, input, context):
        note("generate")
        return {"answer": context[0].text + "SUFFIX", "citations": [context[0].doc_id]}

    def count_tokens(self, passage):
        note("count_tokens")
        return 1
"""


def app(index: str = "1", suffix: str = "") -> str:
    return COUNTING.replace("INDEX", index).replace("SUFFIX", suffix)


def store_of(folder: Path) -> Path:
    return folder / FOLDER / FILE


def rows(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


@pytest.fixture(scope="module")
def measured(make_project: MakeProject, oloproof: Oloproof) -> Path:
    """A project after its first run."""
    folder = make_project(app())
    assert oloproof("run", cwd=folder).returncode == 0
    noted(folder)
    return folder


@pytest.fixture
def snapshot(measured: Path, tmp_path: Path) -> tuple[Path, Manifest]:
    path = tmp_path / "results.sqlite3"
    return path, write_snapshot(store_of(measured), path, now=time.time())


Elsewhere = Callable[..., Path]


@pytest.fixture
def elsewhere(make_project: MakeProject, snapshot: tuple[Path, Manifest]) -> Elsewhere:
    """The same project on another machine, with the snapshot taken into its empty store."""

    def make(text: str = "", **config: object) -> Path:
        folder = make_project(text or app(), **config)
        take_in(snapshot[0], store_of(folder))
        return folder

    return make


def test_another_machine_runs_nothing_again(elsewhere: Elsewhere, oloproof: Oloproof) -> None:
    folder = elsewhere()
    finished = oloproof("run", cwd=folder)
    assert finished.returncode == 0, finished.stderr
    assert noted(folder) == {}
    assert "retrieve 0 hit/0 miss; generate 0 hit/0 miss" in finished.stdout


def test_after_a_change_of_generate_no_retriever_is_called(elsewhere: Elsewhere, oloproof: Oloproof) -> None:
    folder = elsewhere(app(suffix="!"))
    assert "retrieve 3 hit/0 miss; generate 0 hit/3 miss" in oloproof("run", cwd=folder).stdout
    assert set(noted(folder)) == {"constructor", "generate"}


def test_under_another_index_version_unchanged_contexts_still_count(
    elsewhere: Elsewhere, oloproof: Oloproof
) -> None:
    folder = elsewhere(app(index="2"))
    assert "retrieve 0 hit/3 miss; generate 3 hit/0 miss" in oloproof("run", cwd=folder).stdout


def test_a_snapshot_holds_no_logs_cases_or_runs(snapshot: tuple[Path, Manifest], measured: Path) -> None:
    path, manifest = snapshot
    assert rows(store_of(measured), "SELECT DISTINCT log FROM retrieval") == [("searching\n",)]
    for table in ("retrieval", "generation"):
        assert rows(path, f"SELECT DISTINCT log FROM {table}") == [("",)]
    for table in ("run", "run_case", "case_body", "document", "file_digest"):
        assert rows(path, f"SELECT * FROM {table}") == []
    assert manifest.counts["retrieval"] == manifest.counts["generation"] == 3


def test_nothing_learned_gives_the_same_keys(
    measured: Path, elsewhere: Elsewhere, oloproof: Oloproof
) -> None:
    folder = elsewhere()
    assert stored_keys(store_of(folder)) == stored_keys(store_of(measured))
    oloproof("run", cwd=folder)
    assert stored_keys(store_of(folder)) == stored_keys(store_of(measured))
    (folder / "app.py").write_text(app(suffix="?"))
    oloproof("run", cwd=folder)
    assert stored_keys(store_of(folder)) != stored_keys(store_of(measured))


def test_merging_leaves_what_is_there_as_it_is(
    make_project: MakeProject, oloproof: Oloproof, snapshot: tuple[Path, Manifest], tmp_path: Path
) -> None:
    folder = make_project(app(suffix=" later"))
    oloproof("run", cwd=folder)
    (folder / "app.py").write_text(app())
    oloproof("run", cwd=folder)
    with closing(sqlite3.connect(snapshot[0])) as connection:
        connection.execute('UPDATE generation SET output = \'{"answer": "stale"}\'')
        connection.commit()
    merged = take_in(snapshot[0], store_of(folder))
    assert merged.rows["generation"] == 0
    outputs = {
        json.loads(str(output))["answer"]
        for (output,) in rows(store_of(folder), "SELECT output FROM generation")
    }
    assert outputs == {"blue", "blue later"}
    assert len(rows(store_of(folder), "SELECT id FROM run")) == 2


def test_what_is_known_of_unstable_cases_goes_along_and_more_repeats_say_more(
    measured: Path, tmp_path: Path
) -> None:
    """By the digest of input and expected value; the ids of the cases stay behind."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        shutil.copytree(measured, folder)
    (pair, *_), (other, *_), *_ = rows(store_of(measured), "SELECT DISTINCT pair FROM run_case")
    for folder, known in ((first, [(pair, 1, 4), (other, 1, 1)]), (second, [(pair, 1, 2), (other, 2, 3)])):
        with opened_store(folder) as store:
            store.unstable.note("correct", known)  # type: ignore[arg-type]
    snapshot = tmp_path / "snapshot"
    write_snapshot(store_of(first), snapshot, now=time.time())
    take_in(snapshot, store_of(second))
    with opened_store(second) as store:
        ((run,),) = rows(store_of(second), "SELECT id FROM run")
        known = {(each.differed, each.repeats) for each in store.unstable.of_run(str(run))}
    assert known == {(1, 4), (2, 3)}


def test_a_run_goes_with_its_results_alone(measured: Path, tmp_path: Path, oloproof: Oloproof) -> None:
    folder = tmp_path / "project"
    shutil.copytree(measured, folder)
    ((first,),) = rows(store_of(folder), "SELECT id FROM run")
    (folder / "app.py").write_text(app(suffix="!"))
    oloproof("run", cwd=folder)
    path = tmp_path / "baseline"
    manifest = write_snapshot(store_of(folder), path, now=time.time(), runs=[str(first)], only_of_runs=True)
    assert manifest.counts["generation"] == 3
    assert rows(path, "SELECT id FROM run") == [(first,)]
    assert rows(path, "SELECT DISTINCT log FROM run_case") == [("",)]
    assert {
        json.loads(str(output))["answer"] for (output,) in rows(path, "SELECT output FROM generation")
    } == {"blue"}


# ------------------------------------------------------------------------------------------- growth


def stamped(path: Path, days: dict[str, float]) -> None:
    """Let the uses of each index version's results lie so many days back."""
    with closing(sqlite3.connect(path)) as connection:
        for version, age in days.items():
            moment = time.time() - age * DAY
            connection.execute("UPDATE retrieval SET made = ? WHERE index_version = ?", (moment, version))
            connection.execute(
                "INSERT OR REPLACE INTO last_used SELECT e.id, ? FROM execution e "
                "JOIN retrieval r ON r.id = e.retrieval WHERE r.index_version = ?",
                (moment, version),
            )
        connection.execute("DELETE FROM run")
        connection.commit()


@pytest.fixture
def two_versions(make_project: MakeProject, oloproof: Oloproof) -> Path:
    """A store with the results of two index versions, of which the older gave other answers."""
    folder = make_project(app(suffix=" old"))
    oloproof("run", cwd=folder)
    (folder / "app.py").write_text(app(index="2"))
    oloproof("run", cwd=folder)
    return store_of(folder)


def test_an_index_version_not_seen_for_a_month_goes(two_versions: Path, tmp_path: Path) -> None:
    stamped(two_versions, {"1": 31, "2": 29})
    write_snapshot(two_versions, tmp_path / "snapshot", now=time.time())
    assert rows(tmp_path / "snapshot", "SELECT DISTINCT index_version FROM retrieval") == [("2",)]
    assert len(rows(tmp_path / "snapshot", "SELECT id FROM execution")) == 3
    assert len(rows(tmp_path / "snapshot", "SELECT id FROM judgment")) == 6


def test_an_old_index_version_in_use_stays(two_versions: Path, tmp_path: Path) -> None:
    stamped(two_versions, {"1": 31, "2": 31})
    with closing(sqlite3.connect(two_versions)) as connection:
        connection.execute("UPDATE last_used SET at = ?", (time.time(),))
        connection.commit()
    write_snapshot(two_versions, tmp_path / "snapshot", now=time.time())
    assert len(rows(tmp_path / "snapshot", "SELECT DISTINCT index_version FROM retrieval")) == 2


@pytest.mark.parametrize(("used_later", "kept"), [("1", "blue old"), ("2", "blue")])
def test_the_least_recently_used_go_first(
    two_versions: Path, tmp_path: Path, used_later: str, kept: str
) -> None:
    stamped(two_versions, {"1": 2, "2": 2} | {used_later: 1})
    whole = write_snapshot(two_versions, tmp_path / "whole", now=time.time())
    with closing(sqlite3.connect(tmp_path / "whole")) as connection:
        half = int(size(connection) * 0.7)
    write_snapshot(two_versions, tmp_path / "half", now=time.time(), max_bytes=half)
    left = [json.loads(str(out))["answer"] for (out,) in rows(tmp_path / "half", OUTPUTS)]
    assert left.count(kept) == 3
    assert len(left) < 6
    assert whole.counts["generation"] == 6


def test_old_answers_of_judges_go_too(two_versions: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(two_versions)) as connection:
        for number, made in ((1, time.time() + DAY), (2, 1.0)):
            answer = (bytes([number]) * 32, "model", "x" * 50_000, "", "", 1, 1, made)
            connection.execute("INSERT INTO judge_call VALUES (?, ?, ?, ?, ?, ?, ?, ?)", answer)
        connection.commit()
    manifest = write_snapshot(two_versions, tmp_path / "snapshot", now=time.time(), max_bytes=80_000)
    assert (manifest.counts["judge_call"], manifest.counts["generation"]) == (1, 6)
    assert rows(tmp_path / "snapshot", "SELECT id FROM judge_call") == [(b"\x01" * 32,)]


# ------------------------------------------------------------------------------------------- trust


def test_a_good_snapshot_is_taken(snapshot: tuple[Path, Manifest]) -> None:
    check_snapshot(*snapshot)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("CREATE TRIGGER evil AFTER INSERT ON judgment BEGIN DELETE FROM run; END", "tables are not those"),
        ("CREATE VIEW evil AS SELECT 1", "tables are not those"),
        (
            "CREATE TRIGGER sqlitevil AFTER INSERT ON judgment BEGIN DELETE FROM run; END",
            "tables are not those",
        ),
        ("ALTER TABLE judgment ADD COLUMN evil TEXT", "tables are not those"),
        ("PRAGMA user_version = 1", "tables are not those"),
    ],
)
def test_a_snapshot_with_other_tables_is_refused(
    snapshot: tuple[Path, Manifest], harm: str, said: str
) -> None:
    path, manifest = snapshot
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(harm)
        connection.commit()
    told = replace(manifest, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), bytes=path.stat().st_size)
    with pytest.raises(SnapshotRefused, match=said):
        check_snapshot(path, told)


def test_a_snapshot_that_was_changed_is_refused(snapshot: tuple[Path, Manifest]) -> None:
    path, manifest = snapshot
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(SnapshotRefused, match="not what its manifest says"):
        check_snapshot(path, manifest)


def test_a_snapshot_with_a_run_that_nobody_named_is_refused(snapshot: tuple[Path, Manifest]) -> None:
    path, manifest = snapshot
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO run VALUES ('run_1', NULL, '{}')")
        connection.commit()
    told = replace(manifest, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), bytes=path.stat().st_size)
    with pytest.raises(SnapshotRefused, match="its runs are not those"):
        check_snapshot(path, told)


def test_judgments_made_anew_over_other_files_are_something_learned(
    snapshot: tuple[Path, Manifest],
) -> None:
    path, manifest = snapshot
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO file_set VALUES (x'01', '{\"sets\": [], \"files\": []}')")
        connection.commit()
    before = stored_keys(path)
    assert before != manifest.keys
    with closing(sqlite3.connect(path)) as connection:
        connection.execute('UPDATE file_set SET files = \'{"sets": ["00"], "files": []}\' WHERE id = x\'01\'')
        connection.commit()
    assert stored_keys(path) != before


def test_a_snapshot_of_another_schema_is_refused(snapshot: tuple[Path, Manifest]) -> None:
    path, manifest = snapshot
    with pytest.raises(SnapshotRefused, match="another version"):
        check_snapshot(path, replace(manifest, schema=manifest.schema + 1))


def test_what_is_no_database_is_refused(snapshot: tuple[Path, Manifest]) -> None:
    path, manifest = snapshot
    path.write_bytes(b"no database" * 1000)
    told = replace(manifest, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), bytes=path.stat().st_size)
    with pytest.raises(SnapshotRefused, match="cannot be read"):
        check_snapshot(path, told)


def test_a_snapshot_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.Error):
        write_snapshot(tmp_path / "absent", tmp_path / "snapshot", now=0.0)
    assert not (tmp_path / "snapshot").exists()


# ---------------------------------------------------------------------------------- the local store


def _cells(lines: list[str]) -> dict[str, str]:
    """The first two cells of each row of the tables in a text."""
    cells = [[cell.strip() for cell in line.split("│")] for line in lines if line.startswith("│")]
    return {row[1]: row[2] for row in cells}


def test_stats_count_what_the_store_holds(two_versions: Path, quick: Oloproof) -> None:
    folder = two_versions.parents[1]
    finished = quick("cache", "stats", cwd=folder)
    assert {"generations": "6", "runs": "2"}.items() <= _cells(finished.lines).items()
    assert {"1": "3", "2": "3"}.items() <= _cells(finished.lines).items()
    record = quick("cache", "stats", "--json", cwd=folder).record
    assert record["counts"]["judgment"] == 12
    assert [each["index_version"] for each in record["indexes"]] == ["2", "1"]


def test_prune_leaves_what_is_in_use(two_versions: Path, quick: Oloproof) -> None:
    finished = quick("cache", "prune", cwd=two_versions.parents[1])
    assert finished.stdout.startswith("Nothing to remove")
    assert len(rows(two_versions, "SELECT id FROM generation")) == 6


def test_prune_removes_an_index_version_out_of_use_and_runs_stay_readable(
    two_versions: Path, quick: Oloproof
) -> None:
    folder = two_versions.parents[1]
    runs = [str(run) for (run,) in rows(two_versions, "SELECT id FROM run ORDER BY id")]
    with closing(sqlite3.connect(two_versions)) as connection:  # as if the first run were from last year
        old = "run_01" + "A" * 24
        connection.execute(
            "UPDATE run SET id = ?, record = replace(record, id, ?) WHERE id = ?", (old, old, runs[0])
        )
        connection.execute("UPDATE run_case SET run = ? WHERE run = ?", (old, runs[0]))
        connection.execute("UPDATE retrieval SET made = 1 WHERE index_version = '1'")
        connection.commit()
    finished = quick("cache", "prune", cwd=folder)
    assert "Removed 3 retrievals, 3 executions, 6 judgments" in finished.stdout
    assert "1 stored run kept judgments and metrics, but no longer every recorded answer" in finished.stdout
    assert rows(two_versions, "SELECT DISTINCT index_version FROM retrieval") == [("2",)]
    inspected = quick("inspect", old, "--case", "one", cwd=folder)
    assert inspected.returncode == 0, inspected.stderr


def test_which_cases_were_unstable_is_remembered_elsewhere(
    measured: Path, elsewhere: Elsewhere, snapshot: tuple[Path, Manifest], tmp_path: Path
) -> None:
    folder = elsewhere()
    before = stored_keys(store_of(folder))
    with closing(sqlite3.connect(store_of(folder))) as connection:
        connection.execute("INSERT INTO unstable VALUES (x'00', 'correct', 1, 2)")
        connection.commit()
    assert stored_keys(store_of(folder)) != before
    write_snapshot(store_of(folder), tmp_path / "later", now=time.time())
    take_in(tmp_path / "later", tmp_path / "third" / "store")
    assert rows(tmp_path / "third" / "store", "SELECT criterion, differed FROM unstable") == [("correct", 1)]
