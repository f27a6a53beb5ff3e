"""Changes of a project, and what each must run again: the ground of docs/identity.md.

`python tests/integration/mutations.py` writes the table into that page.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

#: What can run again. Judging is told from the report, the rest from what the app notes of its calls.
RETRIEVE, COUNT, GENERATE, JUDGE = "retrieve", "count_tokens", "generate", "judge"
EVERYTHING = (RETRIEVE, COUNT, GENERATE, JUDGE)
NOTHING: tuple[str, ...] = ()

#: The projects that are changed.
PLAIN, ROUNDABOUT, SHADOWING = "plain", "roundabout", "shadowing"

APP = '''"""An app that notes each call."""

import json
from pathlib import Path

import ranking
import wording
from oloproof import Passage, Retrieval, rag_system

HERE = Path(__file__).parent
LIMIT = 2
STYLE = "plain"


def note(what):
    with open(HERE / "calls.txt", "a") as file:
        file.write(what + "\\n")


class Base:
    def ordered(self, passages):
        return sorted(passages, key=lambda p: -p.score)


@rag_system(name="noting", version="1", depth=4, top_k=3, token_budget=50, index_version="one")
class Rag(Base):
    tone = "calm"

    def __init__(self):
        self.corpus = json.loads((HERE / "corpus.json").read_text())

    def retrieve(self, input, depth):
        note("retrieve")
        boost = float((HERE / "boost.txt").read_text())
        boost += 0 * sum(1 for _ in (HERE / "pages").iterdir())
        found = [Passage(d, boost * ranking.score(input["q"], t), t) for d, t in self.corpus.items()]
        return Retrieval(input["q"], depth, tuple(self.ordered(found)[: min(depth, LIMIT)]))

    def generate(self, input, context):
        note("generate")
        prompt = (HERE / "prompt.txt").read_text()
        return {"answer": wording.phrase(prompt + context[0].text + STYLE[:0] + self.tone[:0])}

    def count_tokens(self, passage):
        note("count_tokens")
        return self.measure(passage.text)

    def measure(self, text):
        return len(text.split())


def unused(text):
    return text
'''

_FILES = {
    "app.py": APP,
    "ranking.py": "def score(question, text):\n    return 1.0 + len(set(text))\n",
    "wording.py": "def phrase(text):\n    return text\n",
    "checks.py": """from pathlib import Path

def short(*, input, expected, output, context):
    return len(output['answer']) < int(Path(__file__).with_name("longest.txt").read_text())
""",
    "longest.txt": "500",
    "pages/first.md": "A page.\n",
    "make_index.sh": "echo an index > index.bin\n",
    "unrelated.py": "VALUE = 1\n",
    "corpus.json": json.dumps({"d1": "blue sky", "d2": "red rose"}),
    "boost.txt": "1.0",
    "prompt.txt": "The answer: ",
    "notes.md": "Nothing that matters.\n",
    "release.yaml": "{version: 1, rules: [{id: r, metric: correct, kind: observed_count, max_failures: 9}]}\n",
    "cases.jsonl": "".join(
        json.dumps(
            {
                "id": name,
                "input": {"q": f"what is {colour}?"},
                "expected": {"answer": colour, "relevant": [{"doc_id": doc}]},
                "metadata": {"topic": "colours"},
            }
        )
        + "\n"
        for name, colour, doc in (("one", "blue", "d1"), ("two", "red", "d2"))
    ),
    "oloproof.yaml": """version: 1
dataset: cases.jsonl
system: {rag: {object: "app:Rag"}}
evaluators:
  - {type: contains, criterion: correct, field: answer, expected_field: answer}
  - {type: hit_rate, k: 1}
  - {type: python, object: "checks:short", criterion: short}
slices: [metadata.topic]
execution: {workers: 1}
identity: {env: [MODEL]}
prepare: sh make_index.sh
""",
}

#: The same with roundabout ways to what decides a result. The folder `current` is a link.
ROUNDABOUT_APP = """
import importlib
from pathlib import Path

import sharing
from oloproof import Passage, Retrieval, rag_system

HERE = Path(__file__).parent


def note(what):
    with open(HERE / "calls.txt", "a") as file:
        file.write(what + "\\n")


@rag_system(name="roundabout", version="1", depth=4, top_k=3, token_budget=50, index_version="one")
class Rag:
    def retrieve(self, input, depth):
        note("retrieve")
        tone = (HERE / "current" / "tone.txt").read_text()
        sharing.remember(input["q"])
        return Retrieval(input["q"], depth, (Passage("d1", 1.0, "blue " + tone),))

    def generate(self, input, context):
        note("generate")
        words = [importlib.import_module(name).word() for name in ("plugins.po" + "lite", "tests.wo" + "rds")]
        return {"answer": context[0].text + sharing.remembered()[:0] + "".join(words)}

    def count_tokens(self, passage):
        note("count_tokens")
        return len(passage.text.split())
