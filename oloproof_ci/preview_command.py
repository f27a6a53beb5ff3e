"""`oloproof-ci preview`: finds what to measure, and writes what came of it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from oloproof.cli.progress import Progress
from oloproof.errors import ConfigurationError
from oloproof.jsonform import to_json
from oloproof.settings.policy import Policy, load_policy
from oloproof.settings.project import load_project
from oloproof.store.database import FOLDER
from oloproof.workplace import COMPARE_POLICY, RELEASE_POLICY
from oloproof_ci.comment import comment
from oloproof_ci.git import Repository
from oloproof_ci.preview import Preview

CONFIG = "oloproof.yaml"


def command(given: argparse.Namespace) -> int:
    repository = Repository(given.config.absolute().parent if given.config else Path.cwd())
    config = given.config or _find_config(repository.root)
    project = load_project(config)
    policies = _policies(given, config.parent)
    watch = _Watch()
    try:
        report = Preview(repository, project, policies, watch).report(given.base)
    finally:
        watch.clear()
    text = comment(report)
    record = json.dumps(to_json(report), indent=2, ensure_ascii=False) + "\n"
    out = given.out or project.root / FOLDER / "preview"
    _write(out, "comment.md", text)
    _write(out, "report.json", record)
    print(record if given.json else text, end="" if given.json or text.endswith("\n") else "\n")
    sys.stdout.flush()
    print(f"Wrote {_shown(out / 'comment.md')} and {_shown(out / 'report.json')}", file=sys.stderr)
    return report.gate.exit_code


def _find_config(root: Path) -> Path:
    """oloproof.yaml in the current folder, else the only one that git knows in the repository."""
    here = Path(CONFIG)
    if here.exists():
        return here
    found = Repository(root).files(CONFIG)
    if len(found) == 1:
        return Path(os.path.relpath(root / found[0]))
    if not found:
        raise ConfigurationError(
            f"{root}: there is no {CONFIG} in this repository; name it with --config PATH"
        )
    raise ConfigurationError(
        f"{root}: there are several {CONFIG} ({', '.join(found[:5])}); name one with --config PATH"
    )


def _policies(given: argparse.Namespace, folder: Path) -> list[Policy]:
    if given.policy:
        return [load_policy(path) for path in given.policy]
    paths = [folder / RELEASE_POLICY, folder / COMPARE_POLICY]
    return [load_policy(path) for path in paths if path.exists()]


def _write(folder: Path, name: str, text: str) -> None:
    """Write a file whole: it is there with all its text, or the one before is."""
    target = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{name}.new"
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)
    except OSError as error:
        raise ConfigurationError(f"{target}: cannot be written ({error.strerror or error})") from None


def _shown(path: Path) -> str:
    """A path as a person would type it: relative when it lies below the current folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


class _Watch:
    """Progress of one run after the other."""

    def __init__(self) -> None:
        self._current: Progress | None = None

    def __call__(self, what: str) -> Callable[[int, int], None]:
        self.clear()
        self._current = Progress(what)
        return self._current

    def clear(self) -> None:
        if self._current is not None:
            self._current.clear()
