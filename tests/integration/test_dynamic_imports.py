"""Modules that a stage imports by a name made at run time: whatever it is, an edit of it runs the stage again."""

from __future__ import annotations

import py_compile

import pytest
from projects import MakeProject, Oloproof

APP = """
import importlib, importlib.util, pkgutil, runpy, sys
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

HERE = Path(__file__).parent

def file_module(place):
    spec = importlib.util.spec_from_file_location("loaded", HERE / place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def from_folder(folder, name):
    sys.path.insert(0, str(HERE / folder))
    return importlib.import_module(name)

@rag_system(name="dynamic", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        return Retrieval(query=input, depth=depth, candidates=(Passage(doc_id="d1", score=1.0, text="blue"),))

    def generate(self, input, context):
        return {"answer": IMPORT.word()}
"""
#: How a module is imported, and where it lies.
WAYS = {
    "a plain module": ("importlib.import_module('plug' + 'in')", "plugin.py"),
    "a module that is called as a test": ("importlib.import_module('test' + '_words')", "test_words.py"),
    "a module called setup": ("__import__('set' + 'up')", "setup.py"),
    "a module called conftest": ("importlib.import_module('conf' + 'test')", "conftest.py"),
    "a module in a folder of tests": ("importlib.import_module('tests.' + 'words')", "tests/words.py"),
    "found by pkgutil": (
        "[importlib.import_module(m.name) for m in pkgutil.iter_modules([HERE]) if 'words' in m.name][0]",
        "test_words.py",
    ),
    "a file whose name is no name": ("file_module('my-plugin.py')", "my-plugin.py"),
    "a file with a dot in its name": ("file_module('words.new.py')", "words.new.py"),
    "a folder whose name is no name": ("from_folder('my-plugins', 'wor' + 'ds')", "my-plugins/words.py"),
    "run as a program": (
        "type('M', (), {'word': runpy.run_path(str(HERE / 'test_words.py'))['word']})",
        "test_words.py",
    ),
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_an_edit_of_what_is_imported_runs_the_stage_again(
    make_project: MakeProject, quick: Oloproof, way: str
) -> None:
    expression, place = WAYS[way]
    folder = make_project(
        APP.replace("IMPORT", expression), files={place: "def word():\n    return 'blue'\n"}
    )
    assert "Stages: retrieve 0 hit/3 miss; generate 0 hit/3 miss" in quick("run", cwd=folder).lines
    assert "Stages: retrieve 0 hit/0 miss; generate 0 hit/0 miss" in quick("run", cwd=folder).lines
    (folder / place).write_text("def word():\n    return 'green'\n")
    done = quick("run", cwd=folder)
    assert "generate 0 hit/3 miss" in done.stdout
    shown = quick("inspect", "latest", "--case", "one", "--json", cwd=folder).record
    assert shown["output"] == {"answer": "green"}


@pytest.mark.parametrize("place", ["words.new.py", "my-words.py", "tests/words.py", "conftest.py"])
def test_an_edit_of_what_the_app_loads_by_path_while_it_is_imported_runs_the_stages_again(
    make_project: MakeProject, quick: Oloproof, place: str
) -> None:
    way = f"LOADED = file_module({place[:3]!r} + {place[3:]!r})\n\n@rag_system"
    app = APP.replace("IMPORT", "LOADED").replace("@rag_system", way)
    folder = make_project(app, files={place: "def word():\n    return 'blue'\n"})
    quick("run", cwd=folder)
    assert "Stages: retrieve 0 hit/0 miss; generate 0 hit/0 miss" in quick("run", cwd=folder).lines
    (folder / place).write_text("def word():\n    return 'green'\n")
    assert "generate 0 hit/3 miss" in quick("run", cwd=folder).stdout


def test_an_edit_of_a_test_that_nothing_imports_runs_nothing(
    make_project: MakeProject, quick: Oloproof
) -> None:
    expression, place = WAYS["a plain module"]
    files = {place: "def word():\n    return 'blue'\n", "tests/test_words.py": "def test_it(): pass\n"}
    folder = make_project(APP.replace("IMPORT", expression), files=files)
    quick("run", cwd=folder)
    (folder / "tests" / "test_words.py").write_text("def test_it(): assert 1\n")
    assert "Stages: retrieve 0 hit/0 miss; generate 0 hit/0 miss" in quick("run", cwd=folder).lines


def test_what_is_imported_with_a_compiled_file_at_hand_is_seen_too(
    make_project: MakeProject, quick: Oloproof
) -> None:
    expression, place = WAYS["a module in a folder of tests"]
    folder = make_project(
        APP.replace("IMPORT", expression), files={place: "def word():\n    return 'blue'\n"}
    )
    py_compile.compile(str(folder / place), doraise=True)
    quick("run", cwd=folder)
    (folder / place).write_text("def word():\n    return 'green'\n")
    assert "generate 0 hit/3 miss" in quick("run", cwd=folder).stdout
