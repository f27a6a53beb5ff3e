"""A workflow run as a hosted runner would: the real act and real Docker, on a clone of a user's repository."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: What jobs run in. The action brings its own image.
RUNNER_IMAGE = "python:3.13-slim-trixie"
#: Whose the work tree is on a hosted runner.
RUNNER_UID = 1001
ACTION = "oloproof/oloproof-action@v1"
TIMEOUT = 300
_EXIT = re.compile(r"exit with `FAILURE`: (\d+)")


@dataclass
class ActRun:
    """What came of one workflow run."""

    succeeded: bool
    workspace: Path
    exit_code: int = 0
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    annotations: list[dict[str, str]] = field(default_factory=list)
    log: str = ""

    def said(self, level: str) -> str:
        return "\n".join(note["message"] for note in self.annotations if note["level"] == level)


@dataclass(frozen=True)
class Runner:
    """Runs workflows, one at a time: act names containers after them. `action` is the folder of the action as it was
    released, `scratch` a folder of ours; caches last as long as that."""

    action: Path
    api_url: str
    token: str
    scratch: Path

    def run(
        self,
        repository: Path,
        event_name: str,
        event: Mapping[str, Any],
        *,
        depth: int | None = None,
        mirror: str | None = None,
        files: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ActRun:
        """Run the repository's workflow on an event. `depth` makes the clone shallow, `mirror` is what stands in
        GitHub's place when it fetches, `files` are put into it as an earlier step would."""
        place = self.scratch / f"run-{len(list(self.scratch.glob('run-*')))}"
        workspace, home = place / "workspace", place / "home"
        home.mkdir(parents=True)
        full_name = event["repository"]["full_name"]
        self._clone(repository, workspace, full_name, depth, mirror, files or {})
        for name, body in (("event.json", json.dumps(event)), ("none", "")):
            (place / name).write_text(body)
        command = [*self._command(event_name, place, full_name), *_pairs("--env", env or {})]
        with _alone(), _no_containers_left():
            done = subprocess.run(
                command,
                cwd=home,
                env={
                    **os.environ,
                    **{name: str(home) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")},
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        return _read(done.returncode == 0, workspace, done.stdout)

    @staticmethod
    def _clone(
        repository: Path,
        workspace: Path,
        full_name: str,
        depth: int | None,
        mirror: str | None,
        files: Mapping[str, str],
    ) -> None:
        shallow = [] if depth is None else ["--depth", str(depth)]
        subprocess.run(["git", "clone", "-q", *shallow, f"file://{repository}", workspace], check=True)
        origin = f"https://github.com/{full_name}.git"
        subprocess.run(["git", "-C", workspace, "remote", "set-url", "origin", origin], check=True)
        if mirror is not None:
            redirect = ("config", f"url.{mirror}.insteadOf", "https://github.com/")
            subprocess.run(["git", "-C", workspace, *redirect], check=True)
        for name, body in files.items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text(body, encoding="utf-8")
        for folder, folders, names in os.walk(workspace):
            for name in (".", *folders, *names):
                os.chown(os.path.join(folder, name), RUNNER_UID, RUNNER_UID, follow_symlinks=False)

    def _command(self, event_name: str, place: Path, full_name: str) -> list[str]:
        none = str(place / "none")
        files = {f"--{kind}-file": none for kind in ("env", "secret", "var", "input")}
        servers = {
            "--cache-server-addr": "127.0.0.1",
            "--cache-server-path": str(self.scratch / "cache"),
            "--artifact-server-addr": "127.0.0.1",
            "--artifact-server-path": str(place / "artifacts"),
        }
        variables = {
            "GITHUB_REPOSITORY": full_name,
            "GITHUB_API_URL": self.api_url,
            "GITHUB_GRAPHQL_URL": f"{self.api_url}/graphql",
        }
        act = shutil.which("act")
        assert act is not None, "act is not on PATH"
        return [
            *(act, event_name, "--eventpath", str(place / "event.json"), "-C", str(place / "workspace")),
            *("--bind", "--json", "--rm", "--pull=false", "-P", f"ubuntu-latest={RUNNER_IMAGE}"),
            *("-s", f"GITHUB_TOKEN={self.token}", "--local-repository", f"{ACTION}={self.action}"),
            *(text for pair in (files | servers).items() for text in pair),
            *_pairs("--env", variables),
        ]


def _pairs(flag: str, variables: Mapping[str, str]) -> list[str]:
    return [text for name, value in variables.items() for text in (flag, f"{name}={value}")]


@contextmanager
def _alone() -> Iterator[None]:
    """Whoever else runs act on this machine holds the same lock."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "e2e-act"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _no_containers_left() -> Iterator[None]:
    """Remove the containers that act leaves when it is ended."""
    before = _containers()
    try:
        yield
    finally:
        for container in _containers() - before:
            subprocess.run(["docker", "rm", "-f", "-v", container], capture_output=True, check=False)


def _containers() -> set[str]:
    listed = ["docker", "ps", "-aq", "--no-trunc", "--filter", "name=^act-"]
    return set(subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split())


def _read(succeeded: bool, workspace: Path, printed: str) -> ActRun:
    """What act's log, a JSON object a line, tells of the run."""
    run = ActRun(succeeded, workspace)
    lines = []
    for line in printed.splitlines():
        try:
            entry = json.loads(line)
            message = entry["msg"]
        except (ValueError, KeyError, TypeError):
            lines.append(line)
            continue
        lines.append(message.rstrip("\n"))
        if found := _EXIT.fullmatch(message):
            run.exit_code = int(found[1])
        kind = entry.get("command")
        if kind == "set-output":
            run.outputs[entry["name"]] = entry.get("arg") or ""
        elif kind == "summary":
            run.summary += entry.get("content") or ""
        elif kind in ("notice", "warning", "error"):
            run.annotations.append(
                {"level": kind, "message": entry.get("arg") or "", **(entry.get("kvPairs") or {})}
            )
    run.log = "\n".join(lines)
    return run


def copy_release(root: Path, target: Path, image: str) -> None:
    """The action's folder as a release leaves it: action.yml names the image that was built."""
    target.mkdir()
    metadata = (root / "action.yml").read_text(encoding="utf-8")
    named = metadata.replace("  image: Dockerfile\n", f"  image: docker://{image}\n")
    assert named != metadata
    (target / "action.yml").write_text(named, encoding="utf-8")
    shutil.copy(root / "LICENSE", target)
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "Release"]):
        settings = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *settings, "-C", target, *command], check=True)
