"""Where a repository's suites are."""

from __future__ import annotations

import os
from pathlib import Path

from oloproof.errors import ConfigurationError
from oloproof_ci.git import Repository

CONFIG = "oloproof.yaml"


def find_config(folder: Path, setting: str = "--config PATH", repository: Repository | None = None) -> Path:
    """oloproof.yaml in a folder, else the only one that git knows in its repository; `setting` is how one is named."""
    here = folder / CONFIG
    if here.exists():
        return here
    repository = repository or Repository(folder)
    root, found = repository.root, repository.files(CONFIG)
    if len(found) == 1:
        return folder / os.path.relpath(root / found[0], folder)
    if not found:
        raise ConfigurationError(f"{root}: there is no {CONFIG} in this repository; name it with {setting}")
    raise ConfigurationError(
        f"{root}: there are several {CONFIG} ({', '.join(found[:5])}); name one with {setting}"
    )
