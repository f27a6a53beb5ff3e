"""Projects to measure on: copies of examples/support_rag, as it stands or with more cases."""

from __future__ import annotations

import json
import shutil
from collections.abc import Container
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "support_rag"
CASE_FILE = Path("data") / "support.jsonl"
#: The ids of the example's cases that fail.
FAILING = frozenset({"refund_review", "money_back", "seat_count", "security_review"})


def copy_example(folder: Path) -> Path:
    """The example as it stands, with its 13 cases."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".oloproof", "__pycache__"))
    return folder


def enlarge_example(folder: Path, cases: int, only: Container[str] | None = None) -> Path:
    """The example with `cases` cases, no two of which ask the same question; made from all of its own or `only` those
    with these ids."""
    copy_example(folder)
    lines = (EXAMPLE / CASE_FILE).read_text(encoding="utf-8").splitlines()
    chosen = [line for line in lines if only is None or json.loads(line)["id"] in only]
    with (folder / CASE_FILE).open("w", encoding="utf-8") as file:
        for number in range(cases):
            case = json.loads(chosen[number % len(chosen)])
            case["id"] += f"_{number}"
            case["input"]["question"] += f" (ticket {number})"
            file.write(json.dumps(case) + "\n")
    return folder


def forget(folder: Path) -> None:
    """Remove the project's store."""
    shutil.rmtree(folder / ".oloproof", ignore_errors=True)


def keep_store(folder: Path) -> None:
    """Put a copy of the project's store aside."""
    shutil.copytree(folder / ".oloproof", folder / "kept", dirs_exist_ok=True)


def restore_store(folder: Path) -> None:
    """Put the copy in the place of the store."""
    forget(folder)
    shutil.copytree(folder / "kept", folder / ".oloproof")
