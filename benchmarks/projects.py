"""Projects to measure on: copies of examples/support_rag, as it stands or with more cases."""

from __future__ import annotations

import json
import re
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


def open_a_file(project: Path) -> Path:
    """Have each retrieval of the example read a small file of the project."""
    app = project / "app.py"
    head = "    def retrieve(self, input, depth):\n"
    before, found, after = app.read_text(encoding="utf-8").partition(head)
    if not found:
        raise ValueError(f"{app} has no line {head!r}")
    app.write_text(f"{before}{head}        open('note.txt').read()\n{after}", encoding="utf-8")
    (project / "note.txt").write_text("read by each retrieval\n", encoding="utf-8")
    return project


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


#: A module of a made-up project; {n} is its number, {above} and {below} those of modules it uses.
_MODULE = '''"""Part {n} of a made-up project."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from project.part{above} import Score{above}, rank_{above}
from project import part{below}

LOG = logging.getLogger(__name__)
WORD = re.compile(r"\\w+")
WEIGHTS = {{"title": 2.0, "body": 1.0, "part": {n}.0}}


@dataclass(frozen=True)
class Score{n}:
    """A score and where it comes from."""

    value: float
    source: str = "part{n}"
    details: dict[str, float] = field(default_factory=dict)

    def combined(self, other: Score{n}, weight: float = 0.5) -> Score{n}:
        """A weighted mean of two scores."""
        value = self.value * weight + other.value * (1.0 - weight)
        return Score{n}(round(value, 6), self.source, {{**self.details, **other.details}})


class Index{n}:
    """Finds texts by the words in them."""

    limit = {n} + 10

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = list(texts)
        self._words: dict[str, set[int]] = {{}}
        for number, text in enumerate(self._texts):
            for word in WORD.findall(text.lower()):
                self._words.setdefault(word, set()).add(number)

    def find(self, question: str, depth: int) -> list[tuple[str, Score{n}]]:
        """The best texts for a question."""
        counts: dict[int, float] = {{}}
        for word in WORD.findall(question.lower()):
            for number in self._words.get(word, ()):
                counts[number] = counts.get(number, 0.0) + WEIGHTS["body"]
        best = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[: min(depth, self.limit)]
        return [(self._texts[number], Score{n}(count)) for number, count in best]

    def explain(self, question: str) -> str:
        try:
            found = self.find(question, 1)
            return json.dumps({{"text": found[0][0], "score": found[0][1].value}})
        except IndexError:
            LOG.warning("nothing found for %s", question)
            return "{{}}"


def rank_{n}(scores: list[float], boost: float = 1.0) -> list[float]:
    """Scores in order, the highest first."""
    if not scores:
        return []
    highest = max(scores)
    ranked = [boost * score / highest for score in sorted(scores, reverse=True)]
    return ranked if boost < 2 else rank_{above}(ranked, 1.0)


def mixed_{n}(left: list[float], right: list[float]) -> float:
    total = 0.0
    for one, other in zip(left, right, strict=False):
        total += one * other if one > 0 else part{below}.WEIGHTS["title"]
    first = Score{above}(total)
    return first.value + sum(rank_{above}(left)[:3])
'''
_APP = '''"""The app of a made-up project."""

from oloproof import Passage, Retrieval, rag_system
{imports}


@rag_system(name="large", version="1", depth=5, top_k=2, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        found = part0.Index0([input]).find(input, depth)
        return Retrieval(input, depth, tuple(Passage(text, score.value, text) for text, score in found))

    def generate(self, input, context):
        return {{"answer": str(part1.mixed_1([1.0], [part2.rank_2([1.0])[0]]))}}
'''


def many_modules(folder: Path, count: int) -> Path:
    """A project with that many modules of 80 lines, all of which its app imports."""
    (folder / "project").mkdir(parents=True)
    (folder / "project" / "__init__.py").touch()
    for number in range(count - 1):
        text = _MODULE.format(n=number, above=(number - 1) // 3, below=(number - 1) // 7)
        if number == 0:
            text = "".join(line for line in text.splitlines(keepends=True) if "project" not in line[:13])
            text = text.replace("-1", "0")
        (folder / "project" / f"part{number}.py").write_text(text, encoding="utf-8")
    imports = "\n".join(f"from project import part{number}" for number in range(count - 1))
    (folder / "app.py").write_text(_APP.format(imports=imports), encoding="utf-8")
    return folder


_OWN_APP = """\
from oloproof import Passage, Retrieval, rag_system

from engine.cli import main
from engine.workplace import evaluate, foreseen


@rag_system(name="own", version="1", depth=3, top_k=1)
class Rag:
    def retrieve(self, input, depth):
        foreseen(input, depth, None)
        return Retrieval(input, depth, (Passage("a", 1.0, "b"),))

    def generate(self, input, context):
        evaluate(input)
        return {"answer": main([input])}
"""


def own_engine(folder: Path) -> Path:
    """A project as people write them: our own engine under another name, nearly all of which its app reaches."""
    source = Path(__file__).resolve().parent.parent / "oloproof"
    for file in source.rglob("*.py"):
        target = folder / "engine" / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            re.sub(r"\boloproof\b", "engine", file.read_text(encoding="utf-8")), encoding="utf-8"
        )
    (folder / "app.py").write_text(_OWN_APP, encoding="utf-8")
    return folder
