"""The files that a run leaves for people and other programs, each written whole or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from oloproof.errors import ConfigurationError

COMMENT, REPORT = "comment.md", "report.json"


def folder_in(workspace: Path, named: str) -> Path:
    """The folder of a workspace that the input report-dir names. Raises ConfigurationError when that leads out of it,
    by a link or otherwise."""
    top = Path(os.path.realpath(workspace))
    if not Path(os.path.realpath(top / named)).is_relative_to(top):
        by_link = Path(os.path.normpath(top / named)).is_relative_to(top)
        how = "is, or lies behind, a link that leads" if by_link else "leads"
        raise ConfigurationError(
            f'input report-dir: "{named}" {how} out of the workspace; name a folder in it, such as oloproof-report'
        )
    return workspace / named


def discard(folder: Path) -> None:
    """Remove what an earlier run wrote: should this one fail, nobody may take that for its result."""
    for name in (COMMENT, REPORT):
        target = folder / name
        try:
            target.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigurationError(f"{target}: cannot be replaced ({error.strerror or error})") from None


def write(folder: Path, name: str, text: str) -> None:
    """Write a file whole: it is there with all its text, or not at all."""
    target = folder / name
    draft = folder / f".{name}.{uuid.uuid4().hex}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            # A lone surrogate, which JSON can hold and UTF-8 cannot, is written as JSON escapes it.
            draft.write_text(text, encoding="utf-8", errors="backslashreplace")
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{target}: cannot be written ({error.strerror or error})") from None
