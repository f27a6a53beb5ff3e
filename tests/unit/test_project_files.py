"""What results depend on of a checkout's files, and whether it still is what it was."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from oloproof.checkouts import tracked_by_git
from oloproof.identity.files import NOTHING_READ, ProjectFiles
from oloproof.store.database import Database
from oloproof.store.recency import remove_unnamed
from oloproof.store.results import Key, Results, StoredGeneration
from oloproof.worker.opened import ReadSet
from oloproof.worker.reads import file_stamp, folder_stamp, kind_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "data/corpus.jsonl"):
        (folder / name).write_text("old")
    return folder


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Results]:
    database = Database(tmp_path / "store.sqlite3")
    yield Results(database)
    database.close()


def stamp(root: Path, name: str) -> str:
    """The stamp that the worker gives of what it reads under a name now."""
    place = str(root / name.partition("//")[0])
    if name.endswith("//exists"):
        return kind_of(place)
    if name.endswith("/"):
        return folder_stamp(place)
    exists = os.path.exists(place) and "//" not in name
    return file_stamp(os.stat(place)) if exists else ""


def read(root: Path, *names: str, before: ReadSet | None = None) -> ReadSet:
    return ReadSet(before, tuple((name, stamp(root, name)) for name in names))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a.txt", "echo new > a.txt"),
        ("a.txt", "rm a.txt"),
        ("none.txt", "touch none.txt"),
        ("data/", "touch data/more.txt"),
        ("data/", "rm -r data"),
        ("./", "touch more.txt"),
        ("none.txt//exists", "touch none.txt"),
        ("a.txt//exists", "rm a.txt"),
        ("a.txt//exists", "rm a.txt; mkdir a.txt"),
        ("link.txt", "ln -sf b.txt link.txt; echo new > b.txt"),
        ("current//link", "ln -sfn ../elsewhere current"),
        ("current//link", "rm current; cp -r data current"),
    ],
)
def test_a_set_is_valid_until_what_is_in_it_changes(
    root: Path, records: Results, name: str, change: str
) -> None:
    (root / "link.txt").symlink_to("a.txt")
    (root / "current").symlink_to("data")
    (root.parent / "elsewhere").mkdir()
    identity = ProjectFiles(root, records).identify(read(root, name))
    assert ProjectFiles(root, records).valid(identity)
    subprocess.run(change, shell=True, cwd=root, check=True)
    files = ProjectFiles(root, records)
    assert not files.valid(identity)
    assert files.changed(identity) == {name.partition("//")[0]}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a.txt", "echo new > a.txt"),
        ("a.txt", "cp a.txt copy; mv copy a.txt"),
        ("none.txt", "touch none.txt"),
        ("data/", "touch data/more.txt"),
        ("none.txt//exists", "touch none.txt"),
    ],
)
def test_what_changes_between_its_read_and_its_digest_is_never_reused(
    root: Path, records: Results, name: str, change: str
) -> None:
    seen = read(root, name)
    subprocess.run(change, shell=True, cwd=root, check=True)
    identity = ProjectFiles(root, records).identify(seen)
    assert not ProjectFiles(root, records).valid(identity)


def test_what_was_written_just_before_it_was_read_is_never_reused(root: Path, records: Results) -> None:
    identity = ProjectFiles(root, records).identify(ReadSet(None, (("a.txt", "?"),)))
    assert not ProjectFiles(root, records).valid(identity)


def test_a_set_depends_on_those_that_it_names(root: Path, records: Results) -> None:
    files = ProjectFiles(root, records)
    first = read(root, "a.txt")
    second = read(root, "b.txt", before=first)
    identities = files.identify(first), files.identify(second)
    both = files.union(identities)
    (root / "a.txt").write_text("new")
    later = ProjectFiles(root, records)
    assert [later.valid(identity) for identity in (*identities, both)] == [False] * 3
    assert later.changed(both) == {"a.txt"}
    (root / "a.txt").write_text("old")
    (root / "b.txt").write_text("new")
    later = ProjectFiles(root, records)
    assert [later.valid(identity) for identity in (*identities, both)] == [True, False, False]


def test_a_set_that_is_not_stored_is_not_valid(root: Path, records: Results) -> None:
    assert not ProjectFiles(root, records).valid(b"x" * 32)
    assert ProjectFiles(root, records).valid(NOTHING_READ)


def test_sets_that_grow_take_no_more_room_than_what_was_added(
    root: Path, records: Results, tmp_path: Path
) -> None:
    files = ProjectFiles(root, records)
    reads = None
    for number in range(5_000):
        reads = ReadSet(reads, ((f"data/{number}.txt", ""),))
        identity = files.identify(reads)
    records._database.commit()
    assert (tmp_path / "store.sqlite3").stat().st_size + (
        tmp_path / "store.sqlite3-wal"
    ).stat().st_size < 8_000_000
    later = ProjectFiles(root, records)
    assert later.valid(identity)
    (root / "data" / "7.txt").write_text("")
    later = ProjectFiles(root, records)
    assert not later.valid(identity)
    assert later.changed(identity) == {"data/7.txt"}


def test_patterns_and_names_are_seen_from_the_project_in_a_repository(root: Path, records: Results) -> None:
    names = ("data/corpus.jsonl", "a.txt")
    identity = ProjectFiles(root, records).identify(read(root, *names))
    (root / "a.txt").write_text("new")
    (root / "data" / "corpus.jsonl").write_text("new")

    def changed(*patterns: str) -> set[str]:
        return ProjectFiles(root, records, patterns, folder=root / "data").changed(identity)

    assert changed() == {"corpus.jsonl", "../a.txt"}
    assert changed("*.jsonl") == {"../a.txt"}
    assert changed("../*.txt", "corpus.*") == set()
    assert changed("data/*", "a.txt") == {"corpus.jsonl", "../a.txt"}


def test_programs_are_told_of_sets_made_and_looked_at(root: Path, records: Results) -> None:
    files = ProjectFiles(root, records)
    identity = files.identify(read(root, "cat//program"))
    assert files.programs == {"cat"}
    later = ProjectFiles(root, records)
    assert later.valid(identity)
    assert later.programs == {"cat"}


def test_what_git_tracks_are_files_their_folders_and_what_lies_beyond_a_link(root: Path) -> None:
    (root / "link").symlink_to("/tmp")
    subprocess.run("git init -q && git add data link", shell=True, cwd=root, check=True)
    tracked = tracked_by_git(root)
    assert tracked is not None
    assert all(tracked(path) for path in ("data/corpus.jsonl", "data/", "./", "link", "link/x.txt"))
    assert not any(tracked(path) for path in ("a.txt", "data/new.txt", "other/"))


def test_a_set_that_a_result_has_keeps_those_that_it_names(root: Path, records: Results) -> None:
    files = ProjectFiles(root, records)
    first = read(root, "a.txt")
    used = files.identify(read(root, "b.txt", before=first))
    unused = files.identify(read(root, "data/corpus.jsonl", before=first))
    records.put_generation(StoredGeneration(Key(b"i" * 32, used), "{}", 0.0, ""), 0.0)
    records._database.commit()
    remove_unnamed(records._database.connection)
    later = ProjectFiles(root, records)
    assert later.valid(used)
    assert not later.valid(unused)
