"""Which versions of installed packages count for a stage."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from test_fingerprint import APP, BOTH, GENERATE, NONE, RETRIEVE, Project, app, changed, project

from oloproof.identity.fingerprint import MemoryCache, PackageFacts
from oloproof.identity.packages import package_facts

__all__ = ["project"]  # a fixture


class Site:
    """A folder on the path with distributions in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def install(
        self, name: str, version: str = "1.0", *, files: str = "", requires: tuple[str, ...] = (), **more: str
    ) -> None:
        folder = self.root / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(parents=True)
        lines = "".join(f"Requires-Dist: {each}\n" for each in requires)
        text = (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}\nThe description\nVersion: 9\n"
        )
        (folder / "METADATA").write_text(text)
        (folder / "RECORD").write_text(files or f"{name}/__init__.py,sha256=x,1\n{folder.name}/METADATA,,\n")
        for file, content in more.items():
            (folder / file.replace("_txt", ".txt").replace("_json", ".json")).write_text(content)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    root = tmp_path / "site"
    root.mkdir()
    monkeypatch.setattr(sys, "path", [str(root)])
    return Site(root)


def test_a_module_is_provided_by_the_distribution_that_installs_it(site: Site) -> None:
    site.install("PyYAML", "6.0", files="yaml/__init__.py,,\n_yaml/__init__.py,,\n")
    site.install("six", files="six.py,,\nsix-1.0.dist-info/METADATA,,\n")
    site.install("fast", files="fast.cpython-311-x86_64-linux-gnu.so,,\n")
    site.install("old", files="nothing,,\n", top_level_txt="older\noldest\n")
    site.install("google-a", files="google/a/__init__.py,,\n")
    site.install("google-b", files="google/b/__init__.py,,\n")
    site.install("sloppy", files="real/__init__.py,,\n", top_level_txt="wrong\n")
    facts = package_facts(["yaml", "six", "fast", "oldest", "google", "missing", "json", "real"])
    assert facts["providers"] == {
        "yaml": ["pyyaml"],
        "six": ["six"],
        "fast": ["fast"],
        "oldest": ["old"],
        "google": ["google-a", "google-b"],
        "missing": [],
        "real": ["sloppy"],
    }
    assert facts["versions"]["pyyaml"] == "6.0"  # type: ignore[index]
    assert json.loads(json.dumps(facts)) == facts


def test_dependencies_count_whatever_their_markers_but_not_those_of_developers(site: Site) -> None:
    site.install(
        "top",
        requires=(
            "plain",
            "Spelled_Oddly (>=1,<2)",
            "windows; sys_platform == 'win32'",
            "extra[more]>=1; extra == 'fast'",
            "tester; extra == 'test'",
            'documenter; extra == "all-docs"',
            "pytest>=7; extra == 'all'",
            "absent>=1",
        ),
    )
    for name in (
        "plain",
        "spelled.oddly",
        "windows",
        "extra",
        "tester",
        "documenter",
        "pytest",
        "below",
        "unrelated",
    ):
        site.install(name, requires=("below", "top") if name == "plain" else ())
    found = package_facts(["top"])
    assert set(found["versions"]) == {"top", "plain", "spelled-oddly", "windows", "extra", "below"}  # type: ignore[call-overload]
    assert found["requires"]["plain"] == ["below", "top"]  # type: ignore[index]
    assert set(package_facts(["*"])["versions"]) >= {"tester", "unrelated"}  # type: ignore[call-overload]


def test_what_was_installed_from_a_repository_or_folder_counts_by_its_content(site: Site) -> None:
    origin = {"url": "file:///home/me/lib", "dir_info": {}}
    versions = set()
    for number, (url, record) in enumerate(
        [
            ("file:///a", "x.py,sha256=1,1\n"),
            ("file:///b", "x.py,sha256=1,1\n"),
            ("file:///a", "x.py,sha256=2,1\n"),
        ]
    ):
        name = f"lib{number}"
        site.install(
            name, files=record, top_level_txt=name, direct_url_json=json.dumps({**origin, "url": url})
        )
        versions.add(package_facts([name])["versions"][name])  # type: ignore[index]
    assert len(versions) == 2  # the folder's own path does not count
    commits = []
    for name, commit in (("one", "abc"), ("two", "def")):
        info = {"url": "git+https://x", "vcs_info": {"vcs": "git", "commit_id": commit}}
        site.install(name, files="y.py,,\n", top_level_txt=name, direct_url_json=json.dumps(info))
        commits.append(package_facts([name])["versions"][name])  # type: ignore[index]
    assert commits[0] != commits[1]


