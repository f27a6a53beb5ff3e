"""Looks whether a file is there, which the audit hook does not hear: `os.stat` and `os.access` are wrapped.

All of `os.path` and `pathlib` that asks for a file's status goes through them; the import system does not. Loaded
inside the worker, so standard library only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

from oloproof.worker.frames import asked_by_us


def watch_existence(glance: Callable[[Any, str], None]) -> None:
    """From now on tell `glance` of each path whose status is asked for: "file", or empty when it is not there. Folders
    are not told: what matters of them is seen when they are listed or what is in them is opened."""
    status, access = os.stat, os.access

    def look(path: Any, *given: Any, **more: Any) -> Any:
        try:
            found = status(path, *given, **more)
        except FileNotFoundError:
            _tell(glance, path, more, "")
            raise
        if not stat.S_ISDIR(found.st_mode):
            _tell(glance, path, more, "file")
        return found

    @wraps(status)
    def watched_stat(*given: Any, **more: Any) -> Any:
        return look(*given, **more)

    @wraps(access)
    def watched_access(path: Any, *given: Any, **more: Any) -> bool:
        with suppress(OSError, ValueError):
            look(path)
        return access(path, *given, **more)

    os.stat, os.access = watched_stat, watched_access
    for supported in (
        os.supports_fd,
        os.supports_dir_fd,
        os.supports_follow_symlinks,
        os.supports_effective_ids,
    ):
        for original, watched in ((status, watched_stat), (access, watched_access)):
            if original in supported:
                supported.add(watched)


def _tell(glance: Callable[[Any, str], None], path: Any, more: dict[str, Any], kind: str) -> None:
    if isinstance(path, int) or more.get("dir_fd") is not None or asked_by_us():
        return
    try:
        glance(path, kind)
    except Exception:  # noqa: BLE001 - the user's own call must not fail for it
        return
