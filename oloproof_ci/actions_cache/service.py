"""What both versions of the cache service do for us."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Entry:
    """A cache entry that was found: its key as the service gives it, and where its archive can be loaded."""

    key: str
    url: str


class CacheService(Protocol):
    """One version of the service. Every method raises CacheProblem."""

    def find(self, keys: Sequence[str], version: str) -> Entry | None:
        """The newest entry for the first key that matches, each also as the beginning of an entry's key."""

    def save(self, key: str, version: str, archive: Path) -> bool:
        """Save an archive; False when there is an entry of this key already."""