def test_damaged_metadata_is_no_reason_to_fail(site: Site) -> None:
    for name, content in (("empty", b""), ("binary", b"\xff\xfe\x00"), ("nameless", b"Version: 1\n\n")):
        folder = site.root / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_bytes(content)
    (site.root / "file-1.0.egg-info").write_text("Name: file\nVersion: 2\n\n")
    assert package_facts(["empty", "*"])["providers"] == {"empty": [], "*": ["file"]}


def test_three_hundred_distributions_take_no_time(site: Site) -> None:
    for number in range(300):
        rows = "".join(f"pkg{number}/sub/module{row}.py,sha256=abcdefghijklmnop,1234\n" for row in range(200))
        site.install(f"pkg{number}", files=rows, requires=(f"pkg{(number + 1) % 300}",))
    started = time.perf_counter()
    facts = package_facts(["pkg0", "numpy"])
    assert time.perf_counter() - started < 1.5  # 0.15 on a machine of its own
    assert len(facts["versions"]) == 300  # type: ignore[arg-type]


def test_the_worker_can_ask_with_what_it_has() -> None:
    """Importing `packages` loads nothing of ours but the contract, and no package."""
    import subprocess

    root = str(Path(__file__).parents[2])
    code = (
        f"import sys; sys.path.insert(0, {root!r})\n"
        "from oloproof.identity.packages import package_facts\n"
        "print(sorted(m for m in sys.modules if m.startswith('oloproof')), 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = "['oloproof', 'oloproof.contract', 'oloproof.identity', 'oloproof.identity.packages'] False\n"
    assert done.stdout == expected


# ------------------------------------------------------------------------------------------- per stage


def versions(**chosen: str) -> PackageFacts:
    """`faiss` needs `numpy`; each comes from a distribution of its name."""
    known = {"faiss": "1", "numpy": "1", "openai": "1", **chosen}
    return PackageFacts({name: [name] for name in known}, known, {"faiss": ["numpy"]})


APART = {
    "app.py": app(
        "return find(input)", "return write(input)", "from search import find\nfrom answer import write\n"
    ),
    "search.py": "import faiss\nimport json\ndef find(x): return faiss.search(x)\n",
    "answer.py": "def write(x):\n    import openai\n    return openai.ask(x)\n",
}


def test_a_package_counts_for_the_stages_whose_modules_import_it(project: Project) -> None:
    project.write(APART)
    before = project.identity(packages=lambda names: versions())
    for name, stages in (("faiss", RETRIEVE), ("numpy", RETRIEVE), ("openai", GENERATE)):
        after = project.identity(packages=lambda names, name=name: versions(**{name: "2"}))
        assert changed(before, after) == stages
    assert changed(before, project.identity(packages=lambda names: versions(other="2"))) == NONE


def test_a_package_that_is_imported_for_its_effects_counts_for_every_stage(project: Project) -> None:
    project.write({"app.py": app(before="import quiet\n"), "quiet.py": "import patches\n"})
    before = project.identity(packages=lambda names: versions(patches="1"))
    assert changed(before, project.identity(packages=lambda names: versions(patches="2"))) == BOTH


def test_packages_are_asked_once_for_what_is_outside_the_project(project: Project) -> None:
    project.write(APART)
    asked = []

    def packages(names: frozenset[str]) -> PackageFacts:
        asked.append(names)
        return versions()

    found = project.identity(packages=packages, cache=MemoryCache()).ingredients
    assert asked == [frozenset({"faiss", "openai"})]
    assert found["retrieve"]["package numpy"] == "1"
    assert "package openai" not in found["retrieve"]


def test_a_module_that_no_distribution_provides_is_named_as_unknown(project: Project) -> None:
    project.write({"app.py": "import vendored\n" + APP})
    found = project.identity(packages=lambda names: PackageFacts({"vendored": []}, {}, {})).ingredients
    assert found["retrieve"]["package vendored"] == "unknown"


def test_a_data_folder_does_not_hide_a_package_of_its_name(project: Project) -> None:
    project.write(
        {"app.py": app(retrieve="return datasets.load()", before="import datasets\n"), "datasets/x.csv": ""}
    )
    before = project.identity(packages=lambda names: versions(datasets="1"))
    assert changed(before, project.identity(packages=lambda names: versions(datasets="2"))) >= RETRIEVE


def test_a_module_of_the_standard_library_is_not_asked_for(project: Project) -> None:
    project.write(
        {"app.py": "import asyncio, xml.dom.minidom, os.path\nfrom __future__ import annotations\n" + APP}
    )
    asked = []
    project.identity(packages=lambda names: asked.append(names) or versions())  # type: ignore[func-returns-value]
    assert set(asked) == {frozenset()}
