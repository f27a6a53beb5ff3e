"""Keeping what a configuration names inside its repository.

A configuration comes with a pull request, and what it names is read by us: a path that leads elsewhere would show the
machine's own files to whoever reads the messages.
"""

from __future__ import annotations

import os
from pathlib import Path

from oloproof.checkouts import watched_folder


def outside(named: str, folder: Path) -> str | None:
    """Why a path may not be used that a file in `folder` names; None when it leads to a place in the repository, or in
    `folder` where there is none. A link counts as where it leads."""
    if os.path.isabs(named):
        return f'must be a relative path, found "{named}"'
    top = os.path.realpath(watched_folder(folder))
    reached = os.path.realpath(folder / named)
    if reached == top or reached.startswith(top + os.sep):
        return None
    if os.path.normpath(folder / named) == reached:
        return (
            f'leads out of the repository {top}, found "{named}"; what a suite needs lies in its repository'
        )
    return f"{named} is, or lies behind, a link that leads out of the repository {top}; put the file itself there"
