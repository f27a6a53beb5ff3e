"""The job that the action runs in: what the runner tells of it by environment variables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oloproof.errors import ConfigurationError

Payload = Mapping[str, Any]

_RUN_PAGE = re.compile(r"/actions/runs/(\d{1,18})/attempts/(\d{1,9})$")


@dataclass(frozen=True)
class Job:
    """One attempt of one job of a workflow run. `sha` is the commit that the event is about, `ref` its ref, `name` that
    of the workflow and the job, `CI / evaluate`.

    `api_url` and `server_url` are the GitHub that the job runs on, github.com or an Enterprise Server.
    """

    repository: str
    event: str
    sha: str
    ref: str
    run_id: int
    run_attempt: int
    name: str
    api_url: str
    server_url: str
    workspace: Path

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Job:
        """The job of an environment. Raises ConfigurationError when this is no workflow job."""

        def value(name: str) -> str:
            if not environment.get(name):
                raise ConfigurationError(
                    f"{name} is not set: `oloproof-ci action` runs as a step of a GitHub workflow; on your machine use "
                    "`oloproof-ci preview`"
                )
            return environment[name]

        return cls(
            repository=value("GITHUB_REPOSITORY"),
            event=value("GITHUB_EVENT_NAME"),
            sha=value("GITHUB_SHA"),
            ref=environment.get("GITHUB_REF", ""),
            run_id=_number("GITHUB_RUN_ID", value("GITHUB_RUN_ID")),
            run_attempt=_number("GITHUB_RUN_ATTEMPT", environment.get("GITHUB_RUN_ATTEMPT") or "1"),
            name=" / ".join(
                part for name in ("GITHUB_WORKFLOW", "GITHUB_JOB") if (part := environment.get(name, ""))
            ),
            api_url=value("GITHUB_API_URL").rstrip("/"),
            server_url=value("GITHUB_SERVER_URL").rstrip("/"),
            workspace=Path(value("GITHUB_WORKSPACE")),
        )

    @property
    def url(self) -> str:
        """The page of this attempt."""
        return self.run_url(self.run_id, self.run_attempt)

    def is_older_than(self, url: str) -> bool:
        """Whether a page is that of a later run or attempt of this repository."""
        found = _RUN_PAGE.search(url)
        return found is not None and (int(found[1]), int(found[2])) > (self.run_id, self.run_attempt)

    def run_url(self, run_id: int, attempt: int) -> str:
        """The page of an attempt of a workflow run."""
        return f"{self.server_url}/{self.repository}/actions/runs/{run_id}/attempts/{attempt}"


def read_payload(environment: Mapping[str, str]) -> Payload:
    """The event's payload. Raises ConfigurationError when the file does not hold one."""
    path = environment.get("GITHUB_EVENT_PATH")
    if not path:
        raise ConfigurationError("GITHUB_EVENT_PATH is not set: the runner names the event's file by it")
    try:
        payload = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path}: the event cannot be read ({error.strerror or error})") from None
    except ValueError as error:
        raise ConfigurationError(f"{path}: the event is no JSON ({error})") from None
    if not isinstance(payload, dict):
        raise ConfigurationError(f"{path}: the event is no JSON object")
    return payload


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise ConfigurationError(f"{name}: expected a number, found {text[:60]!r}")
    return int(text)
