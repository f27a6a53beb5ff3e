"""What an earlier fingerprint of a project is taken for: the same project, as far as the fingerprint looks at it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_fingerprint import Project, app, facts

from oloproof.identity import earlier
from oloproof.identity.fingerprint import CodeIdentity, MemoryCache, code_identity, script_ingredients

FILES = {
    "app.py": app(
        retrieve="return tool.find(query)",
        generate="return texts.inner.write(query)",
        before="import tool, json, yaml\nimport texts.inner\n",
    ),
    "tool.py": "def find(query):\n    from parts import one\n    return one.get(query)\n",
    "parts/__init__.py": "",
    "parts/one.py": "def get(query): return [query]\n",
    "texts/inner.py": "def write(query): return query\n",
    "data/notes.txt": "a",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "one")
    project.write(FILES)
    return project


class Kept(MemoryCache):
    """As a store keeps entries: the first one of a key stands."""

    def write(self, entries: dict[str, str]) -> None:  # type: ignore[override]
        super().write({key: text for key, text in entries.items() if self.read(key) is None})


def was_walked(project: Project, cache: MemoryCache, imported: tuple[str, ...] = ("app", "tool")) -> bool:
    """Whether a fingerprint takes a walk; it has to be that of one without a cache in any case."""
    with pytest.MonkeyPatch.context() as patching:
        walks: list[object] = []
        written = earlier._written
        patching.setattr(earlier, "_written", lambda found: written(walks.append(found) or found))  # type: ignore[func-returns-value]
        found = identity(project, cache, imported)
    assert found == identity(project, None, imported)
    return bool(walks)


def identity(
    project: Project, cache: MemoryCache | None, imported: tuple[str, ...] = ("app", "tool")
) -> CodeIdentity:
    """The fingerprint of the app, of which modules of the top level were imported."""
    modules = {name: str(project.root / f"{name}.py") for name in imported}
    return code_identity("app:Rag", modules, [str(project.root)], "3.11", facts, cache)


def test_a_project_that_has_not_changed_is_walked_once(project: Project) -> None:
    cache = Kept()
    assert [was_walked(project, cache) for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize(
    "file", ["data/notes.txt", "data/more.txt", "README.md", ".hidden/a.py", "parts/table.csv"]
)
def test_files_that_are_no_modules_lead_to_no_walk(project: Project, file: str) -> None:
    cache = Kept()
    was_walked(project, cache)
    project.write({file: "something else"})
    assert not was_walked(project, cache)


@pytest.mark.parametrize(
    "file",
    [
        *("app.py", "tool.py", "parts/one.py", "texts/inner.py", "parts/__init__.py"),
        *("yaml.py", "json.py", "yaml/__init__.py", "json/__init__.py", "yaml.so", "yaml/other.py"),
        *(
            "tool/__init__.py",
            "parts.py",
            "parts/one/__init__.py",
            "texts/__init__.py",
            "texts.py",
            "texts/inner/__init__.py",
        ),
        *("texts/inner.cpython-311-x86_64-linux-gnu.so", "tool.pyc"),
    ],
)
def test_whatever_may_change_what_an_import_finds_is_seen(project: Project, file: str) -> None:
    """Also files that were not there; the one that takes the lead is not known to the app, which imported the other."""
    cache = Kept()
    was_walked(project, cache)
    text = (project.root / file).read_text() if (project.root / file).exists() else ""
    project.write({file: text + "\nADDED = len('more')\nprint(ADDED)\n"})
    was_walked(project, cache)
    assert not was_walked(project, cache)


@pytest.mark.parametrize("file", ["parts/one.py", "parts/__init__.py", "texts/inner.py"])
def test_a_module_that_is_gone_is_seen(project: Project, file: str) -> None:
    cache = Kept()
    was_walked(project, cache)
    (project.root / file).unlink()
    assert was_walked(project, cache)
    assert not was_walked(project, cache)


def test_earlier_states_are_known_too(project: Project) -> None:
    """A pull request's two sides share a store."""
    cache = Kept()
    states = [
        FILES["parts/one.py"],
        "def get(query): return {}\n",
        "from texts import inner\nget = inner.write\n",
    ]

    def walks() -> list[bool]:
        found = []
        for text in states:
            project.write({"parts/one.py": text})
            found.append(was_walked(project, cache))
        return found

    assert walks() == [True, True, True]
    assert walks() == [False, False, False]


def test_a_copy_elsewhere_is_known(project: Project, tmp_path: Path) -> None:
    cache = Kept()
    was_walked(project, cache)
    shutil.copytree(project.root, tmp_path / "deep" / "two")
    copy = Project(tmp_path / "deep" / "two")
    assert not was_walked(copy, cache)
    copy.write({"parts/one.py": "def get(query): return {}\n"})
    assert was_walked(copy, cache)


