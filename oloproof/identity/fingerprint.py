"""The code fingerprint of each stage: what of the project's code the stage's result depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from oloproof.canonical import digest


@dataclass(frozen=True)
class Fingerprints:
    """Hex digests of the code behind each stage."""

    retrieve: str
    generate: str
    count_tokens: str


def stage_fingerprints(modules: Mapping[str, str], python: str) -> Fingerprints:
    """Fingerprints from the project's own imported modules (name -> source file) and Python's minor version.

    Every module counts for every stage. File names do not count, so that two checkouts agree.
    Raises OSError when a source file cannot be read.
    """
    parts: list[str | bytes] = ["code", python]
    for name in sorted(modules):
        parts += [name, Path(modules[name]).read_bytes()]
    whole = digest(*parts).hex()
    return Fingerprints(whole, whole, whole)
