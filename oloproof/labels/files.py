"""Files of labels: labels/CRITERION.jsonl beside the configuration, committed with the project.

A label carries what was judged, so that a judge can be asked about it where nothing else of the run is left, as in CI.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oloproof.errors import ConfigurationError, UnfinishedError
from oloproof.labels.items import Item, item_from_json
from oloproof.settings.inside import outside
from oloproof.settings.wording import MAX_PROBLEMS, capped, shortened

FOLDER = "labels"
VERDICTS = ("pass", "fail", "unsure")
MAX_NAME = 100


@dataclass(frozen=True)
class Label:
    """What a person said of an item; `by` is the person's name, where it was given."""

    item: Item
    verdict: str
    by: str = ""

    def to_json(self) -> dict[str, Any]:
        record = self.item.to_json()
        return {"item": record.pop("item"), "verdict": self.verdict, "by": self.by, **record}


def labels_file(root: Path, criterion: str) -> Path:
    """Where the labels of a criterion stand; `root` is the configuration's folder."""
    return root / FOLDER / f"{criterion}.jsonl"


def read_labels(root: Path, criterion: str) -> dict[str, Label]:
    """The labels of a criterion, by item; none when there is no file. Raises ConfigurationError with every line that
    is wrong, up to 20."""
    path = labels_file(root, criterion)
    shown = f"{FOLDER}/{path.name}"
    if strays := outside(shown, root):
        raise ConfigurationError(f"{shown}: {strays}")
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise ConfigurationError(f"{shown}: is not UTF-8 text") from None
    except OSError as error:
        raise ConfigurationError(f"{shown}: cannot be read ({error.strerror or error})") from None
    found: dict[str, Label] = {}
    problems = Problems(shown)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            label = _label(line)
            if label.item.id in found:
                raise ValueError("the same item has a label above already")
            found[label.item.id] = label
        except ValueError as error:
            problems.add(number, str(error))
    problems.end()
    return found


def write_labels(root: Path, criterion: str, labels: Mapping[str, Label]) -> Path:
    """Write a criterion's labels, sorted by item so that a change shows as the lines that it is. All or nothing."""
    path = labels_file(root, criterion)
    if strays := outside(f"{FOLDER}/{path.name}", root):
        raise ConfigurationError(f"{FOLDER}/{path.name}: {strays}")
    lines = [json_line(labels[name].to_json()) for name in sorted(labels)]
    replace_file(path, "".join(lines))
    return path


def replace_file(path: Path, text: str) -> None:
    """Write a file as a whole, or leave what was there. Raises UnfinishedError."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(text.encode("utf-8", "surrogatepass"))
        os.replace(unfinished, path)
    except OSError as error:
        raise UnfinishedError(f"{path}: cannot be written ({error.strerror or error})") from None


def json_line(record: Any) -> str:
    """A record as a line that no text in it can break."""
    text = json.dumps(record, ensure_ascii=False)
    if not text.isprintable():
        text = json.dumps(record)
    return text + "\n"


class Problems:
    """What is wrong with a file's lines, of which the first 20 are told."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._found: list[str] = []
        self._count = 0

    def add(self, number: int, sentence: str) -> None:
        self._count += 1
        if len(self._found) < MAX_PROBLEMS:
            self._found.append(f"{self._shown}:{number}: {sentence}")

    def end(self) -> None:
        """Raises ConfigurationError when something was wrong."""
        if self._found:
            raise ConfigurationError(*capped(self._found, self._count))


def read_json_object(line: str) -> dict[str, Any]:
    """The JSON object in a line. Raises ValueError."""
    try:
        found = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None
    if not isinstance(found, dict):
        raise ValueError("is no JSON object")
    return found


def read_verdict(value: Any) -> str:
    """A verdict as people write it, "" where there is none yet. Raises ValueError."""
    text = "" if value is None else value
    if isinstance(text, str):
        text = text.strip().casefold()
        if not text or text in VERDICTS:
            return text
    raise ValueError(f"verdict must be pass, fail, unsure or empty, found {shortened(str(value))!r}")


def read_name(value: Any) -> str:
    """A labeller's name. Raises ValueError."""
    text = "" if value is None else value
    if not isinstance(text, str) or len(text) > MAX_NAME or not text.isprintable():
        raise ValueError(f"by must be a name of at most {MAX_NAME} printable characters")
    return text.strip()


def _label(line: str) -> Label:
    record = read_json_object(line)
    verdict = read_verdict(record.get("verdict"))
    if not verdict:
        raise ValueError("verdict is missing")
    return Label(item_from_json(record), verdict, read_name(record.get("by")))


def _no_constant(name: str) -> Any:
    raise ValueError(name)
