"""Projects in temporary folders, and the command line as a process of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from projects import APP, CASES, CONFIG, EXAMPLES, Finished, MakeProject, Oloproof, command, environment

from oloproof.cli import main


@pytest.fixture(scope="session")
def oloproof() -> Oloproof:
    """Run the command line in a folder; `env` adds to the environment."""

    def run(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> Finished:
        done = subprocess.run(
            command(*arguments),
            cwd=cwd,
            env=environment(**(env or {})),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=300,
            check=False,
        )
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Oloproof:
    """The same in this process, which saves a start for each of many small checks; workers are processes all the
    same."""

    def run(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> Finished:
        capsys.readouterr()
        monkeypatch.chdir(cwd)
        with monkeypatch.context() as patch:
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            code = main([str(argument) for argument in arguments])
        return Finished(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def make_project(tmp_path_factory: pytest.TempPathFactory) -> MakeProject:
    """Write a project into a folder of its own; gives the folder.

    `config` replaces top-level keys of the configuration (None removes one), `cases` are dicts or the text of the
    case file, `files` are further files by name.
    """

    def write(
        app: str = APP,
        *,
        cases: Iterable[Mapping[str, Any]] | str = CASES,
        files: Mapping[str, str] | None = None,
        **config: Any,
    ) -> Path:
        folder = tmp_path_factory.mktemp("project")
        settings = {name: value for name, value in (CONFIG | config).items() if value is not None}
        text = cases if isinstance(cases, str) else "".join(json.dumps(each) + "\n" for each in cases)
        contents = {
            "app.py": dedent(app),
            "oloproof.yaml": json.dumps(settings, indent=1),  # JSON is YAML, one key a line
            "cases.jsonl": text,
            **{name: dedent(body) for name, body in (files or {}).items()},
        }
        for name, body in contents.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(body, encoding="utf-8")
        return folder

    return write


@pytest.fixture(scope="session")
def copy_example(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A copy of an example, without what earlier runs left in it."""

    def copy(name: str) -> Path:
        target = tmp_path_factory.mktemp("example") / name
        shutil.copytree(EXAMPLES / name, target, ignore=shutil.ignore_patterns(".oloproof", "__pycache__"))
        return target

    return copy