"""
_ROUNDABOUT_FILES = _FILES | {
    "app.py": ROUNDABOUT_APP,
    "sharing.py": """KEPT = [""]
kept = KEPT


def remember(question):
    kept[0] = question


def remembered():
    return KEPT[0]
""",
    "plugins/polite.py": "def word():\n    return 'please'\n",
    "tests/words.py": "def word():\n    return 'thanks'\n",
    "first/tone.txt": "calm",
    "second/tone.txt": "loud",
}

#: The same with modules from outside the project, some of which files of the project take the place of: `certifi` is
#: what `requests` imports, `random` what `statistics` does.
SHADOWING_APP = """
from pathlib import Path

import finding
import saying
from oloproof import Passage, Retrieval, rag_system

HERE = Path(__file__).parent


def note(what):
    with open(HERE / "calls.txt", "a") as file:
        file.write(what + "\\n")


@rag_system(name="shadowing", version="1", depth=4, top_k=3, token_budget=50, index_version="one")
class Rag:
    def retrieve(self, input, depth):
        note("retrieve")
        return Retrieval(input["q"], depth, (Passage("d1", finding.score(input["q"]), "blue sky"),))

    def generate(self, input, context):
        note("generate")
        return {"answer": saying.said(context[0].text)}

    def count_tokens(self, passage):
        note("count_tokens")
        return len(passage.text.split())
"""
_SHADOWING_FILES = _FILES | {
    "app.py": SHADOWING_APP,
    "finding.py": """import requests
import tabulate
import yaml


def score(question):
    return float(len(yaml.safe_load("[1, 2]")) + len(requests.certs.where()[:0]))
""",
    "saying.py": """import statistics

import certifi


def said(text):
    return certifi.told(text) + "!" * int(statistics.fmean([0, 0]))
""",
    "certifi.py": """def where():
    return "nowhere"


def contents():
    return ""


def told(text):
    return text
""",
    "random.py": """class Random:
    pass


def helped(seed):
    return 1
""",
}
FILES = {PLAIN: _FILES, ROUNDABOUT: _ROUNDABOUT_FILES, SHADOWING: _SHADOWING_FILES}


@dataclass(frozen=True)
class Mutation:
    """A change, in words and as an edit; what must run again; what the environment adds; and to which project."""

    what: str
    runs: tuple[str, ...]
    edit: Callable[[Path], None] = lambda folder: None
    env: dict[str, str] = field(default_factory=dict)
    project: str = PLAIN


def write_project(folder: Path, files: Mapping[str, str]) -> None:
    """Write a project as it is before any change."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if "first/tone.txt" in files:
        (folder / "current").symlink_to("first")


def _link_moved(folder: Path) -> None:
    (folder / "current").unlink()
    (folder / "current").symlink_to("second")


def _own_certificates_gone(folder: Path) -> None:
    (folder / "certifi.py").unlink()
    replaced("saying.py", "certifi.told(text)", "text")(folder)


