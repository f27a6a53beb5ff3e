"""`oloproof-ci preview`: finds what to measure, and writes what came of it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from oloproof.cli.output import emit, emit_record
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
#: What a preview writes.
COMMENT, REPORT = "comment.md", "report.json"


def command(given: argparse.Namespace) -> int:
    if given.out:
        _discard(given.out)
    config = given.config or _find_config()
    out = given.out or _folder(config) / FOLDER / "preview"
    _discard(out)
    project = load_project(config)
    repository = Repository(project.root)
    policies = _policies(given, config.parent)
    watch = _Watch()
    try:
        report = Preview(repository, project, policies, watch).report(given.base)
    finally:
        watch.clear()
    text, record = comment(report), to_json(report)
    _write(out, COMMENT, text)
    _write(out, REPORT, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    if given.json:
        emit_record(record)
    else:
        emit(text.removesuffix("\n"))
    if sys.stderr is not None:
        with suppress(OSError):  # whoever reads the messages may have left as well
            print(f"Wrote {_shown(out / COMMENT)} and {_shown(out / REPORT)}", file=sys.stderr)
    return report.gate.exit_code


def _find_config() -> Path:
    """oloproof.yaml in the current folder, else the only one that git knows in the repository."""
    here = Path(CONFIG)
    if here.exists():
        return here
    repository = Repository(Path.cwd())
    root, found = repository.root, repository.files(CONFIG)
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


def _folder(config: Path) -> Path:
    """The folder that a configuration stands in, or that was named in its place."""
    return config.absolute() if config.is_dir() else config.absolute().parent


def _discard(folder: Path) -> None:
    """Remove what an earlier preview wrote: should this one fail, nobody may take that for its result."""
    for name in (COMMENT, REPORT):
        target = folder / name
        try:
            target.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigurationError(f"{target}: cannot be replaced ({error.strerror or error})") from None


def _write(folder: Path, name: str, text: str) -> None:
    """Write a file whole: it is there with all its text, or not at all."""
    target = folder / name
    draft = folder / f".{name}.{uuid.uuid4().hex}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            # A lone surrogate, which JSON can hold and UTF-8 cannot, is written as JSON escapes it.
            draft.write_text(text, encoding="utf-8", errors="backslashreplace")
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
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
