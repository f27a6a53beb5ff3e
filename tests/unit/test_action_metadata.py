"""action.yml, the model of the inputs and the README say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from oloproof.decisions.records import GateState
from oloproof_ci.action.inputs import Inputs, input_name
from oloproof_ci.action.rendering import outputs
from oloproof_ci.action.verdict import Verdict
from oloproof_ci.outcome import OUTCOME_VERSION, JobOutcome

ROOT = Path(__file__).parents[2]
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
    outcome = JobOutcome(OUTCOME_VERSION, "0" * 40, None, 1, 1, "", ())
    assert list(metadata["outputs"]) == list(outputs(outcome, verdict, "report.json"))


def test_the_action_is_built_from_our_dockerfile(metadata: dict[str, Any]) -> None:
    assert metadata["runs"] == {"using": "docker", "image": "Dockerfile"}
