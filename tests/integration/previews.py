"""A git repository that is previewed in this process, each head being an edit of its work tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from oloproof.cli import main as engine
from oloproof_ci.cli import main

COMPARE = "{version: 1, rules: [{id: none-new, metric: correct, kind: new_failures, max: 0}]}"
#: Of which file, what, and what stands there then.
Edit = tuple[str, str, str]


@dataclass
class Repository:
    """A git repository with the app on main. Every head is an edit of the work tree; the notes lie beside it."""

    root: Path
    notes: Path
    config: Mapping[str, Any]
    capture: pytest.CaptureFixture[str] | None = None
    text: str = ""
    errors: str = ""
    calls: Counter[str] = field(default_factory=Counter)

    def git(self, *arguments: str) -> None:
        who = ["-c", "user.name=A Tester", "-c", "user.email=tester@example.invalid"]
        subprocess.run(["git", "-C", str(self.root), *who, *arguments], check=True, capture_output=True)

    def edit(self, *edits: Edit) -> None:
        for file, old, new in edits:
            path = self.root / file
            text = path.read_text(encoding="utf-8")
            assert old in text
            path.write_text(text.replace(old, new), encoding="utf-8")

    def oloproof(self, *arguments: str | Path) -> int:
        """Run the engine's command line here; gives the exit code."""
        code = engine(list(map(str, arguments)))
        assert self.capture is not None
        self.text, self.errors = self.capture.readouterr()
        return code

    @property
    def noted(self) -> Counter[str]:
        """How often each stage was called since the last look."""
        return Counter(self.notes.read_text().split()) if self.notes.exists() else Counter()

    def clear(self, *edits: Edit, store: bool = False) -> None:
        """Main with these edits in the work tree, nothing noted, and unless `store` nothing stored."""
        self.git("checkout", "--quiet", "--force", "main")
        if not store:
            shutil.rmtree(self.root / ".oloproof", ignore_errors=True)
        self.edit(*edits)
        self.notes.unlink(missing_ok=True)

    def preview(self, *edits: Edit, store: bool = False, **config: Any) -> Any:
        """The report on a head with these edits; unless `store`, without what earlier previews stored."""
        self.clear(*edits, store=store)
        if config:
            (self.root / "oloproof.yaml").write_text(json.dumps(self.config | config), encoding="utf-8")
        code = main(["preview"])
        assert self.capture is not None
        self.text, self.errors = self.capture.readouterr()
        assert code in (0, 1, 3), self.errors
        self.calls = self.noted
        return json.loads((self.root / ".oloproof" / "preview" / "report.json").read_text(encoding="utf-8"))


def make_repository(
    folder: Path, app: str, config: Mapping[str, Any], cases: Sequence[Mapping[str, Any]], **files: str
) -> Repository:
    """A repository in a folder with everything on main; notes of the app's calls go beside it."""
    repository = Repository(folder / "repository", folder / "notes.txt", config)
    repository.root.mkdir()
    contents = {
        "app.py": app,
        "oloproof.yaml": json.dumps(config),
        "compare.yaml": COMPARE,
        "cases.jsonl": "".join(json.dumps(case) + "\n" for case in cases),
        ".gitignore": ".oloproof\n__pycache__\n",
        **{name.replace("_", "."): text for name, text in files.items()},
    }
    for name, text in contents.items():
        (repository.root / name).write_text(text, encoding="utf-8")
    repository.git("init", "--quiet", "--initial-branch=main")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "The base")
    return repository


def entered(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Repository:
    """The repository, with this process in it."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(repository.root)
    monkeypatch.setenv("NOTES", str(repository.notes))
    repository.capture = capsys
    return repository
