"""Paths of the head's checkout, and what stands in their place in the base's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from oloproof.execution.host import AppHost


@dataclass(frozen=True)
class CheckoutPlace:
    """The head's checkout and the base's worktree."""

    head: Path
    base: Path

    def environment(self, environment: Mapping[str, str], app: AppHost) -> dict[str, str]:
        """The base's environment: paths into the head's checkout lead into the base's wherever it has such a place.

        The folders from which the head imports its own modules come first on PYTHONPATH, so that an editable
        installation of the head is not what the base imports.
        """
        moved = {name: self._moved(value) for name, value in environment.items()}
        folders = [self._counterpart(folder) for folder in _import_folders(app)]
        paths = [str(folder) for folder in folders if folder is not None]
        paths += [moved["PYTHONPATH"]] if moved.get("PYTHONPATH") else []
        if paths:
            moved["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
        return moved

    def is_the_heads(self, path: str) -> bool:
        """Whether a file lies in the head's checkout and not in the base's."""
        place = Path(os.path.realpath(path))
        if place.is_relative_to(os.path.realpath(self.base)):
            return False
        return place.is_relative_to(os.path.realpath(self.head))

    def _moved(self, value: str) -> str:
        if str(self.head) not in value and os.path.realpath(self.head) not in value:
            return value
        parts = []
        for part in value.split(os.pathsep):
            found = self._counterpart(part) if os.path.isabs(part) else None
            parts.append(part if found is None else str(found))
        return os.pathsep.join(parts)

    def _counterpart(self, path: str) -> Path | None:
        """The same place in the base's worktree, None when it has none."""
        try:
            inside = Path(os.path.realpath(path)).relative_to(os.path.realpath(self.head))
        except ValueError:
            return None
        found = self.base / inside
        return found if found.exists() else None


def _import_folders(app: AppHost) -> list[str]:
    """The folders that the app imports its own modules from: those it looks in, and those it found modules in."""
    own = str(app.project.root)
    folders = dict.fromkeys(app.description.search)
    for name, file in app.description.modules.items():
        folder = Path(file).parent
        depth = name.count(".") + (Path(file).name == "__init__.py")
        if depth <= len(folder.parts):
            folders[str([folder, *folder.parents][depth])] = None
    return [folder for folder in folders if folder != own]
