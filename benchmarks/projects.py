"""Projects to measure on: copies of examples/support_rag, as it stands or with more cases."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "support_rag"
CASE_FILE = Path("data") / "support.jsonl"


def copy_example(folder: Path) -> Path:
    """The example as it stands, with its 13 cases."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".oloproof", "__pycache__"))
    return folder


def enlarge_example(folder: Path, cases: int) -> Path:
    """The example with `cases` cases, no two of which ask the same question."""
    copy_example(folder)
    lines = (EXAMPLE / CASE_FILE).read_text(encoding="utf-8").splitlines()
    with (folder / CASE_FILE).open("w", encoding="utf-8") as file:
        for number in range(cases):
            case = json.loads(lines[number % len(lines)])
            case["id"] += f"_{number}"
            case["input"]["question"] += f" (ticket {number})"
            file.write(json.dumps(case) + "\n")
    return folder


def forget(folder: Path) -> None:
    """Remove the project's store."""
    shutil.rmtree(folder / ".oloproof", ignore_errors=True)
