"""Where a repository's suites are: their configurations, and the policies beside them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from oloproof.errors import ConfigurationError
from oloproof.settings.policy import Policy, load_policy
from oloproof.workplace import COMPARE_POLICY, RELEASE_POLICY
from oloproof_ci.git import Repository

CONFIG = "oloproof.yaml"


def find_config(folder: Path, setting: str = "--config PATH") -> Path:
    """oloproof.yaml in a folder, else the only one that git knows in its repository; `setting` is how one is named."""
    here = folder / CONFIG
    if here.exists():
        return here
    repository = Repository(folder)
    root, found = repository.root, repository.files(CONFIG)
    if len(found) == 1:
        return folder / os.path.relpath(root / found[0], folder)
    if not found:
        raise ConfigurationError(f"{root}: there is no {CONFIG} in this repository; name it with {setting}")
    raise ConfigurationError(
        f"{root}: there are several {CONFIG} ({', '.join(found[:5])}); name one with {setting}"
    )


def load_policies(given: Sequence[Path] | None, folder: Path) -> list[Policy]:
    """The policies named, or those that stand beside the configuration in `folder`."""
    if given:
        return [load_policy(path) for path in given]
    paths = [folder / RELEASE_POLICY, folder / COMPARE_POLICY]
    return [load_policy(path) for path in paths if path.exists()]
