"""A job of a workflow: a checkout in the runner's workspace, its event, and the action as a process of its own."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from api_server import JOB_TOKEN, ApiServer

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples"
RULE = "  - {id: no-new-failures, metric: answer_correct, kind: new_failures, max: 0}\n"
#: Pull-request code runs as another user when the tests run as root, and root's own interpreter may lie out of its
#: reach; the one of the system does not.
SYSTEM_PYTHON = "/usr/bin/python3"


def copy_packages(folder: Path) -> Path:
    """Our packages where any user may read them, since the checkout that is tested may lie in a private folder."""
    for name in ("oloproof", "oloproof_ci"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@cache
def interpreter() -> str:
    """The one that runs the action. As root it has what is in the action's image too where any user may get at it: our
    packages, and uv."""
    if os.geteuid() != 0:
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="oloproof-image-"))
    atexit.register(shutil.rmtree, folder)
    folder.chmod(0o755)
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    tested = next(path for path in sys.path if path.endswith("site-packages"))
    packages = copy_packages(folder / "packages")
    (site_packages / "tested.pth").write_text(f"{packages}\n{tested}\n", encoding="utf-8")
    shutil.copy(Path(sys.executable).with_name("uv"), environment / "bin" / "uv")
    return str(environment / "bin" / "python")


@dataclass(frozen=True)
class Done:
    """What a job came to, as a workflow sees it."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str

    def commands(self, name: str) -> list[str]:
        return [line for line in self.log.splitlines() if line.startswith((f"::{name}::", f"::{name} "))]


@dataclass
class Workflow:
    """A repository on GitHub and its checkout in the workspace; `head` is the pull request's newest commit."""

    server: ApiServer
    place: Path
    repository: str
    number: int
    run_id: int = 100
    inputs: dict[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        return self.place / "workspace"

    # --------------------------------------------------------------------------------- the repository

    def git(self, *arguments: str) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        names = {"NAME": "A Tester", "EMAIL": "tester@example.invalid"}
        identity = {
            f"GIT_{role}_{part}": text for role in ("AUTHOR", "COMMITTER") for part, text in names.items()
        }
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", "-c", f"safe.directory={self.workspace}", "-C", str(self.workspace), *arguments]
        done = subprocess.run(
            command, env={**kept, **identity, **settings}, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def begin(self) -> None:
        """The example on main, with a rule against new failures; the pull request's branch is checked out."""
        leave_out = shutil.ignore_patterns(".oloproof", "__pycache__")
        shutil.copytree(EXAMPLE / "support_rag", self.workspace, ignore=leave_out)
        with (self.workspace / "compare.yaml").open("a", encoding="utf-8") as policy:
            policy.write(RULE)
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("The base")
        self.git("checkout", "--quiet", "-b", "feature")

    def commit(self, message: str = "A change") -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def make_worse(self) -> str:
        shutil.copyfile(EXAMPLE / "support_rag_worse" / "app.py", self.workspace / "app.py")
        return self.push("Answer worse")

    def mend(self) -> str:
        shutil.copyfile(EXAMPLE / "support_rag" / "app.py", self.workspace / "app.py")
        return self.push("Mend it")

    def push(self, message: str = "A change") -> str:
        """Commit what changed; the pull request's head on GitHub is that commit."""
        head = self.commit(message)
        self.server.heads[self.repository, self.number] = head
        return head

    # ----------------------------------------------------------------------------------------- events

    def pull_request(self, fork: bool = False, **inputs: str) -> Done:
        """The event of a pull request, with its test merge checked out as actions/checkout does it."""
        head, base = self.git("rev-parse", "feature"), self.git("rev-parse", "main")
        self.git("checkout", "--quiet", "--detach", "main")
        self.git("merge", "--quiet", "--no-ff", "--message", "The test merge", "feature")
        try:
            return self.run("pull_request", self.payload(head, base, fork), **inputs)
        finally:
            self.git("checkout", "--quiet", "--force", "feature")

    def payload(self, head: str, base: str, fork: bool = False) -> dict[str, Any]:
        """A pull_request event, as far as a job reads it."""
        source = "mallory/fork" if fork else self.repository
        return {
            "action": "synchronize",
            "number": self.number,
            "pull_request": {
                "number": self.number,
                "state": "open",
                "head": {"ref": "feature", "sha": head, "repo": {"full_name": source}},
                "base": {"ref": "main", "sha": base, "repo": {"full_name": self.repository}},
            },
        }

    def run(
        self,
        event: str,
        payload: Mapping[str, Any],
        ref: str = "refs/pull/1/merge",
        environment: Mapping[str, str] | None = None,
        end_when: Callable[[], bool] | None = None,
        **inputs: str,
    ) -> Done:
        """Run the action on an event, in the checkout as it stands. It is ended, as a workflow that is cancelled ends
        its jobs, as soon as `end_when` says so."""
        self.run_id += 1
        runner = self.place / f"runner-{self.run_id}"
        runner.mkdir(mode=0o755)
        (runner / "event.json").write_text(json.dumps(payload), encoding="utf-8")
        for name in ("output", "summary"):
            (runner / name).touch()
        given = {"github_token": JOB_TOKEN, **self.inputs, **inputs}
        if os.geteuid() == 0:
            given = {"python_version": SYSTEM_PYTHON, **given}
        job = {
            "PATH": os.environ["PATH"],
            "GITHUB_REPOSITORY": self.repository,
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(runner / "event.json"),
            "GITHUB_SHA": self.git("rev-parse", "HEAD"),
            "GITHUB_REF": ref,
            "GITHUB_RUN_ID": str(self.run_id),
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_JOB": "evaluate",
            "GITHUB_API_URL": self.server.url,
            "GITHUB_SERVER_URL": "https://ghe.example",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_OUTPUT": str(runner / "output"),
            "GITHUB_STEP_SUMMARY": str(runner / "summary"),
            **{f"INPUT_{name.upper().replace('_', '-')}": text for name, text in given.items()},
            **(environment or {}),
        }
        with (runner / "log").open("wb") as log:
            process = subprocess.Popen(
                [interpreter(), "-m", "oloproof_ci", "action"],
                cwd="/",
                env=job,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            while end_when and process.poll() is None and not end_when():
                time.sleep(0.05)
            if end_when:
                process.terminate()
            code = process.wait(120)
        return Done(
            code,
            (runner / "log").read_text(encoding="utf-8"),
            _outputs((runner / "output").read_text(encoding="utf-8")),
            (runner / "summary").read_text(encoding="utf-8"),
        )

    # ------------------------------------------------------------------------------------ what is left

    def comments(self) -> list[str]:
        return [comment["body"] for comment in self.server.comments(self.repository, self.number)]

    def report(self) -> Any:
        return json.loads((self.workspace / "oloproof-report" / "report.json").read_bytes())


def _outputs(text: str) -> dict[str, str]:
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, _, delimiter = line.partition("<<")
        values = []
        for value in lines:
            if value == delimiter:
                break
            values.append(value)
        found[name] = "\n".join(values)
    return found
