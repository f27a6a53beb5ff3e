"""The inputs of action.yml, as the runner passes them: each a variable, INPUT_ and the name in capitals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, SecretStr, ValidationError

from oloproof.errors import ConfigurationError
from oloproof.settings.fields import Settings
from oloproof.settings.wording import hint, shortened

PREFIX = "INPUT_"
DEFAULT_STATUS = "oloproof/gate"


def _lines(text: Any) -> Any:
    """One entry a line, blank lines left out."""
    return (
        tuple(line.strip() for line in text.splitlines() if line.strip()) if isinstance(text, str) else text
    )


def _switch(text: Any) -> Any:
    """`on` and `off`, and what YAML makes of them."""
    return {"true": "on", "false": "off"}.get(text.lower(), text) if isinstance(text, str) else text


def _leg(text: Any) -> Any:
    """The matrix's values as JSON; a job without a matrix has none."""
    return "" if text in ("null", "{}") else text


Lines = Annotated[tuple[str, ...], BeforeValidator(_lines), Field(strict=False)]
Switch = Annotated[Literal["on", "off"], BeforeValidator(_switch)]


class Inputs(Settings):
    """What a workflow may set. Each field is the input of that name with dashes; the descriptions are those of
    action.yml. An input left empty has its default."""

    config: Lines = Field(
        default=(),
        description="The configuration files, one a line. By default the only oloproof.yaml of the repository.",
    )
    policy: Lines = Field(
        default=(),
        description="The policy files, one a line. By default release.yaml and compare.yaml beside the configuration.",
    )
    policy_from: Literal["base", "head"] = Field(
        default="base",
        description="Whose policy decides: that of the base, so that a pull request cannot loosen its own gate, or "
        "that of the head.",
    )
    github_token: SecretStr = Field(
        default=SecretStr(""),
        description="The token for the status and the comment. By default the job's own.",
    )
    base: str = Field(
        default="auto",
        description="What to compare with: auto (what the pull request merges into), a branch, tag or commit, or none.",
    )
    requirements: Lines = Field(
        default=(),
        description="Requirement files of the system under test, one a line, installed with uv for its workers alone.",
    )
    install: str = Field(
        default="",
        description="A command that installs the system under test, in the place of requirements.",
    )
    python_version: str = Field(
        default="",
        description="The Python of the system under test, found by uv. By default the image's own.",
    )
    mode: Literal["auto", "evaluate", "baseline", "publish"] = Field(
        default="auto",
        description="What to do: auto (as the event asks), evaluate (a change against its base), baseline (the branch "
        "alone), or publish (the report of a fork's run).",
    )
    comment: Annotated[Literal["update", "off"], BeforeValidator(_switch)] = Field(
        default="update", description="Whether the pull request gets the comment: update, or off."
    )
    status: str = Field(
        default=DEFAULT_STATUS,
        description="The name of the commit status, or off. The default gets the matrix's values added in a matrix.",
    )
    annotations: Switch = Field(
        default="on",
        description="Whether new failures are marked at their lines in the case file: on, or off.",
    )
    diagnose: Annotated[Literal["new-failures", "all-failures", "off"], BeforeValidator(_switch)] = Field(
        default="new-failures", description="Which failures are re-executed to find what is implicated."
    )
    fail_on: Literal["block", "warn", "never"] = Field(
        default="block",
        description="Which gate makes the job and the status fail: block, warn (WARN too), or never. What could not be "
        "evaluated always fails.",
    )
    cache: Switch = Field(
        default="on", description="Whether stage results are kept in the Actions cache: on, or off."
    )
    report_dir: str = Field(
        default="oloproof-report",
        description="The folder in the workspace for report.json and comment.md. For publish, where report.json lies.",
    )
    leg: Annotated[str, BeforeValidator(_leg)] = Field(
        default="",
        description="What tells this job from others of the same matrix. By default the matrix's own values.",
    )

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Inputs:
        """The inputs of an environment. Raises ConfigurationError that names every wrong one."""
        given = {
            name: text for name in cls.model_fields if (text := environment.get(variable(name), "").strip())
        }
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise ConfigurationError(*(_problem(cls, entry) for entry in error.errors())) from None

    @property
    def token(self) -> str:
        return self.github_token.get_secret_value()


def input_name(field: str) -> str:
    """The name of an input as a workflow writes it."""
    return field.replace("_", "-")


def variable(field: str) -> str:
    """The environment variable in which the runner passes an input."""
    return PREFIX + input_name(field).upper()


def _problem(model: type[Inputs], entry: Mapping[str, Any]) -> str:
    field = str(entry["loc"][0])
    name = input_name(field)
    if entry["type"] == "literal_error":
        options = _options(model.model_fields[field].annotation)
        found = str(entry["input"])
        return f"input {name}: expected one of {', '.join(options)}, found {shortened(found)!r}; {hint(found, options)}"
    return f"input {name}: {entry['msg']}"


def _options(annotation: Any) -> list[str]:
    return [str(option) for option in get_args(annotation)]
