"""What a checkout's folder is part of: where its files' paths start, and which of them are its own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path


def watched_folder(root: Path) -> Path:
    """The top of the git work tree that a project lies in, or the project's own folder outside one."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return root


def tracked_by_git(folder: Path) -> Callable[[str], bool] | None:
    """Whether a path below a work tree's top is a file that git tracks; None outside a work tree."""
    if not (folder / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "-z"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError:
        return None
    if done.returncode:
        return None
    tracked = frozenset(done.stdout.decode("utf-8", "surrogateescape").split("\0"))
    return tracked.__contains__
