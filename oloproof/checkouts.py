"""What a checkout's folder is part of: where its files' paths start, and which of them are its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from oloproof.worker.account import Account


def watched_folder(root: Path) -> Path:
    """The top of the git work tree that a project lies in, or the project's own folder outside one."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return root


def git_settings(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Settings of git as environment variables, which neither a command line nor a file has to hold."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for index, (key, value) in enumerate(settings):
        variables |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return variables if settings else {}


def tracked_by_git(
    folder: Path, environment: Mapping[str, str] | None = None, account: Account | None = None
) -> Callable[[str], bool] | None:
    """Whether a path below a work tree's top is one that git tracks; None outside a work tree. git runs as `account`,
    the user of the checkout's code, who can look into its environment: so that is to be the code's own."""
    if not (folder / ".git").exists():
        return None
    as_other = {} if account is None else account.popen_arguments()
    # As another user git is to mind neither whose the work tree is nor settings that it cannot read.
    trusting = {"GIT_CONFIG_GLOBAL": os.devnull, **git_settings([("safe.directory", str(folder))])}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "-z"],
            env={**(os.environ if environment is None else environment), **(trusting if account else {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            **as_other,
        )
    except OSError:
        return None
    if done.returncode:
        return None
    tracked = frozenset(done.stdout.decode("utf-8", "surrogateescape").split("\0"))
    folders = frozenset({folder for path in tracked for folder in _folders_of(path)} | {".", ""})

    def is_tracked(path: str) -> bool:
        """Also a folder in which something is tracked, and what lies beyond a link or in a submodule that is."""
        path = path.removesuffix("/")
        return path in tracked or path in folders or any(folder in tracked for folder in _folders_of(path))

    return is_tracked


def _folders_of(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:at]) for at in range(1, len(parts))]


def default_branch(folder: Path) -> str | None:
    """The branch that origin calls its own; None when that is not known."""
    command = ["git", "-C", str(folder), "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip().removeprefix("origin/") or None
