"""Temporary worktrees: each goes with the preview that made it, or with the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from test_preview import Checkout, git_environment, support

from oloproof_ci.git import Repository
from oloproof_ci.worktrees import worktree

__all__ = ["support"]


@pytest.fixture
def changed(support: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A branch with a change; temporary files go to a folder of the test's own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    support.branch("docs")
    support.edit("README.md", "# ", "# About ")
    support.commit()
    return support


def known(checkout: Checkout) -> list[Path]:
    """The worktrees that git knows, the checkout's own left out."""
    lines = checkout.git("worktree", "list", "--porcelain").splitlines()
    return [Path(line.removeprefix("worktree ")) for line in lines if line.startswith("worktree ")][1:]


def killed(checkout: Checkout) -> Path:
    """The worktree that a preview leaves which is killed while it measures."""
    with subprocess.Popen(
        [sys.executable, "-m", "oloproof_ci", "preview"],
        cwd=checkout.root,
        env=git_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        while not (found := known(checkout)) or not (found[0] / "app.py").exists():
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGKILL)
    (left,) = known(checkout)
    assert left.exists()
    return left


def test_what_a_killed_preview_left_is_removed_by_the_next(changed: Checkout) -> None:
    left = killed(changed)
    assert changed.preview().returncode == 0
    assert known(changed) == []
    assert not left.parent.exists()


def test_a_worktree_that_is_in_use_and_those_of_others_stay(changed: Checkout, tmp_path: Path) -> None:
    sha = changed.git("rev-parse", "main")
    theirs = [tmp_path / "theirs", tmp_path / "oloproof-base-ofmyown" / "base"]
    for path in theirs:
        changed.git("worktree", "add", "--detach", "--quiet", str(path), sha)
    with worktree(Repository(changed.root), sha) as tree:
        assert changed.preview().returncode == 0
        assert (tree / "app.py").exists()
        assert sorted(known(changed)) == sorted([*theirs, tree])
    assert sorted(known(changed)) == sorted(theirs)


@pytest.mark.parametrize(("age", "stays"), [(0, True), (2 * 24 * 3600, False)])
def test_a_worktree_whose_folder_is_gone_is_forgotten_once_it_cannot_be_in_use(
    changed: Checkout, age: int, stays: bool
) -> None:
    """It may lie where it is not to be seen, as in a container on the same checkout."""
    left = killed(changed)
    left.parent.rename(changed.root.parent / "elsewhere")
    (named,) = (changed.root / ".git" / "worktrees").glob("*/gitdir")
    then = time.time() - age
    os.utime(named, (then, then))
    assert changed.preview().returncode == 0
    assert (left in known(changed)) is stays


def test_submodules_of_the_base_are_as_they_were_there(changed: Checkout, tmp_path: Path) -> None:
    """One that is not checked out, or lacks the commit, stays empty."""
    library = repository(tmp_path / "library", {"words.txt": "old"})
    outer = repository(tmp_path / "outer", {"README": "outer"})
    allowed = ("-c", "protocol.file.allow=always")
    for checkout, url, name in (
        (outer, library, "inner"),
        (changed.root, outer, "module"),
        (changed.root, outer, "gone"),
    ):
        git(checkout, *allowed, "submodule", "--quiet", "add", str(url), name)
        git(checkout, "commit", "--quiet", "--message", "A submodule")
    git(changed.root, *allowed, "submodule", "--quiet", "update", "--init", "--recursive")
    git(changed.root, "submodule", "--quiet", "deinit", "gone")
    before = git(changed.root, "rev-parse", "HEAD").strip()
    (changed.root / "module" / "README").write_text("newer")
    git(changed.root / "module", "commit", "--quiet", "--all", "--message", "Newer")
    with worktree(Repository(changed.root), before) as tree:
        assert (tree / "module" / "README").read_text() == "outer"
        assert (tree / "module" / "inner" / "words.txt").read_text() == "old"
        assert list((tree / "gone").iterdir()) == []
    assert not tree.exists()
    for module in (changed.root, changed.root / "module", changed.root / "module" / "inner"):
        assert len(git(module, "worktree", "list").splitlines()) == 1
    assert (changed.root / "module" / "README").read_text() == "newer"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=git_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "All")
    return folder
