"""action.yml, the model of the inputs and the README say the same."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from oloproof.decisions.records import GateState
from oloproof.starter import workflow
from oloproof_ci.action.inputs import Inputs, input_name
from oloproof_ci.action.rendering import outputs
from oloproof_ci.action.verdict import Verdict
from oloproof_ci.outcome import OUTCOME_VERSION, JobOutcome

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent
#: Inputs whose default only the runner can tell.
FROM_THE_RUNNER = {"github-token": "${{ github.token }}", "leg": "${{ matrix && toJSON(matrix) || '' }}"}


@pytest.fixture(scope="module")
def metadata() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return loaded


def test_the_inputs_are_the_models_in_its_order(metadata: dict[str, Any]) -> None:
    assert list(metadata["inputs"]) == [input_name(field) for field in Inputs.model_fields]


def test_each_input_is_described_as_in_the_model(metadata: dict[str, Any]) -> None:
    described = {name: entry["description"] for name, entry in metadata["inputs"].items()}
    assert described == {input_name(n): field.description for n, field in Inputs.model_fields.items()}


def test_each_input_has_the_models_default(metadata: dict[str, Any]) -> None:
    defaults = {name: entry["default"] for name, entry in metadata["inputs"].items()}
    assert {n: text for n, text in defaults.items() if n in FROM_THE_RUNNER} == FROM_THE_RUNNER
    given = {f"INPUT_{n.upper()}": text for n, text in defaults.items() if n not in FROM_THE_RUNNER}
    assert Inputs.read(given) == Inputs.read({})


def test_the_outputs_are_those_that_are_set(metadata: dict[str, Any]) -> None:
    verdict = Verdict(GateState.ALLOW, "", 0, "success", True)
    outcome = JobOutcome(OUTCOME_VERSION, "0" * 40, None, 1, 1, "", "", ())
    assert list(metadata["outputs"]) == list(outputs(outcome, verdict, "report.json"))


def test_the_action_is_built_from_our_dockerfile(metadata: dict[str, Any]) -> None:
    assert metadata["runs"] == {"using": "docker", "image": "Dockerfile"}


@pytest.fixture(scope="module")
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_lists_every_input_with_its_default(readme: str) -> None:
    for field, model in Inputs.model_fields.items():
        default = f"`{model.default}`" if isinstance(model.default, str) and model.default else ""
        assert f"| `{input_name(field)}` | {default} | {model.description} |\n" in readme


def test_the_readme_lists_every_output(readme: str, metadata: dict[str, Any]) -> None:
    for name, output in metadata["outputs"].items():
        assert f"| `{name}` | {output['description']} |\n" in readme


def test_the_readmes_workflow_is_the_one_that_init_writes(readme: str) -> None:
    assert f"```yaml\n{workflow('oloproof.yaml', 'requirements.txt', 'main')}```" in readme


def test_the_readmes_workflows_are_workflows(readme: str, tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(name: .*?)```", readme, re.DOTALL)
    assert len(blocks) == 2
    for number, block in enumerate(blocks):
        path = tmp_path / f"{number}.yml"
        path.write_text(block)
        done = subprocess.run([TOOLS / "actionlint", path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_the_messages_that_the_readme_explains_are_ours(readme: str) -> None:
    table = readme.partition("| message | what to do |\n|---|---|\n")[2].partition("\n\n")[0]
    messages = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()]
    assert len(messages) == 12
    source = "".join(
        re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8"))
        for folder in ("oloproof", "oloproof_ci")
        for path in sorted((ROOT / folder).rglob("*.py"))
    )
    wanted = [
        message.replace("oloproof.yaml", "{CONFIG}").replace("input requirements", "input {setting}")
        for message in messages
    ]
    assert [message for message in wanted if message not in source] == []
