"""Which of a job's variables the code of a pull request sees when judges need keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from oloproof.settings.project import parse_project
from oloproof_ci.lodging import without_judge_keys

CONFIG = """\
version: 1
dataset: cases.jsonl
system: {rag: {object: app:App}}
evaluators:
  - {type: groundedness_judge, provider: openai, model: m}
  - {type: rubric_judge, criterion: kind, provider: anthropic, model: m, api_key_env: TEAM_KEY, rubric_text: Be kind.}
execution: {env: %s}
"""
JOB = {
    "PATH": "/bin",
    "OPENAI_API_KEY": "sk-of-the-judge",
    "THE_SAME": "sk-of-the-judge",
    "TEAM_KEY": "1",
    "CI": "1",
    "ANTHROPIC_API_KEY": "sk-of-the-app",
}


@pytest.mark.parametrize(
    ("env", "seen"),
    [
        ("null", {"PATH", "CI", "ANTHROPIC_API_KEY"}),
        ("[OPENAI_API_KEY]", {"PATH", "CI", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "THE_SAME"}),
        ("[TEAM_KEY]", {"PATH", "CI", "ANTHROPIC_API_KEY", "TEAM_KEY"}),
    ],
)
def test_a_judges_key_is_the_apps_only_where_the_configuration_says_so(env: str, seen: set[str]) -> None:
    config = parse_project(Path("oloproof.yaml"), CONFIG % env).config
    assert without_judge_keys(JOB, config).keys() == seen