def replaced(file: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        text = (folder / file).read_text()
        assert old in text, f"{old!r} is not in {file}"
        (folder / file).write_text(text.replace(old, new, 1))

    return edit


def appended(file: str, text: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        with (folder / file).open("a") as out:
            out.write(text)

    return edit


def _settings(setting: str) -> Callable[[Path], None]:
    return replaced("oloproof.yaml", 'object: "app:Rag"', f'object: "app:Rag", {setting}')


def _lines_reversed(folder: Path) -> None:
    lines = (folder / "cases.jsonl").read_text().splitlines(keepends=True)
    (folder / "cases.jsonl").write_text("".join(reversed(lines)))


def _reformatted(folder: Path) -> None:
    text = (folder / "app.py").read_text()
    text = text.replace("(self, input, context)", "(\n        self,\n        input,\n        context,\n    )")
    (folder / "app.py").write_text(text.replace('"retrieve"', "'retrieve'"))


def _moved(folder: Path) -> None:
    text = (folder / "app.py").read_text()
    start, end = text.index("def note"), text.index("class Base")
    (folder / "app.py").write_text(text[:start] + text[end:] + "\n\n" + text[start:end])


CODE = [
    Mutation(
        "the body of `retrieve`",
        (RETRIEVE, JUDGE),
        replaced("app.py", "min(depth, LIMIT)", "min(LIMIT, depth)"),
    ),
    Mutation(
        "the body of `generate`",
        (GENERATE, JUDGE),
        replaced("app.py", "prompt + context[0].text", "prompt + str(context[0].text)"),
    ),
    Mutation(
        "the body of `count_tokens`",
        (COUNT, JUDGE),
        replaced("app.py", "self.measure(passage.text)", "self.measure(str(passage.text))"),
    ),
    Mutation(
        "a method that only `count_tokens` calls",
        (COUNT, JUDGE),
        replaced("app.py", "text.split()", "text.split(None)"),
    ),
    Mutation(
        "a module that only `retrieve` uses",
        (RETRIEVE, JUDGE),
        replaced("ranking.py", "1.0 +", "0.0 + 1.0 +"),
    ),
    Mutation(
        "a module that only `generate` uses",
        (GENERATE, JUDGE),
        replaced("wording.py", "return text", "return str(text)"),
    ),
    Mutation(
        "a method of a base class that only `retrieve` calls",
        (RETRIEVE, JUDGE),
        replaced("app.py", "-p.score", "0 - p.score"),
    ),
    Mutation(
        "a global that only `retrieve` reads",
        (RETRIEVE, JUDGE),
        replaced("app.py", "LIMIT = 2", "LIMIT = 1 + 1"),
    ),
    Mutation(
        "a global that only `generate` reads", (GENERATE, JUDGE), replaced("app.py", '"plain"', '"fancy"')
    ),
    Mutation(
        "a class attribute that only `generate` reads",
        (GENERATE, JUDGE),
        replaced("app.py", '"calm"', '"loud"'),
    ),
    Mutation(
        "a function that every stage calls",
        EVERYTHING,
        replaced("app.py", 'what + "\\n"', '"" + what + "\\n"'),
    ),
    Mutation(
        "the constructor",
        EVERYTHING,
        replaced("app.py", "self.corpus = json", "self.other = 1\n        self.corpus = json"),
    ),
    Mutation(
        "what `retrieve` puts into a list that `generate` reads by another name",
        (RETRIEVE, GENERATE, JUDGE),
        replaced("sharing.py", "= question", "= question * 2"),
        project=ROUNDABOUT,
    ),
    Mutation(
        "a module that `generate` imports by a name made at run time",
        (GENERATE, JUDGE),
        replaced("plugins/polite.py", "please", "pray"),
        project=ROUNDABOUT,
    ),
    Mutation(
        "the same in a folder of tests",
        (GENERATE, JUDGE),
        replaced("tests/words.py", "thanks", "many thanks"),
        project=ROUNDABOUT,
    ),
    Mutation(
        "a new file `yaml.py` in the place of a package that only `retrieve` uses",
        (RETRIEVE, JUDGE),
        appended("yaml.py", "def safe_load(text):\n    return [3, 4]\n"),
        project=SHADOWING,
    ),
    Mutation(
        "a new file in the place of a module of the standard library",
        EVERYTHING,
        appended("statistics.py", "def fmean(data):\n    return 0.0\n"),
        project=SHADOWING,
    ),
    Mutation(
        "a new file that an installed package imports where there is one",
        EVERYTHING,
        appended("wcwidth.py", "def wcswidth(text):\n    return len(text)\n"),
        project=SHADOWING,
    ),
    Mutation(
        "a function in a file that takes the place of what an installed package needs",
        EVERYTHING,
        replaced("certifi.py", '"nowhere"', '"elsewhere"'),
        project=SHADOWING,
    ),
    Mutation(
        "the same file is gone",
        EVERYTHING,
        _own_certificates_gone,
        project=SHADOWING,
    ),
    Mutation(
        "a function in a file that takes the place of what the standard library needs",
        EVERYTHING,
        replaced("random.py", "return 1", "return 2"),
        project=SHADOWING,
    ),
    Mutation("a custom evaluator's function", (JUDGE,), replaced("checks.py", "< int", "<= int")),
]
SETTINGS = [
    Mutation("`system.name`", EVERYTHING, replaced("oloproof.yaml", "system: {", "system: {name: other, ")),
    Mutation(
        "`system.version`", EVERYTHING, replaced("oloproof.yaml", "system: {", 'system: {version: "2", ')
    ),
    Mutation("`index_version`", (RETRIEVE, JUDGE), _settings("index_version: two")),
    Mutation("`depth`", (RETRIEVE, JUDGE), _settings("depth: 3")),
    Mutation("`top_k`, no context changes", (JUDGE,), _settings("top_k: 2")),
    Mutation("`top_k`, contexts change", (GENERATE, JUDGE), _settings("top_k: 1")),
    Mutation("`token_budget`, no context changes", (JUDGE,), _settings("token_budget: 60")),
    Mutation("`token_budget`, contexts change", (GENERATE, JUDGE), _settings("token_budget: 3")),
    Mutation(
        "`top_k` in the decorator, no context changes", (JUDGE,), replaced("app.py", "top_k=3", "top_k=2")
    ),
    Mutation("a variable that `identity.env` names", EVERYTHING, env={"MODEL": "large"}),
    Mutation(
        "the `prepare` command", EVERYTHING, replaced("oloproof.yaml", "make_index.sh", "make_index.sh all")
    ),
    Mutation("a script that `prepare` runs", EVERYTHING, replaced("make_index.sh", "an index", "another")),
]
DATA = [
    Mutation(
        "a file that `retrieve` opens (with a warning)",
        EVERYTHING,
        replaced("boost.txt", "1.0", "1.00"),
    ),
    Mutation(
        "a file that the constructor opens (with a warning)",
        EVERYTHING,
        replaced("corpus.json", "blue sky", "blue sea"),
    ),
    Mutation(
        "a folder that `retrieve` lists gains a file (with a warning)",
        EVERYTHING,
        appended("pages/second.md", "Another page.\n"),
    ),
    Mutation(
        "a link to a folder in which `retrieve` opens a file leads to another (with a warning)",
        EVERYTHING,
        _link_moved,
        project=ROUNDABOUT,
    ),
    Mutation("a file that only `generate` opens", (GENERATE, JUDGE), replaced("prompt.txt", "The", "Our")),
    Mutation(
        "the input of one case",
        (RETRIEVE, GENERATE, JUDGE),
        replaced("cases.jsonl", "what is blue?", "what is very blue?"),
    ),
]
JUDGED = [
    Mutation("an expected value", (JUDGE,), replaced("cases.jsonl", '"answer": "blue"', '"answer": "sky"')),
    Mutation(
        "the relevant documents of a case",
        (JUDGE,),
        replaced("cases.jsonl", '"doc_id": "d1"', '"doc_id": "d9"'),
    ),
    Mutation(
        "a file that a custom evaluator opens",
        (JUDGE,),
        replaced("longest.txt", "500", "400"),
    ),
    Mutation(
        "an evaluator's settings",
        (JUDGE,),
        replaced("oloproof.yaml", "expected_field: answer", "expected_field: answer, ignore_case: true"),
    ),
]
NEUTRAL = [
    Mutation("nothing", NOTHING),
    Mutation("a comment", NOTHING, replaced("app.py", "LIMIT = 2", "# How many.\nLIMIT = 2  # at most")),
    Mutation(
        "a docstring",
        NOTHING,
        replaced("app.py", '"""An app that notes each call."""', '"""Another text."""'),
    ),
    Mutation("formatting", NOTHING, _reformatted),
    Mutation("the order of definitions", NOTHING, _moved),
    Mutation(
        "a function that nothing calls", NOTHING, replaced("app.py", "return text\n", "return text * 2\n")
    ),
    Mutation("nothing, with roundabout ways", NOTHING, project=ROUNDABOUT),
    Mutation("a module that nothing imports", NOTHING, replaced("unrelated.py", "1", "2")),
    Mutation("a file that no stage opens", NOTHING, appended("notes.md", "More.\n")),
    Mutation("metadata", NOTHING, replaced("cases.jsonl", "colours", "paint")),
    Mutation("a case's id", NOTHING, replaced("cases.jsonl", '"id": "one"', '"id": "first"')),
    Mutation("the order of cases", NOTHING, _lines_reversed),
    Mutation("a policy", NOTHING, replaced("release.yaml", "9", "8")),
    Mutation("slices", NOTHING, replaced("oloproof.yaml", "[metadata.topic]", "[relevant_position]")),
    Mutation("the number of workers", NOTHING, replaced("oloproof.yaml", "workers: 1", "workers: 2")),
    Mutation("a time limit", NOTHING, replaced("oloproof.yaml", "workers: 1", "timeout_seconds: 33")),
    Mutation("a variable that `identity.env` does not name", NOTHING, env={"OTHER": "x"}),
    Mutation(
        "the machine and its user",
        NOTHING,
        env={"HOSTNAME": "elsewhere", "HOME": "/nowhere", "USER": "nobody"},
    ),
]
GROUPS = {
    "Code": CODE,
    "Settings and environment": SETTINGS,
    "Data": DATA,
    "What judges": JUDGED,
    "Nothing that matters": NEUTRAL,
}

PAGE = Path(__file__).parents[2] / "docs" / "identity.md"
BEGIN, END = "<!-- generated by tests/integration/mutations.py: begin -->", "<!-- generated: end -->"


def table() -> str:
    """The table of docs/identity.md."""
    lines = ["| changed | retrieve | count_tokens | generate | judge |", "|---|:-:|:-:|:-:|:-:|"]
    for group, mutations in GROUPS.items():
        lines.append(f"| **{group}** | | | | |")
        for mutation in mutations:
            marks = " | ".join("runs" if part in mutation.runs else "–" for part in EVERYTHING)
            lines.append(f"| {mutation.what} | {marks} |")
    return "\n".join(lines)


def page_with_table(page: str) -> str:
    """The page's text with the table as it should be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"Wrote {PAGE}", file=sys.stderr)
