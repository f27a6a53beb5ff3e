"""Temporary worktrees of a repository: made for one commit, removed afterwards, or by the next preview when theirs was
killed."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CompletedProcess

from oloproof.errors import ConfigurationError
from oloproof.worker.account import Account
from oloproof_ci.git import Repository, last_line

_PREFIX = "oloproof-base-"
#: How `tempfile` goes on after the prefix.
_OURS = re.compile(rf"{_PREFIX}\w+")
_TREE, _LOCK = "base", "in-use"
#: A worktree whose folder is gone may be in use where that is not to be seen, as in a container. No preview takes that
#: many seconds.
_LONGEST = 24 * 3600
#: How much of a commit's id names it.
SHORT_SHA = 7


@contextmanager
def worktree(repository: Repository, sha: str) -> Iterator[Path]:
    """A temporary checkout of a commit, removed afterwards; submodules are checked out too, where the repository has
    them and the commits that they were at. No hook of the repository runs. What earlier ones that were killed have left
    is removed first."""
    _remove_abandoned(repository)
    parent = Path(tempfile.mkdtemp(prefix=_PREFIX))
    # Held until the process ends, however it does.
    lock = os.open(parent / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    access = repository.access
    if access.account is not None:
        os.chown(parent, access.account.uid, access.account.gid)
    elif access.tenant is not None:
        parent.chmod(0o711)
    place = parent / _TREE
    modules: list[tuple[Repository, Path]] = []
    try:
        added = _add(repository, sha, place)
        if added.returncode:
            raise ConfigurationError(
                f"{repository.root}: the base {sha[:SHORT_SHA]} could not be checked out: {last_line(added.stderr)}"
            )
        _add_submodules(repository, sha, place, modules)
        if access.tenant is not None and access.tenant != access.account:
            _give(place, access.tenant)
        yield place
    finally:
        for module, inner in reversed(modules):
            module.git("worktree", "remove", "--force", str(inner))
        _remove(repository, place)
        os.close(lock)


def _add(repository: Repository, sha: str, place: Path) -> CompletedProcess[str]:
    return repository.git(
        "-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", "--quiet", str(place), sha
    )


def _add_submodules(
    repository: Repository, sha: str, place: Path, added: list[tuple[Repository, Path]]
) -> None:
    """Check out what a commit's submodules were at, from what is here: nothing is fetched. `added` gets each of them,
    with its worktree."""
    for path, commit in repository.submodules_at(sha):
        try:
            module = Repository(repository.root / path, repository.access)
        except ConfigurationError:
            continue
        inside = os.path.realpath(module.root) == os.path.join(os.path.realpath(repository.root), path)
        if inside and not _add(module, commit, place / path).returncode:
            added.append((module, place / path))
            _add_submodules(module, commit, place / path, added)


def without_worktree(text: str, sha: str) -> str:
    """An error's text with the base's files named as git names them, `a1b2c3d:app.py`, and not by the temporary
    worktree that they were read in."""
    places = {tempfile.gettempdir(), os.path.realpath(tempfile.gettempdir())}
    folder = "|".join(re.escape(place) for place in sorted(places, key=len, reverse=True))
    shown = sha[:SHORT_SHA]
    return re.sub(
        rf"(?:{folder})/{_OURS.pattern}/{_TREE}(/?)", lambda found: shown + (":" if found[1] else ""), text
    )


def _remove(repository: Repository, place: Path) -> None:
    repository.git("worktree", "remove", "--force", str(place))
    shutil.rmtree(place.parent, ignore_errors=True)
    # When the folder could not be removed by git, its entry can be now that the folder is gone.
    repository.git("worktree", "remove", "--force", str(place))


def _remove_abandoned(repository: Repository) -> None:
    """Remove the worktrees of previews that were killed."""
    for entry in _entries(repository):
        named = entry / "gitdir"
        with suppress(OSError, ValueError):
            if not named.is_file():
                continue
            place = Path(os.fsdecode(named.read_bytes()).rstrip("\n")).parent
            if place.name == _TREE and _OURS.fullmatch(place.parent.name) and _is_abandoned(place, named):
                _remove(repository, place)


def _entries(repository: Repository) -> list[Path]:
    """What the repository keeps of each of its worktrees."""
    folder = repository.git("rev-parse", "--git-common-dir").stdout.rstrip("\n")
    return sorted((repository.root / folder / "worktrees").glob("*")) if folder else []


def _is_abandoned(place: Path, named: Path) -> bool:
    """Whether nobody holds a worktree any more; `named` is the file by which the repository knows it. Raises OSError
    while it is held, and where that cannot be told, as when it is another user's."""
    try:
        lock = os.open(place.parent / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        gone = not place.parent.exists()
        return gone and time.time() - named.stat().st_mtime > _LONGEST
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(lock)
    return True


def _give(tree: Path, tenant: Account) -> None:
    """Make a checkout of ours, which nobody has used yet, another user's."""
    os.chown(tree, tenant.uid, tenant.gid)
    for folder, folders, files in os.walk(tree):
        for name in (*folders, *files):
            os.chown(os.path.join(folder, name), tenant.uid, tenant.gid, follow_symlinks=False)
