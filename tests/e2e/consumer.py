"""A user's repository: the support example as its suite, held to what a young suite can be held to."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acting import ACTION

WORKFLOW = f"""
name: Oloproof
on: [pull_request, push, merge_group, workflow_run]
permissions: {{contents: read, pull-requests: write, statuses: write}}
jobs:
  gate:
    runs-on: ubuntu-latest
    steps:
      - uses: {ACTION}
        with: {{WITH}}
"""
COMPARE = """
version: 1
block_on: [FAIL]
warn_on: [INSUFFICIENT_EVIDENCE]
rules:
  - {id: no-new-failures, metric: answer_correct, kind: new_failures, max: 0}
"""
RELEASE = """
version: 1
rules:
  - {id: citations-valid, metric: citations_valid, kind: observed_count, max_failures: 0}
"""


@dataclass
class Consumer:
    """A repository and the example's broken version of its app."""

    folder: Path
    worse: Path
    better: Path

    @classmethod
    def make(cls, folder: Path, examples: Path) -> Consumer:
        example = examples / "support_rag"
        shutil.copytree(
            example, folder, ignore=shutil.ignore_patterns(".oloproof", "__pycache__", "README.md")
        )
        made = cls(folder, examples / "support_rag_worse" / "app.py", example / "app.py")
        made.git("init", "-q", "-b", "main")
        made.write("compare.yaml", COMPARE)
        made.write("release.yaml", RELEASE)
        made.use()
        made.commit("The suite")
        made.git("checkout", "-q", "-b", "change")
        return made

    def use(self, **inputs: str) -> None:
        """Write the workflow with these inputs of the action."""
        given = {
            "github-token": "${{ secrets.GITHUB_TOKEN }}",
            **{k.replace("_", "-"): v for k, v in inputs.items()},
        }
        text = ", ".join(f"{name}: {value!r}" for name, value in given.items())
        self.write(".github/workflows/oloproof.yml", WORKFLOW.replace("{WITH}", f"{{{text}}}"))

    def write(self, name: str, body: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")

    def require_palette(self) -> None:
        """Have the suite need a package, which lies in the repository so that no index is asked."""
        facts = {
            "palette.py": "COLOURS = 7\n",
            "palette-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: palette\nVersion: 1.0\n",
            "palette-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "palette-1.0.dist-info/RECORD": "",
        }
        (self.folder / "wheels").mkdir()
        with zipfile.ZipFile(self.folder / "wheels" / "palette-1.0-py3-none-any.whl", "w") as archive:
            for name, body in facts.items():
                archive.writestr(name, body)
        self.write("requirements.txt", "--no-index\n--find-links wheels\npalette==1.0\n")

    def git(self, *arguments: str) -> str:
        settings = ("-c", "user.name=Dev", "-c", "user.email=dev@example.org")
        return subprocess.run(
            ["git", *settings, "-C", self.folder, *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def break_app(self) -> str:
        shutil.copy(self.worse, self.folder / "app.py")
        return self.commit("Make it worse")

    def mend_app(self) -> str:
        shutil.copy(self.better, self.folder / "app.py")
        self.write("app.py", (self.folder / "app.py").read_text() + "\n# as it was\n")
        return self.commit("Make it better")

    def pull_request(
        self, repository: str, number: int, action: str = "opened", fork: bool = False
    ) -> dict[str, Any]:
        """The event of a pull request from `change` into `main`, as far as anybody reads it."""
        source = {"full_name": "mallory/fork" if fork else repository}
        head = {"ref": "change", "sha": self.git("rev-parse", "change"), "repo": source}
        base = {"ref": "main", "sha": self.git("rev-parse", "main"), "repo": {"full_name": repository}}
        pull = {"number": number, "state": "open", "head": head, "base": base}
        return {
            "action": action,
            "number": number,
            "repository": {"full_name": repository},
            "pull_request": pull,
        }


@contextmanager
def served(consumer: Consumer, full_name: str, scratch: Path) -> Iterator[str]:
    """The repository under this name, as a server gives it out; what an address on that server begins with."""
    place = scratch / "served" / f"{full_name}.git"
    place.parent.mkdir(parents=True)
    subprocess.run(["git", "clone", "-q", "--bare", consumer.folder, place], check=True)
    subprocess.run(["git", "-C", place, "config", "uploadpack.allowAnySHA1InWant", "true"], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["git", "daemon", "--export-all", "--listen=127.0.0.1", f"--port={port}", "--reuseaddr"]
    daemon = subprocess.Popen([*command, f"--base-path={scratch / 'served'}"], start_new_session=True)
    try:
        _wait_for(port)
        yield f"git://127.0.0.1:{port}/"
    finally:
        os.killpg(daemon.pid, signal.SIGTERM)
        daemon.wait()


def _wait_for(port: int) -> None:
    for _ in range(100):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise TimeoutError(port)
