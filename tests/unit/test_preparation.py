"""What the command of `prepare` depends on: its text, the scripts it runs, and what those run and import."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest
from test_fingerprint import facts

from oloproof.identity.fingerprint import script_ingredients
from oloproof.identity.preparation import Preparation

FILES = {
    "build.py": """
        import json
        from chunking import pieces
        def main():
            text = open("data/corpus.txt").read()
            json.dump(pieces(text), open("index.json", "w"))
        if __name__ == "__main__":
            main()
        """,
    "chunking.py": """
        SIZE = 3
        def pieces(text):
            return text[:SIZE]
        def unused():
            return 1
        """,
    "data/corpus.txt": "blue sky",
    "data/other.txt": "red rose",
    "scripts/all.sh": "#!/bin/sh\ncd scripts && ./first.sh\npython -m jobs.second data/other.txt\n",
    "scripts/first.sh": "echo one\n",
    "jobs/__init__.py": "LEVEL = 1\n",
    "jobs/second.py": "from . import third\nthird.work()\n",
    "jobs/third.py": "def work(): return 1\n",
    "Makefile": "index:\n\tpython build.py README.md\n",
    "README.md": "What is here.\n",
    "index.json": "[]",
    ".venv/pyvenv.cfg": "",
    ".venv/bin/tool.py": "x = 1\n",
}
TRACKED = frozenset(FILES) - {"index.json", ".venv/pyvenv.cfg", ".venv/bin/tool.py"}

Edit = Callable[..., bool]


@pytest.fixture
def edit(tmp_path: Path) -> Edit:
    """Whether the identity of a command differs once a text in a file is replaced."""

    def identity(command: str, tracked: frozenset[str] | None) -> Mapping[str, str]:
        def code_of(file: Path, module: str) -> dict[str, str]:
            return dict(script_ingredients(str(file), module, [str(tmp_path)], "3.11", facts))

        knows = None if tracked is None else tracked.__contains__
        return Preparation(tmp_path, tmp_path, knows, code_of).ingredients(command)

    def edit(command: str, file: str, old: str, new: str, tracked: frozenset[str] | None = TRACKED) -> bool:
        for name, text in FILES.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(dedent(text).lstrip("\n"))
        before = identity(command, tracked)
        text = (tmp_path / file).read_text()
        assert old in text
        (tmp_path / file).write_text(text.replace(old, new))
        return identity(command, tracked) != before

    return edit


@pytest.mark.parametrize(
    ("command", "file", "old", "new"),
    [
        ("python build.py", "build.py", "json.dump(pieces(text)", "json.dump(pieces(text + '.')"),
        ("python3 -O ./build.py --fast", "build.py", "main()\n", "main(); main()\n"),
        ("python build.py", "chunking.py", "SIZE = 3", "SIZE = 4"),
        ("python build.py", "chunking.py", "text[:SIZE]", "text[-SIZE:]"),
        ("python build.py", "data/corpus.txt", "blue", "green"),
        ('python "$PWD/build.py"', "build.py", "main()\n", "main(); main()\n"),
        ("python build.py --from=data/other.txt", "data/other.txt", "red", "blue"),
        ("cd scripts && sh first.sh", "scripts/first.sh", "one", "two"),
        ("sh scripts/all.sh", "scripts/all.sh", "cd scripts", "cd scripts;"),
        ("sh scripts/all.sh", "scripts/first.sh", "one", "two"),
        ("sh scripts/all.sh", "data/other.txt", "red", "blue"),
        ("sh scripts/all.sh", "jobs/second.py", "third.work()", "third.work(), 1"),
        ("python -m jobs.second", "jobs/second.py", "third.work()", "third.work(), 1"),
        ("python -m jobs.second", "jobs/third.py", "return 1", "return 2"),
        ("make index", "Makefile", "build.py", "build.py -v"),
        ("make index", "build.py", "main()\n", "main(); main()\n"),
    ],
)
def test_what_decides_what_the_command_makes_counts(
    edit: Edit, command: str, file: str, old: str, new: str
) -> None:
    assert edit(command, file, old, new)


@pytest.mark.parametrize(
    ("command", "file", "old", "new"),
    [
        ("python build.py", "build.py", "import json\n", "import json\n# A comment.\n"),
        ("python build.py", "chunking.py", "return 1", "return 2"),
        ("python build.py", "data/other.txt", "red", "blue"),
        ("python build.py", "index.json", "[]", "[1]"),
        ("python build.py > index.json", "index.json", "[]", "[1]"),
        ("python build.py", "jobs/third.py", "return 1", "return 2"),
        (".venv/bin/python .venv/bin/tool.py", ".venv/bin/tool.py", "1", "2"),
        ("make index", "README.md", "here", "there"),
        ("echo done", "build.py", "json", "json"),
    ],
)
def test_what_decides_nothing_does_not_count(edit: Edit, command: str, file: str, old: str, new: str) -> None:
    assert not edit(command, file, old, new)


def test_without_git_only_scripts_count_since_the_rest_may_be_what_the_command_makes(edit: Edit) -> None:
    assert not edit("python build.py > index.json", "index.json", "[]", "[1]", None)
    assert edit("python build.py > index.json", "build.py", "main()\n", "main(); main()\n", None)


def test_a_script_that_is_no_python_counts_as_it_is(edit: Edit) -> None:
    assert edit("sh scripts/first.sh", "scripts/first.sh", "one", "one # a comment")


def test_a_script_with_an_error_in_it_counts_as_it_is(edit: Edit) -> None:
    assert edit("python build.py", "build.py", "def main():", "def main(:")
