"""What a checkout's folder is part of: where its files' paths start, and which of them are its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from oloproof.worker.account import Account


def watched_folder(root: Path) -> Path:
    """The top of the git work tree that a project lies in, or the project's own folder outside one."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return root


def trusting(folder: Path, account: Account | None) -> dict[str, str]:
    """The variables with which git, run as another user, minds neither whose a work tree is nor our own settings; none
    when it runs as we do."""
    if account is None:
        return {}
    safe = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    return {**safe, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}


def tracked_by_git(folder: Path, account: Account | None = None) -> Callable[[str], bool] | None:
    """Whether a path below a work tree's top is a file that git tracks; None outside a work tree."""
    if not (folder / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "-z"],
            env={**os.environ, **trusting(folder, account)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            **({} if account is None else account.popen_arguments()),
        )
    except OSError:
        return None
    if done.returncode:
        return None
    tracked = frozenset(done.stdout.decode("utf-8", "surrogateescape").split("\0"))
    return tracked.__contains__
