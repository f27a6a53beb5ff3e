"""Data that reaches a stage in a roundabout way counts all the same, and what cannot be seen is said."""

from __future__ import annotations

import json
import subprocess

import pytest
from projects import MakeProject, Oloproof, case

APP = """
import os, subprocess, sys
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

HERE = Path(__file__).parent

@rag_system(name="small", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        os.chdir(HERE)
        text = {code}
        return Retrieval(query=input, depth=depth, candidates=(Passage(doc_id="d1", score=1.0, text=text),))

    def generate(self, input, context):
        return {{"answer": context[0].text}}
"""
WAYS = {
    "a program that is started": (
        "subprocess.run(['cat', 'text.txt'], stdout=-1, text=True).stdout",
        "echo new > text.txt",
    ),
    "a script of the project": (
        "subprocess.run([sys.executable, 'job'], stdout=-1, text=True).stdout",
        "echo 'print(2)' > job",
    ),
    "a look whether it is there": ("str(Path('flag').exists())", "touch flag"),
    "a linked folder": ("Path('current/text.txt').read_text()", "ln -sfn v2 current"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_read_through(make_project: MakeProject, quick: Oloproof, way: str) -> None:
    code, change = WAYS[way]
    files = {"text.txt": "blue", "job": "print(1)", "v1/text.txt": "blue", "v2/text.txt": "new"}
    folder = make_project(APP.format(code=code), files=files)
    (folder / "current").symlink_to("v1")
    quick("run", cwd=folder)
    assert "Stages: retrieve 0 hit/0 miss; generate 0 hit/0 miss" in quick("run", cwd=folder).lines
    subprocess.run(change, shell=True, cwd=folder, check=True)
    again = quick("run", cwd=folder)
    assert "Stages: retrieve 0 hit/3 miss; generate 0 hit/3 miss" in again.lines
    assert "3 stored retrievals did not count and ran again" in again.stdout


def test_programs_are_named_in_a_warning_also_when_all_is_stored(
    make_project: MakeProject, quick: Oloproof
) -> None:
    folder = make_project(
        APP.format(code="subprocess.run(['echo', 'blue'], stdout=-1, text=True).stdout.strip()")
    )
    unseen = "changes to files that other programs read are not seen; see docs/identity.md"
    for _ in range(2):
        assert f"Warning: the code started echo: {unseen}" in quick("run", cwd=folder).lines


def test_when_each_case_reads_a_file_of_its_own(make_project: MakeProject, quick: Oloproof) -> None:
    code = "Path('docs', input['question']).read_text()"
    names = [f"{n:03}" for n in range(300)]
    folder = make_project(
        APP.format(code=code),
        cases=[case(name) for name in names],
        files={f"docs/{name}": "blue" for name in names},
    )
    quick("run", cwd=folder)
    assert (folder / ".oloproof" / "store.sqlite3").stat().st_size < 1_500_000
    (folder / "docs" / "150").write_text("grey")
    again = quick("run", "--json", cwd=folder).record["run"]
    assert again["stale"]["files"] == ["docs/150"]
    assert 100 < again["cache"]["execution"][0] < 200
    assert again["metrics"][0]["total"] == 299


def test_patterns_start_where_the_configuration_stands(make_project: MakeProject, quick: Oloproof) -> None:
    code = "Path('usage.json').read_text() and Path('../shared.txt').read_text()"
    top = make_project()
    folder = top / "services" / "rag"
    folder.mkdir(parents=True)
    (folder / "app.py").write_text(APP.format(code=code))
    (folder / "usage.json").write_text("1")
    (folder.parent / "shared.txt").write_text("blue")
    (folder / "cases.jsonl").write_text((top / "cases.jsonl").read_text())
    settings = json.loads((top / "oloproof.yaml").read_text())
    settings["identity"] = {"ignore_files": ["usage*.json"]}
    (folder / "oloproof.yaml").write_text(json.dumps(settings))
    subprocess.run(["git", "init", "-q"], cwd=top, check=True)
    quick("run", cwd=folder)
    (folder / "usage.json").write_text("2")
    assert "Stages: retrieve 0 hit/0 miss; generate 0 hit/0 miss" in quick("run", cwd=folder).lines
    (folder.parent / "shared.txt").write_text("grey")
    assert "Warning: ../shared.txt changed and index_version is still 1" in quick("run", cwd=folder).stdout
    settings["identity"] = {"ignore_files": ["usage*.json", "../*.txt"]}
    (folder / "oloproof.yaml").write_text(json.dumps(settings))
    (folder.parent / "shared.txt").write_text("green")
    assert "Warning" not in quick("run", cwd=folder).stdout


def test_a_file_that_is_edited_while_it_is_used_is_not_trusted_again(
    make_project: MakeProject, quick: Oloproof
) -> None:
    code = "Path('text.txt').read_text() + str(os.utime('text.txt', ns=(1, 1)) or '')"
    folder = make_project(APP.format(code=code), files={"text.txt": "blue"}, cases=[case("one")])
    quick("run", cwd=folder)
    assert "retrieve 0 hit/1 miss" in quick("run", cwd=folder).stdout
    assert "retrieve 0 hit/0 miss" in quick("run", cwd=folder).stdout


KEEPING = """
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

@rag_system(name="small", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def __init__(self):
        self.kept = None

    def text(self):
        if self.kept is None:
            self.kept = Path(__file__).with_name("text.txt").read_text()
        return self.kept

    def retrieve(self, input, depth):
        return Retrieval(query=1, depth=depth, candidates=(Passage(doc_id="d1", score=1.0, text=self.text()),))

    def generate(self, input, context):
        return {"answer": self.text()}
"""


def test_what_an_earlier_call_has_read_and_kept_counts(make_project: MakeProject, quick: Oloproof) -> None:
    folder = make_project(KEEPING, files={"text.txt": "blue"})
    quick("run", cwd=folder)
    (folder / "text.txt").write_text("grey")
    assert "Stages: retrieve 0 hit/3 miss; generate 0 hit/3 miss" in quick("run", cwd=folder).lines


def test_also_when_it_was_read_by_a_later_stage(make_project: MakeProject, quick: Oloproof) -> None:
    folder = make_project(KEEPING, files={"text.txt": "blue"}, cases=[case("one")], execution={"workers": 1})
    quick("run", cwd=folder)
    (folder / "app.py").write_text(KEEPING.replace('{"answer": self', '{"more": 1, "answer": self'))
    cases = (folder / "cases.jsonl").read_text()
    (folder / "cases.jsonl").write_text(cases + cases.replace("one", "two"))
    assert "Stages: retrieve 1 hit/1 miss; generate 0 hit/2 miss" in quick("run", cwd=folder).lines
    (folder / "text.txt").write_text("grey")
    assert "Stages: retrieve 0 hit/2 miss; generate 0 hit/2 miss" in quick("run", cwd=folder).lines
