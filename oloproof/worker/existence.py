"""Looks whether a file is there, which the audit hook does not hear: `os.stat`, `os.lstat` and `os.access` are wrapped.

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


def watch_existence(glance: Callable[[Any, bool], None]) -> None:
    """From now on tell `glance` of each path whose status is asked for, and whether there is a file. Folders are not
    told, nor links that are not followed: what matters of them is seen when they are listed or what is in them is
    opened."""
    status, link_status, access = os.stat, os.lstat, os.access

    def look(ask: Callable[..., Any], path: Any, *given: Any, **more: Any) -> Any:
        try:
            found = ask(path, *given, **more)
        except FileNotFoundError:
            _tell(glance, path, more, False)
            raise
        if stat.S_ISREG(found.st_mode):
            _tell(glance, path, more, True)
        return found

    @wraps(status)
    def watched_stat(*given: Any, **more: Any) -> Any:
        return look(status, *given, **more)

    @wraps(link_status)
    def watched_lstat(*given: Any, **more: Any) -> Any:
        return look(link_status, *given, **more)

    @wraps(access)
    def watched_access(path: Any, *given: Any, **more: Any) -> bool:
        with suppress(OSError, ValueError):
            look(status, path)
        return access(path, *given, **more)

    watched: dict[object, Any] = {status: watched_stat, link_status: watched_lstat, access: watched_access}
    os.stat, os.lstat, os.access = watched_stat, watched_lstat, watched_access
    for able in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        able.update([watched[each] for each in able & watched.keys()])


def _tell(glance: Callable[[Any, bool], None], path: Any, more: dict[str, Any], there: bool) -> None:
    if isinstance(path, int) or more.get("dir_fd") is not None or asked_by_us():
        return
    try:
        glance(path, there)
    except Exception:  # noqa: BLE001 - the user's own call must not fail for it
        return
