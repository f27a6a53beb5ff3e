"""A change of an ingredient runs again what depends on it; any other change runs nothing."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mutations import (
    COUNT,
    EVERYTHING,
    FILES,
    GENERATE,
    GROUPS,
    JUDGE,
    PAGE,
    PLAIN,
    RETRIEVE,
    Mutation,
    page_with_table,
    replaced,
    write_project,
)
from projects import SLOW, MakeProject, Oloproof, case, command, environment, noted

from oloproof.validity.difference import ASSEMBLY

MUTATIONS = [mutation for group in GROUPS.values() for mutation in group]


def ran_once(folder: Path, files: Mapping[str, str], oloproof: Oloproof) -> Path:
    """A project after its first run."""
    folder.mkdir()
    write_project(folder, files)
    first = oloproof("run", cwd=folder, env={"MODEL": "small"})
    assert first.returncode == 0, first.stderr
    assert set(noted(folder)) == {RETRIEVE, COUNT, GENERATE}
    return folder


@pytest.fixture(scope="module")
def measured_projects(tmp_path_factory: pytest.TempPathFactory, oloproof: Oloproof) -> Mapping[str, Path]:
    return {
        name: ran_once(tmp_path_factory.mktemp("mutations") / "project", files, oloproof)
        for name, files in FILES.items()
    }


@pytest.fixture(scope="module")
def measured(measured_projects: Mapping[str, Path]) -> Path:
    return measured_projects[PLAIN]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[mutation.what for mutation in MUTATIONS])
def test_a_change_runs_again_what_depends_on_it_and_nothing_else(
    measured_projects: Mapping[str, Path], tmp_path: Path, quick: Oloproof, mutation: Mutation
) -> None:
    """And `identity --diff` said so before."""
    folder = tmp_path / "another place"
    shutil.copytree(measured_projects[mutation.project], folder, symlinks=True)
    mutation.edit(folder)
    env = {"MODEL": "small", **mutation.env}
    told = quick("identity", "--diff", "latest", "--json", cwd=folder, env=env)
    assert (told.returncode, told.stderr) == (0, "")
    assert noted(folder) == {}
    done = quick("run", "--json", cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    calls = noted(folder)
    cache = done.record["run"]["cache"]
    again = {stage for stage in (RETRIEVE, COUNT, GENERATE) if calls.get(stage)}
    again |= {JUDGE} if cache["judgment"][1] else set()
    assert again == set(mutation.runs)
    foretold = {part for change in told.record["changes"] for part in change["stages"]}
    assert foretold - {ASSEMBLY} >= again - {GENERATE, COUNT} if ASSEMBLY in foretold else foretold >= again
    _agrees(told.record["outlook"], cache, calls)


def _agrees(ahead: dict[str, Any], cache: dict[str, Any], calls: dict[str, int]) -> None:
    """What was told of a run is what it did."""
    assert ahead["execution"] == cache["execution"]
    assert ahead["judgment"] == cache["judgment"]
    assert ahead["retrieve"] == cache["retrieve"][1]
    assert ahead["generate"] - ahead["unsure"] <= cache["generate"][1] <= ahead["generate"]
    assert ahead["count_tokens"] <= calls.get(COUNT, 0)


def test_a_stale_index_is_named(measured: Path, tmp_path: Path, oloproof: Oloproof) -> None:
    folder = tmp_path / "project"
    shutil.copytree(measured, folder)
    (folder / "boost.txt").write_text("2.0")
    done = oloproof("run", cwd=folder, env={"MODEL": "small"})
    said = "Warning: boost.txt changed and index_version is still one: 2 stored retrievals did not count and ran again"
    assert said in done.lines
    again = oloproof("run", cwd=folder, env={"MODEL": "small"})
    assert "Warning" not in again.stdout
    assert "Stages: retrieve 0 hit/0 miss; generate 0 hit/0 miss" in again.lines


def test_a_file_that_changes_back_finds_the_results_made_under_it(
    measured: Path, tmp_path: Path, oloproof: Oloproof
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(measured, folder)
    (folder / "corpus.json").write_text(FILES[PLAIN]["corpus.json"].replace("sky", "sea"))
    oloproof("run", cwd=folder, env={"MODEL": "small"})
    (folder / "corpus.json").write_text(FILES[PLAIN]["corpus.json"])
    noted(folder)
    oloproof("run", cwd=folder, env={"MODEL": "small"})
    assert noted(folder) == {}


def test_a_stale_index_can_be_an_error(measured: Path, tmp_path: Path, oloproof: Oloproof) -> None:
    folder = tmp_path / "project"
    shutil.copytree(measured, folder)
    (folder / "boost.txt").write_text("2.0")
    settings = (folder / "oloproof.yaml").read_text()
    (folder / "oloproof.yaml").write_text(
        settings.replace("env: [MODEL]", "env: [MODEL], on_stale_index: error")
    )
    done = oloproof("run", cwd=folder, env={"MODEL": "small"})
    assert done.returncode == 2
    assert "boost.txt: changed, and index_version is still 'one'" in done.stderr
    assert noted(folder) == {}


def test_a_file_that_is_ignored_changes_nothing(measured: Path, tmp_path: Path, oloproof: Oloproof) -> None:
    folder = tmp_path / "project"
    shutil.copytree(measured, folder)
    settings = (folder / "oloproof.yaml").read_text()
    (folder / "oloproof.yaml").write_text(
        settings.replace("env: [MODEL]", 'env: [MODEL], ignore_files: ["b*.txt"]')
    )
    (folder / "boost.txt").write_text("2.0")
    oloproof("run", cwd=folder, env={"MODEL": "small"})
    assert noted(folder) == {}


def test_values_of_variables_are_not_stored(measured: Path, tmp_path: Path, oloproof: Oloproof) -> None:
    folder = tmp_path / "project"
    shutil.copytree(measured, folder)
    oloproof("run", cwd=folder, env={"MODEL": "a-secret-model-name"})
    stored = b"".join(path.read_bytes() for path in (folder / ".oloproof").glob("store*"))
    assert b"a-secret-model-name" not in stored


def test_identity_diff_names_the_ingredient_and_what_runs_again(
    measured: Path, tmp_path: Path, oloproof: Oloproof
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(measured, folder)
    unchanged = oloproof("identity", "--diff", "latest", cwd=folder, env={"MODEL": "small"})
    assert unchanged.stdout.startswith("Nothing that results depend on has changed")
    (folder / "wording.py").write_text("def phrase(text):\n    return str(text)\n")
    done = oloproof("identity", "--diff", "latest", cwd=folder, env={"MODEL": "small"})
    assert "wording:phrase" in done.stdout
    assert "Runs again: generate, judge" in done.lines
    assert "Still valid: retrieve, count_tokens" in done.lines
    assert done.lines[-1] == (
        "A run now: execution 0 hit/2 miss; judgment 0 hit/6 miss; calls: 0 retrieve, 0 count_tokens, 2 generate"
    )


def test_the_page_on_identity_holds_what_these_tests_show() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with_table(page), "write it anew: python tests/integration/mutations.py"


def test_every_part_is_shown_to_run_and_to_rest() -> None:
    for part in EVERYTHING:
        assert any(part in mutation.runs for mutation in MUTATIONS)
        assert any(part not in mutation.runs for mutation in MUTATIONS)


LISTING = """
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

