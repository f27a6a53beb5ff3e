"""What actions/checkout leaves in a clone for later steps: the job's token, in git's configuration.

The pull request's code could read it there, since the clone is its user's. So it is taken out while that code runs and
put back afterwards.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from oloproof.worker.account import Account, seeing_as

#: The token as a header, or a file that holds it.
_KEYS = r"^(http\..*\.extraheader|includeif\..*\.path)$"
_MARKS = re.compile(rb"extraheader|includeif", re.IGNORECASE)


@contextmanager
def credentials_aside(workspace: Path, owner: Account | None, scratch: Path) -> Iterator[None]:
    """Take the credentials out of a clone's configuration, and those of its submodules, for as long as the block
    lasts. `owner` is whose the clone is, when that is not us; `scratch` a folder of ours."""
    kept: list[tuple[Path, bytes]] = []
    try:
        for path in _configurations(workspace / ".git"):
            content = path.read_bytes()
            if _MARKS.search(content):
                kept.append((path, content))
                _put(path, _without_credentials(content, scratch / "gitconfig"), owner)
        yield
    finally:
        for path, content in kept:
            with suppress(OSError):  # the code removed the clone: then there is nothing to put it back into
                _put(path, content, owner)


def _configurations(git: Path) -> list[Path]:
    if not git.is_dir():
        return []
    found = [git / "config", *git.glob("modules/**/config")]
    return [path for path in found if path.is_file() and not path.is_symlink()]


def _without_credentials(content: bytes, draft: Path) -> bytes:
    """A configuration file's content after git has taken the credentials out."""
    draft.write_bytes(content)
    listed = _git(draft, "--name-only", "--get-regexp", _KEYS)
    for key in dict.fromkeys(listed.splitlines()):
        _git(draft, "--unset-all", key)
    result = draft.read_bytes()
    draft.unlink()
    return result


def _git(file: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "config", "--file", str(file), *arguments],
        env={"PATH": os.environ.get("PATH", os.defpath)},
        cwd=file.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )
    return done.stdout


def _put(path: Path, content: bytes, owner: Account | None) -> None:
    """Replace a file as its owner would: a link that the code laid leads no further than its own rights."""
    draft = path.with_name("config.oloproof")
    with seeing_as(owner):
        draft.unlink(missing_ok=True)
        with open(draft, "xb") as file:
            file.write(content)
        draft.chmod(path.stat().st_mode & 0o777)
        draft.replace(path)
