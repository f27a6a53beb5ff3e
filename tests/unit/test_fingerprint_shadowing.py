"""Modules of the project that stand in the place of others: whoever imports one of those calls the project's code."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_fingerprint import ALL, BOTH, GENERATE, NONE, Project, app, changed, project
from test_fingerprint_packages import APART, versions

from oloproof.identity.fingerprint import CodeIdentity, PackageFacts
from oloproof.worker.surroundings import also_installed

__all__ = ["project"]  # a fixture


def facts(**chosen: str) -> PackageFacts:
    """As `versions`; a module `np` comes from numpy, and `tool` from a distribution that nobody needs."""
    found = versions(**{"tool": "1", **chosen})
    return PackageFacts({**found.providers, "np": ["numpy"]}, found.versions, found.requires)


def identity(project: Project, *imported: str, installed: str = "", **chosen: str) -> CodeIdentity:
    names = frozenset(installed.split())
    return project.identity(
        imported=("app", *imported), packages=lambda names: facts(**chosen), installed=names
    )


@pytest.mark.parametrize("file", ["random.py", "random/__init__.py"])
def test_a_name_of_the_standard_library_counts_for_every_stage(project: Project, file: str) -> None:
    """Though no module of the project imports it, and the app has not yet."""
    project.write(APART)
    before = identity(project)
    project.write({file: "def choice(x):\n    return x\n"})
    new = identity(project)
    assert changed(before, new) == BOTH
    project.write({file: "def choice(x):\n    return x[0]\n"})
    newer = identity(project)
    assert changed(new, newer) == BOTH
    project.write({file: "# a comment\ndef choice(x): return x[0]\n"})
    assert changed(newer, identity(project)) == NONE


def test_what_such_a_module_uses_counts_too(project: Project) -> None:
    project.write(
        {**APART, "random.py": "from helping import choice\n", "helping.py": "def choice(x): return 1\n"}
    )
    before = identity(project)
    project.write({"helping.py": "def choice(x): return 2\n"})
    assert changed(before, identity(project)) == BOTH


@pytest.mark.parametrize("file", ["data/random.py", "random.txt", "random/data.csv"])
def test_what_takes_no_place_counts_for_none(project: Project, file: str) -> None:
    project.write(APART)
    before = identity(project)
    project.write({file: "x = 1"})
    assert changed(before, identity(project)) == NONE


def test_a_module_that_a_used_package_needs_counts(project: Project) -> None:
    """`faiss` needs `numpy`, which has a module `np`."""
    project.write({**APART, "np.py": "def array(x): return 1\n"})
    before = identity(project, installed="np")
    project.write({"np.py": "def array(x): return 2\n"})
    assert changed(before, identity(project, installed="np")) == BOTH
    assert changed(identity(project), identity(project, installed="np")) == BOTH


def test_a_module_that_is_installed_too_and_nobody_else_needs_keeps_the_stages_apart(
    project: Project,
) -> None:
    """A project that is installed itself."""
    project.write({**APART, "answer.py": "import tool\nwrite = tool.write\n"})
    project.write({"tool.py": "def write(x): return 1\ndef other(x): return 1\n"})
    before = identity(project, "tool", installed="tool")
    assert changed(before, identity(project, "tool", installed="tool", tool="2")) == NONE
    project.write({"tool.py": "def write(x): return 1\ndef other(x): return 2\n"})
    assert changed(before, identity(project, "tool", installed="tool")) == NONE
    project.write({"tool.py": "def write(x): return 2\ndef other(x): return 2\n"})
    assert changed(before, identity(project, "tool", installed="tool")) == GENERATE


def test_the_installed_one_counts_as_well_until_the_app_has_shown_which_it_imports(project: Project) -> None:
    project.write({**APART, "openai.py": "def ask(x): return 1\n"})
    before = identity(project, installed="openai")
    assert changed(before, identity(project, installed="openai", openai="2")) == GENERATE
    project.write({"openai.py": "def ask(x): return 2\n"})
    assert changed(before, identity(project, installed="openai")) == GENERATE
    known = identity(project, "openai", installed="openai")
    assert changed(known, identity(project, "openai", installed="openai", openai="2")) == NONE


@pytest.mark.parametrize(
    ("app_text", "stages"),
    [
        (app(before="import thirdparty\n"), BOTH),  # which imports `plugin` where there is one
        (app(before="import thirdparty\nimport plugin\n"), NONE),
        (app(generate="import plugin\n        return plugin.other"), GENERATE),
    ],
)
def test_what_the_project_does_not_import_itself_is_called_by_others(
    project: Project, app_text: str, stages: set[str]
) -> None:
    project.write({"app.py": app_text, "plugin.py": "def other(): return 1\n"})
    before = identity(project, "plugin")
    project.write({"plugin.py": "def other(): return 2\n"})
    assert changed(before, identity(project, "plugin")) == stages


def test_a_script_too(project: Project) -> None:
    from oloproof.identity.fingerprint import script_ingredients

    project.write({"build.py": "import statistics\nprint(1)\n", "random.py": "X = 1\n", "np.py": "X = 1\n"})

    def ingredients(installed: str) -> object:
        build, root = str(project.root / "build.py"), str(project.root)
        return script_ingredients(
            build, "build", [root], "3.11", lambda names: facts(), None, frozenset(installed.split())
        )

    before = ingredients("np")
    project.write({"np.py": "X = 2\n"})
    assert ingredients("np") == before  # it uses no package
    project.write({"random.py": "X = 2\n"})
    assert ingredients("np") != before
    project.write({"build.py": "import faiss\nprint(1)\n"})
    before = ingredients("np")
    project.write({"np.py": "X = 3\n"})
    assert ingredients("np") != before


def test_all_stages_are_there(project: Project) -> None:
    project.write({"app.py": app(after="    def count_tokens(self, p): return 0\n"), "random.py": "X = 1\n"})
    before = identity(project)
    project.write({"random.py": "X = 2\n"})
    assert changed(before, identity(project)) == ALL


def test_only_names_of_modules_are_looked_at_for_what_is_installed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        for name in (
            "plain.py",
            "built.abi3.so",
            "README.md",
            "LICENSE",
            ".hidden",
            "tool-1.0.dist-info/RECORD",
        ):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("", encoding="utf-8")
        (folder / "package").mkdir()
        (folder / "__pycache__").mkdir()
    (ours / "alone.py").write_text("", encoding="utf-8")
    monkeypatch.setattr("sys.path", [str(ours), str(theirs), str(tmp_path / "missing")])
    assert also_installed([str(ours)]) == ["built", "package", "plain"]
