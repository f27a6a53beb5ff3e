"""The inputs of a step, as the runner passes them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from oloproof.errors import ConfigurationError
from oloproof_ci.action.inputs import Inputs, input_name, variable


def test_inputs_left_empty_have_their_defaults() -> None:
    empty = {variable(field): "" for field in Inputs.model_fields}
    assert Inputs.read(empty) == Inputs.read({}) == Inputs()


def test_dashes_stay_in_the_names_of_the_variables() -> None:
    assert [variable(field) for field in ("config", "fail_on", "github_token")] == [
        "INPUT_CONFIG",
        "INPUT_FAIL-ON",
        "INPUT_GITHUB-TOKEN",
    ]
    assert Inputs.read({"INPUT_FAIL-ON": "warn"}).fail_on == "warn"


def test_lists_have_one_entry_a_line() -> None:
    read = Inputs.read({"INPUT_CONFIG": " a/oloproof.yaml \n\n b c/oloproof.yaml\n"})
    assert read.config == ("a/oloproof.yaml", "b c/oloproof.yaml")


@pytest.mark.parametrize(("text", "meant"), [("on", "on"), ("true", "on"), ("FALSE", "off"), ("off", "off")])
def test_switches_take_what_yaml_makes_of_them(text: str, meant: str) -> None:
    assert Inputs.read({"INPUT_ANNOTATIONS": text}).annotations == meant


def test_a_comment_can_be_switched_off_as_yaml_writes_it() -> None:
    assert Inputs.read({"INPUT_COMMENT": "false"}).comment == "off"


@pytest.mark.parametrize(
    ("given", "leg"), [("null", ""), ("{}", ""), ('{"python": "3.12"}', '{"python": "3.12"}')]
)
def test_a_job_without_a_matrix_has_no_leg(given: str, leg: str) -> None:
    assert Inputs.read({"INPUT_LEG": given}).leg == leg


def test_every_wrong_input_is_named_with_what_was_expected() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Inputs.read({"INPUT_FAIL-ON": "blok", "INPUT_MODE": "x", "INPUT_ANNOTATIONS": "maybe\n::error::"})
    problems = raised.value.problems
    assert [problem.split(":")[0] for problem in problems] == [
        "input mode",
        "input annotations",
        "input fail-on",
    ]
    assert problems[2] == (
        "input fail-on: expected one of block, warn, never, found 'blok'; did you mean block?"
    )
    assert all(len(problem.splitlines()) == 1 for problem in problems)


def test_the_token_is_not_shown_by_accident() -> None:
    read = Inputs.read({"INPUT_GITHUB-TOKEN": "ghs_secret"})
    assert "ghs_secret" not in f"{read!r} {read}"
    assert read.token == "ghs_secret"


def test_a_step_loads_what_talks_to_github_only_when_it_does() -> None:
    code = "import sys, oloproof_ci.action.run; print({'github', 'requests'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_every_input_says_what_it_is_for() -> None:
    for name, field in Inputs.model_fields.items():
        assert field.description, input_name(name)
        assert field.description.endswith(".")
