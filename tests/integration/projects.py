"""Small projects, the command line that is run on them, and what is left behind afterwards."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

#: A system that finds two passages and answers with the text of the first.
APP = """
from oloproof import Passage, Retrieval, rag_system

@rag_system(name="small", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        found = (Passage(doc_id="d1", score=2.0, text="blue"), Passage(doc_id="d2", score=1.0, text="red"))
        return Retrieval(query=input, depth=depth, candidates=found[:depth])

    def generate(self, input, context):
        return {"answer": context[0].text, "citations": [context[0].doc_id]}
"""

CONFIG: dict[str, Any] = {
    "version": 1,
    "dataset": "cases.jsonl",
    "system": {"rag": {"object": "app:Rag"}},
    "evaluators": [
        {"type": "contains", "criterion": "correct", "field": "answer", "expected_field": "answer"},
        {"type": "hit_rate", "k": 1},
    ],
}


#: A policy for one run, and one for a pair.
RELEASE = "{version: 1, rules: [{id: none-wrong, metric: correct, kind: observed_count, max_failures: 1}]}"
COMPARE = "{version: 1, rules: [{id: none-new, metric: correct, kind: new_failures, max: 0}]}"
DIAGNOSE = ("diagnose", "latest", "--intervention", "gold-context", "--criterion", "correct")

#: A system that takes its time over each answer, and notes each.
SLOW = """
import time
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

@rag_system(name="slow", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        return Retrieval(query=input, depth=depth, candidates=(Passage(doc_id="d1", score=1.0, text="blue"),))

    def generate(self, input, context):
        with Path(__file__).with_name("calls.txt").open("a") as file:
            file.write("generate\\n")
        time.sleep(0.2)
        return {"answer": context[0].text}
"""


def case(case_id: str, answer: str = "blue", **more: Any) -> dict[str, Any]:
    """A case that the small system passes, unless another answer is expected."""
    return {
        "id": case_id,
        "input": {"question": case_id},
        "expected": {"answer": answer, "relevant": [{"doc_id": "d1"}]},
        **more,
    }


CASES = [case("one"), case("two"), case("three", "green")]


@dataclass(frozen=True)
class Finished:
    """A command that came to its end."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()

    @property
    def record(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.stdout)


def command(*arguments: str | Path) -> list[str]:
    """The command line that runs oloproof in this interpreter, warnings being errors."""
    return [sys.executable, "-W", "error", "-m", "oloproof", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    """This process's environment without what would change how a command prints."""
    dropped = ("COLUMNS", "LINES", "PYTHONIOENCODING", "PYTHONUTF8", "NO_COLOR", "FORCE_COLOR")
    return {name: value for name, value in os.environ.items() if name not in dropped} | more


Oloproof = Callable[..., Finished]


MakeProject = Callable[..., Path]


def stored_runs(folder: Path) -> int:
    """How many runs the store of a project holds; none where there is no store."""
    path = folder / ".oloproof" / "store.sqlite3"
    if not path.exists():
        return 0
    connection = sqlite3.connect(path)
    try:
        (count,) = connection.execute("SELECT count(*) FROM run").fetchone()
    finally:
        connection.close()
    return int(count)


def marked_processes(marker: str) -> list[str]:
    """The processes, zombies aside, whose environment or command line holds a marker: `pid command`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
            text = line + (folder / "environ").read_bytes()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if marker.encode() in text and state != "Z" and int(folder.name) != os.getpid():
            found.append(f"{folder.name} {line.decode(errors='replace')}")
    return found


def noted(folder: Path, keep: bool = False) -> dict[str, int]:
    """How often each part of the app was called since the last look; with `keep`, this is none."""
    path = folder / "calls.txt"
    lines = path.read_text().split() if path.exists() else []
    if not keep:
        path.unlink(missing_ok=True)
    return {name: lines.count(name) for name in dict.fromkeys(lines)}
