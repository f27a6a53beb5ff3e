"""Telling whether another distribution that owns our import name is installed beside ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from oloproof.errors import ConfigurationError


def check_installation(paths: Iterable[str] | None = None) -> None:
    """Stop when the unrelated distribution named `oloproof` is installed too: both own `import oloproof`, and which
    of the two an app would get is a matter of luck.

    Looks for its metadata in the folders that Python imports from. Raises ConfigurationError.
    """
    for folder in sys.path if paths is None else paths:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            stem, _, kind = name.rpartition(".")
            if kind in ("dist-info", "egg-info") and stem.split("-")[0].lower() == "oloproof":
                raise ConfigurationError(
                    f"{os.path.join(folder, name)}: another distribution named oloproof is installed here; it is not "
                    "ours (ours is oloproof-ci) and both own the import name. Uninstall both, then install "
                    "oloproof-ci again: pip uninstall oloproof oloproof-ci; pip install oloproof-ci"
                )