@rag_system(name="listing", version="1", depth=3, top_k=2, index_version="one")
class Rag:
    def retrieve(self, input, depth):
        texts = [path.read_text() for path in sorted((Path(__file__).parent / "kb").glob("*.md"))]
        return Retrieval(query=input, depth=depth, candidates=(Passage("d1", 1.0, " ".join(texts)),))

    def generate(self, input, context):
        return {"answer": context[0].text}
"""


def test_a_new_file_in_a_folder_that_a_stage_lists_runs_it_again(
    make_project: MakeProject, oloproof: Oloproof
) -> None:
    folder = make_project(LISTING, files={"kb/a.md": "blue", "other.md": "x"})
    oloproof("run", cwd=folder)
    (folder / "another.md").write_text("nothing lists this place")
    assert "Stages: retrieve 0 hit/0 miss; generate 0 hit/0 miss" in oloproof("run", cwd=folder).lines
    (folder / "kb" / "b.md").write_text("green")
    done = oloproof("run", cwd=folder)
    assert "Stages: retrieve 0 hit/3 miss; generate 0 hit/3 miss" in done.lines
    assert "Warning: kb/ changed and index_version is still one" in done.stdout


def test_code_that_changes_during_a_run_ends_it_and_stores_nothing_wrong(
    make_project: MakeProject, oloproof: Oloproof
) -> None:
    app = SLOW.replace("0.2", "0.05").replace('{"answer": context[0].text}', '{"answer": "first"}')
    folder = make_project(app, cases=[case(f"case {n}") for n in range(60)])
    with subprocess.Popen(
        command("run"),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        while noted(folder, keep=True).get("generate", 0) < 10:
            time.sleep(0.02)
        (folder / "app.py").write_text(app.replace("first", "second"))
        _, stderr = running.communicate(timeout=60)
    assert running.returncode == 5
    assert "app.py: changed while the run was going on" in stderr
    (folder / "app.py").write_text(app)
    record = oloproof("run", "--json", cwd=folder).record["run"]
    assert record["cache"]["execution"][0] >= 5
    shown = oloproof("inspect", "latest", "--json", "--case", "case 0", cwd=folder).record
    assert shown["output"] == {"answer": "first"}


def test_code_that_goes_through_keys_is_given_them_in_the_order_of_the_case(
    make_project: MakeProject, quick: Oloproof
) -> None:
    """Two inputs, or two expected values, that differ in the order of their keys alone are equal as JSON, though not
    to the code that is given them."""
    config = {"evaluators": [{"type": "python", "object": "checks:first", "criterion": "first"}]}
    checks = "def first(*, input, expected, output, context): return list(expected) == output['answer']\n"
    folder = make_project(
        LISTING.replace("context[0].text", "list(input)").replace('glob("*.md")', 'glob("none")'),
        cases=[{"id": "one", "input": {"a": 1, "b": 2}, "expected": {"a": 1, "b": 2}}],
        files={"checks.py": checks},
        **config,
    )

    def run() -> tuple[list[str], float]:
        found = quick("run", "--json", cwd=folder).record["run"]
        shown = quick("inspect", "latest", "--json", "--case", "one", cwd=folder).record
        return shown["output"]["answer"], found["metrics"][0]["estimate"]

    assert run() == (["a", "b"], 1.0)
    replaced("cases.jsonl", '"input": {"a": 1, "b": 2}', '"input": {"b": 2, "a": 1}')(folder)
    assert run() == (["b", "a"], 0.0)
    replaced("cases.jsonl", '"expected": {"a": 1, "b": 2}', '"expected": {"b": 2, "a": 1}')(folder)
    assert run() == (["b", "a"], 1.0)
