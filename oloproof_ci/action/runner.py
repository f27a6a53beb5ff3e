"""The runner: its files for outputs and the summary, and its commands, which are lines that a job prints.

The formats: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TextIO

from oloproof.errors import UnfinishedError
from oloproof.report.terminal import plain

Level = Literal["error", "warning", "notice"]

#: The runner shows that many annotations of a level of each step.
MAX_ANNOTATIONS = 10


class Runner:
    """Where a step leaves what it has to say. `log` is its standard output, where commands are read from."""

    def __init__(self, environment: Mapping[str, str], log: TextIO) -> None:
        self._output = environment.get("GITHUB_OUTPUT")
        self._summary = environment.get("GITHUB_STEP_SUMMARY")
        self._log = log
        self._told: dict[Level, int] = {}

    def set_outputs(self, outputs: Mapping[str, str]) -> None:
        """Set the step's outputs. Their values may hold anything: none can end early or set another output."""
        if not self._output:
            return
        text = "".join(_assignment(name, value) for name, value in outputs.items())
        _append(self._output, text)

    def add_summary(self, markdown: str) -> None:
        """Add to the step's summary."""
        if self._summary:
            _append(self._summary, markdown if markdown.endswith("\n") else f"{markdown}\n")

    def mask(self, secret: str) -> None:
        """Have the runner replace a secret wherever it is printed from now on."""
        for line in secret.splitlines():
            if line.strip():
                self._command("add-mask", {}, line)

    def say(self, text: str) -> None:
        """Print text, on lines that are no commands whatever they hold."""
        for line in text.splitlines():
            self._print(_harmless(line))

    def warn(self, text: str) -> None:
        self.annotate("warning", text)

    def annotate(self, level: Level, text: str, *, title: str = "", file: str = "", line: int = 0) -> None:
        """Mark something, at a line of a file where there is one; beyond the runner's limit it is only printed."""
        self._told[level] = self._told.get(level, 0) + 1
        if self._told[level] > MAX_ANNOTATIONS:
            self._print(_harmless(f"{level}: {text}"))
            return
        places = {"file": file, "line": str(line) if line else "", "title": title}
        self._command(level, {name: value for name, value in places.items() if value}, text)

    @contextmanager
    def foreign_output(self) -> Iterator[None]:
        """While user code may print, the runner reads no command; what ends that is known to nobody else."""
        token = uuid.uuid4().hex
        self._command("stop-commands", {}, token)
        try:
            yield
        finally:
            self._command(token, {}, "")

    def _command(self, name: str, properties: Mapping[str, str], data: str) -> None:
        settings = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
        self._print(f"::{name}{f' {settings}' if settings else ''}::{_data(data)}")

    def _print(self, line: str) -> None:
        print(line, file=self._log, flush=True)


def _harmless(line: str) -> str:
    """A line that the runner only prints. It looks for `::` where a line begins, white space apart, and in its older
    form for `##[` anywhere."""
    shown = plain(line).replace("##[", "# #[")
    start = len(shown) - len(shown.lstrip())
    return f"{shown[:start]}: :{shown[start + 2 :]}" if shown.startswith("::", start) else shown


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _assignment(name: str, value: str) -> str:
    delimiter = f"ghadelimiter_{uuid.uuid4()}"
    if delimiter in value or delimiter in name:
        raise UnfinishedError(f"output {name}: its value holds the delimiter")
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def _append(path: str, text: str) -> None:
    try:
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise UnfinishedError(
            f"{path}: the runner's file cannot be written ({error.strerror or error})"
        ) from None
