"""What a worker tells of an app once it has imported it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oloproof.contract import SystemSettings


@dataclass(frozen=True)
class Description:
    """An app that was imported: the settings of its class, whether that has a method count_tokens, the project's
    modules that came with it and their files, the folders in which it finds modules of the project, the names there
    that something installed has too, and Python's minor version."""

    declared: SystemSettings
    counts_tokens: bool
    modules: Mapping[str, str]
    search: Sequence[str]
    installed: frozenset[str]
    python: str

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Description:
        """The value of the worker's reply, which `worker.replies` has checked."""
        return cls(
            declared=SystemSettings(**told["settings"]),
            counts_tokens=told["counts_tokens"],
            modules=told["modules"],
            search=told["search"],
            installed=frozenset(told["installed"]),
            python=told["python"],
        )