def test_a_folder_that_is_searched_besides_counts_as_it_stands(project: Project, tmp_path: Path) -> None:
    """Where the folders lie to each other is part of what is asked."""
    cache = MemoryCache()
    modules = {name: str(project.root / f"{name}.py") for name in ("app", "tool")}

    def found(*search: Path, kept: MemoryCache | None = cache) -> CodeIdentity:
        return code_identity("app:Rag", modules, [str(each) for each in search], "3.11", facts, kept)

    for name in ("inside", "../beside"):
        other = project.root / name
        other.mkdir()
        for text in ("", "X = 1\nprint(X)\n", "X = 2\nprint(X)\n"):
            (other / "yaml.py").write_text(text)
            for search in ([project.root], [project.root, other], [other, project.root]):
                assert found(*search) == found(*search, kept=None)


def test_a_link_that_leads_elsewhere_is_seen(project: Project, tmp_path: Path) -> None:
    project.write({"app.py": FILES["app.py"].replace("tool.find(query)", "__import__(query)")})
    cache = Kept()
    other = project.root / "more"
    for name in ("first", "second"):
        (project.root.parent / name).mkdir()
        (project.root.parent / name / "extra.py").write_text("X = 1\n")
    other.symlink_to(project.root.parent / "first")
    assert was_walked(project, cache)
    other.unlink()
    other.symlink_to(project.root.parent / "second")
    was_walked(project, cache)
    other.unlink()
    other.symlink_to(project.root)  # what lies there is taken once
    assert was_walked(project, cache)


@pytest.mark.parametrize(
    "damage", ["", "[]", "3", "{", '{"next": [1]}', '{"next": ["what"]}', '{"libraries": {"retrieve": 5}}']
)
def test_a_damaged_entry_is_none(project: Project, damage: str) -> None:
    class Damaged(MemoryCache):
        def read(self, key: str) -> str | None:
            found = super().read(key)
            return damage if found is not None and key.startswith("walk/") else found

    cache = Damaged()
    assert [was_walked(project, cache) for _ in range(3)] == [True, True, True]


def test_a_script_is_walked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "build.py").write_text("import steps\nsteps.go()\n")
    (tmp_path / "steps.py").write_text("def go(): print(1)\n")
    cache = MemoryCache()

    def ingredients(kept: MemoryCache | None = cache) -> object:
        return script_ingredients(str(tmp_path / "build.py"), "build", [str(tmp_path)], "3.11", facts, kept)

    assert ingredients() == ingredients() == ingredients(None)
    (tmp_path / "steps.py").write_text("def go(): print(2)\n")
    assert ingredients() == ingredients(None)
    monkeypatch.setattr("oloproof.identity.fingerprint._settled_program", None)
    ingredients()  # takes no walk


def test_all_code_that_walks_is_part_of_the_key() -> None:
    program = (
        "import sys, oloproof.identity.fingerprint as f; print(*[m.__file__ for n, m in sys.modules.items() "
    )
    program += "if n.partition('.')[0] == 'oloproof'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    ours = Path(earlier.__file__).parents[1]
    counted = {ours / name for name in earlier.ELSEWHERE} | set((ours / "identity").glob("*.py"))
    #: What the package's own `__init__` loads, which no walk uses.
    passive = {ours / "__init__.py", ours / "contract.py", ours / "worker" / "__init__.py"}
    assert set(map(Path, done.stdout.split())) - counted == passive
    assert earlier.code_version()


# --------------------------------------------------------------------------------------- any sequence of states

NAMES = ("one", "two", "json")
KINDS = ("", "module", "package", "folder", "both", "binary")
TEXTS = (
    "X = 1\n",
    "from one import X\n",
    "import two.one\ndef f(): return two.one.X\n",
    "def f():\n    import json.two\n    return json.two\n",
    "from two import *\n",
    "import importlib\ndef f(name): return importlib.import_module(name)\n",
)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, str]:
    files = {"app.py": app(retrieve="return one.f(two.X)", before="import one, two\nfrom json import *\n")}
    for folder in ("", "one/", "two/", "json/"):
        for name in NAMES:
            kind = draw(st.sampled_from(KINDS if not folder else KINDS[:2]))
            text = draw(st.sampled_from(TEXTS)) if kind else ""
            if kind in ("module", "both"):
                files[f"{folder}{name}.py"] = text
            if kind in ("package", "both"):
                files[f"{folder}{name}/__init__.py"] = text
            if kind == "binary":
                files[f"{folder}{name}.so"] = text
    return files


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(states=st.lists(trees(), min_size=2, max_size=6))
def test_any_states_of_a_project_are_told_apart(
    tmp_path_factory: pytest.TempPathFactory, states: list[dict[str, str]]
) -> None:
    root = tmp_path_factory.mktemp("states") / "project"
    project, cache = Project(root), Kept()
    for files in (*states, *states):
        shutil.rmtree(root, ignore_errors=True)
        project.write(files)
        for imported in (("app",), tuple(name for name in ("app", "one") if f"{name}.py" in files)):
            was_walked(project, cache, imported)
    assert not was_walked(project, cache, ("app",))
