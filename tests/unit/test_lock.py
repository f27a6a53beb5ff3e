"""The image installs what pyproject.toml asks for, at versions that are known by their hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKED = {
    canonicalize_name(entry[1]): entry
    for entry in re.finditer(
        r"^([\w.-]+)==(\S+)(?: ;[^\\\n]*?)?((?: \\\n    --hash=sha256:[0-9a-f]{64})*)$",
        (ROOT / "requirements.lock").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}


@pytest.mark.parametrize(
    "wanted", [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["container"]]
)
def test_every_dependency_is_locked_at_a_version_that_will_do(wanted: str) -> None:
    requirement = Requirement(wanted)
    locked = LOCKED.get(canonicalize_name(requirement.name))
    assert locked is not None, f"{wanted} is not in requirements.lock: make lock"
    assert locked[2] in requirement.specifier, f"{wanted}: {locked[2]} is locked: make lock"


def test_every_locked_package_is_known_by_its_hashes() -> None:
    assert len(LOCKED) > 15
    assert [name for name, entry in LOCKED.items() if not entry[3]] == []
