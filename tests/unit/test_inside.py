"""Which paths a configuration may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from oloproof.errors import ConfigurationError
from oloproof.settings.inside import outside
from oloproof.settings.project import load_project

CONFIG = """version: 1
dataset: {dataset}
system: {{rag: {{object: app:Rag}}}}
evaluators: [{{type: hit_rate, k: 1}}]
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite's folder within a repository, beside a folder outside of it."""
    folder = tmp_path / "repository" / "suite"
    folder.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    (tmp_path / "elsewhere").mkdir()
    return folder


@pytest.mark.parametrize(
    "named", ["cases.jsonl", "data/cases.jsonl", "../shared/cases.jsonl", "./a/../b.jsonl"]
)
def test_a_path_within_the_repository_is_accepted(suite: Path, named: str) -> None:
    assert outside(named, suite) is None


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("/etc/passwd", "must be a relative path"),
        ("../../elsewhere/cases.jsonl", "leads out of the repository"),
        ("../../../../../proc/1/environ", "leads out of the repository"),
        ("link.jsonl", "a link that leads out"),
        ("folder/cases.jsonl", "a link that leads out"),
        ("../../repository-too/cases.jsonl", "leads out of the repository"),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(suite: Path, named: str, said: str) -> None:
    (suite / "link.jsonl").symlink_to("/proc/self/environ")
    (suite / "folder").symlink_to("../../elsewhere")
    problem = outside(named, suite)
    assert problem is not None
    assert said in problem


def test_a_link_to_another_place_in_the_repository_is_accepted(suite: Path) -> None:
    (suite.parent / "shared.jsonl").touch()
    (suite / "link.jsonl").symlink_to("../shared.jsonl")
    assert outside("link.jsonl", suite) is None


def test_outside_a_repository_the_configurations_own_folder_is_the_limit(tmp_path: Path) -> None:
    assert outside("cases.jsonl", tmp_path) is None
    assert outside("../cases.jsonl", tmp_path) is not None


def test_the_refusal_names_file_and_line(suite: Path) -> None:
    config = suite / "oloproof.yaml"
    config.write_text(CONFIG.format(dataset="../../elsewhere/cases.jsonl"))
    with pytest.raises(ConfigurationError, match=r"oloproof.yaml:2: dataset: leads out of the repository"):
        load_project(config)
