"""`oloproof init`: the files a project begins with, around a class that is there already."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from oloproof.checkouts import default_branch, watched_folder
from oloproof.cli.output import emit, emit_record
from oloproof.errors import ConfigurationError
from oloproof.hosting import hosted
from oloproof.report.terminal import plain
from oloproof.settings.inside import outside
from oloproof.settings.project import parse_project
from oloproof.starter import COMPARE_POLICY, EXAMPLE_CASE, Beginning, configuration, workflow
from oloproof.workplace import COMPARE_POLICY as COMPARE
from oloproof.workplace import RELEASE_POLICY

WORKFLOW = Path(".github/workflows/oloproof.yml")
REQUIREMENTS = "requirements.txt"


def command(given: argparse.Namespace) -> int:
    config = given.config
    root = Path(os.path.abspath(config)).parent
    if not root.is_dir():
        raise ConfigurationError(f"{config.parent}: no such folder")
    if outside(given.dataset, root):
        raise ConfigurationError(f"--dataset: {outside(given.dataset, root)}")
    beginning = _measured(Beginning(given.object, given.dataset, top_k=1, depth=1), config)
    contents = {config: configuration(beginning), config.parent / COMPARE: COMPARE_POLICY}
    if given.ci == "github":
        contents |= _workflow(root, config)
    _refuse_to_overwrite(contents)
    _write(contents)
    written = [str(path) for path in contents]
    if given.json:
        emit_record({"written": written})
    else:
        emit("\n".join([*(f"wrote {plain(path)}" for path in written), "", *_next_steps(given, root)]))
    return 0


def _measured(beginning: Beginning, config: Path) -> Beginning:
    """The same with the settings that the class declares. Raises ConfigurationError when it cannot be imported."""
    with hosted(parse_project(config, configuration(beginning))) as host:
        host.check()
        declared = host.description.declared
    return replace(beginning, top_k=declared.top_k, depth=declared.depth)


def _workflow(root: Path, config: Path) -> Mapping[Path, str]:
    top = watched_folder(root)
    inside = root.relative_to(top)
    found = (inside / REQUIREMENTS, Path(REQUIREMENTS))
    requirements = next((str(path) for path in found if (top / path).is_file()), None)
    text = workflow((inside / config.name).as_posix(), requirements, default_branch(top) or "main")
    return {Path(os.path.relpath(top / WORKFLOW)): text}


def _refuse_to_overwrite(contents: Mapping[Path, str]) -> None:
    there = [path for path in contents if os.path.lexists(path)]
    if there:
        raise ConfigurationError(
            *(f"{path}: is there already, and init overwrites nothing; move it away first" for path in there)
        )


def _write(contents: Mapping[Path, str]) -> None:
    """Write all files, or none."""
    with ExitStack() as undo:
        for path, text in contents.items():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("x", encoding="utf-8") as file:
                    undo.callback(path.unlink, missing_ok=True)
                    file.write(text)
            except OSError as error:
                raise ConfigurationError(f"{path}: cannot be written ({error.strerror or error})") from None
        undo.pop_all()


def _next_steps(given: argparse.Namespace, root: Path) -> list[str]:
    steps = []
    if not (root / given.dataset).exists():
        steps.append(
            f"Write your cases to {plain(given.dataset)}, one JSON object a line:\n  {EXAMPLE_CASE}\n"
            "The relevant documents and the gold context, a text that answers, are what tells why a case fails."
        )
    steps += [
        "See whether all fits together: oloproof check",
        f"Measure it: oloproof run (a single run is decided by a {RELEASE_POLICY}, which is yours to write)",
        f"Change something in a git checkout, and see what {COMPARE} makes of it: oloproof-ci preview",
    ]
    if given.ci == "github":
        steps.append("Commit the files; the workflow runs on the next pull request.")
    return steps
