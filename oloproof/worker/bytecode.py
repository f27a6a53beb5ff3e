"""Which compiled files of the project are believed to be made from the source that is there now.

Python goes by a source file's size and the whole second of its last change. Of two changes within one second it sees
the first alone when the size is the same, and would run old code under the new one's fingerprint.

Loaded inside the worker, so standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from typing import Any

from oloproof.worker.surroundings import is_installed

#: How much later than its source a compiled file must be, in seconds: a tick of the kernel's clock, with room to spare.
TICK = 0.01
_status, _unlink = os.stat, os.unlink


def distrust_early_bytecode() -> None:
    """From now on, compile anew what was not compiled after its source was last changed."""
    told_by_python = SourceFileLoader.path_stats

    def path_stats(self: SourceFileLoader, path: Any) -> Mapping[str, Any]:
        """Raises OSError, upon which Python takes the source, where a compiled file that is too early stays."""
        found = told_by_python(self, path)
        if not (is_installed(path) or is_installed(os.path.realpath(path))):
            _remove_early(cache_from_source(path), found["mtime"])
        return found

    SourceFileLoader.path_stats = path_stats  # type: ignore[method-assign]


def _remove_early(compiled: str, changed: float) -> None:
    with suppress(FileNotFoundError):
        if _status(compiled).st_mtime < changed + TICK:
            _unlink(compiled)
