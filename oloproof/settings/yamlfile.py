"""YAML files read into plain data, with the line on which each key and entry stands.

A subset of YAML is read, the part that configuration needs: one document, a mapping at the top, text keys,
no tags, no merge keys. Aliases are followed up to a bounded size.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.reader import Reader

from oloproof.errors import ConfigurationError
from oloproof.settings.wording import capped, printable, shortened

#: Where a value stands: the keys and 0-based indexes that lead to it.
KeyPath = tuple[str | int, ...]

#: libyaml where PyYAML was built with it: some ten times faster.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_MAX_BYTES = 1_000_000
_MAX_NODES = 20_000
_MAX_DEPTH = 50

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = {_TAG + "str", _TAG + "value", _TAG + "merge"}  # `=` and `<<` as values are text like any other


@dataclass(frozen=True, slots=True)
class SourceLines:
    """The file as the user named it, and the 1-based line of every key and entry in it."""

    shown: str
    numbers: Mapping[KeyPath, int]

    def line(self, *path: str | int) -> int:
        """The line of a key or entry; of the nearest enclosing one for what does not stand in the file."""
        while path not in self.numbers and path:
            path = path[:-1]
        return self.numbers.get(path, 1)

    def where(self, *path: str | int) -> str:
        """`oloproof.yaml:12`."""
        return f"{self.shown}:{self.line(*path)}"

    def problem(self, path: KeyPath, sentence: str) -> str:
        """`oloproof.yaml:12: system.rag.top_k: sentence`."""
        name = dotted(path)
        return f"{self.where(*path)}: {name}{': ' if name else ''}{printable(sentence)}"


@dataclass(frozen=True, slots=True)
class LoadedYaml:
    """A file's data: dicts with text keys, lists, text, numbers, truth values, None, dates.

    `written` holds every scalar that is not text as it stands in the file: `no`, `1.10`, `2026-09-16`.
    """

    data: dict[str, Any]
    lines: SourceLines
    written: Mapping[KeyPath, str]


def dotted(path: KeyPath) -> str:
    """`evaluators[1].k` of `("evaluators", 1, "k")`: indexes count from 0."""
    name = ""
    for part in path:
        name += f"[{part}]" if isinstance(part, int) else f".{shortened(part)}" if name else shortened(part)
    return name


def load_yaml(path: Path, remedy: str = "") -> LoadedYaml:
    """Read a YAML file. Raises ConfigurationError that names the file as given, and the line; `remedy` says what to do
    where there is no such file."""
    return parse_yaml(_read(path, str(path), remedy), str(path))


def parse_yaml(content: bytes, shown: str) -> LoadedYaml:
    """Read the content of a YAML file that messages call `shown`. Raises as `load_yaml` does."""
    if len(content) > _MAX_BYTES:
        raise ConfigurationError(f"{shown}: larger than {_MAX_BYTES:,} bytes, too large for a configuration")
    text = _decode(content, shown)
    root = _compose(text, shown)
    if root is None or (isinstance(root, yaml.ScalarNode) and root.value == "" and not root.style):
        raise ConfigurationError(f"{shown}: the file is empty; write at least `version: 1`")
    if not isinstance(root, yaml.MappingNode):
        raise ConfigurationError(f"{shown}:{_line(root)}: expected keys and values such as `version: 1` here")
    builder = _Builder(shown)
    data = builder.value(root, ())
    if builder.problems:
        raise ConfigurationError(*capped(builder.problems))
    return LoadedYaml(data, SourceLines(shown, builder.lines), builder.written)


def _read(path: Path, shown: str, remedy: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        suffix = f"; {remedy}" if remedy else ""
        raise ConfigurationError(f"{shown}: no such file{suffix}") from None
    except IsADirectoryError:
        raise ConfigurationError(f"{shown}: is a directory, not a file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"{shown}: cannot be read: {reason}") from None


def _decode(data: bytes, shown: str) -> str:
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        raise ConfigurationError(
            f"{shown}:{line}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
        ) from None
    bad = Reader.NON_PRINTABLE.search(text)
    if bad is not None:
        line = text.count("\n", 0, bad.start()) + 1
        raise ConfigurationError(f"{shown}:{line}: YAML allows no control character U+{ord(bad[0]):04X}")
    return text


def _compose(text: str, shown: str) -> yaml.Node | None:
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise ConfigurationError(_syntax_problem(error, text, shown)) from None
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{shown}: not valid YAML: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"{shown}: nested more than {_MAX_DEPTH} levels deep") from None
    return node


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, shown: str) -> str:
    """One sentence of a parser's error; its place lies past the end when something was left open."""
    lines = text.splitlines() or [""]
    mark = error.problem_mark or error.context_mark
    number = min(mark.line + 1, len(lines)) if mark else 1
    rest = lines[number - 1][mark.column :] if mark and mark.line < len(lines) else ""
    told = (error.problem or "").replace("did not find expected", "expected")
    problem = next((sentence for part, sentence in _SYNTAX.items() if part in told), told)
    if "cannot start any token" in told and rest:
        tab = "expected spaces, found a tab; indent with spaces"
        problem = tab if rest[0] == "\t" else f"expected no {rest[0]} here; quote text that starts with it"
    where = _CONTEXTS.get(error.context or "")
    if where and error.context_mark:
        problem += f" ({where} on line {error.context_mark.line + 1})"
    return f"{shown}:{number}: not valid YAML: {problem}"


#: What libyaml says, and what that means to the reader of a configuration.
_SYNTAX = {
    "mapping values are not allowed": "expected no `:` here; quote text that contains `: `, and check the "
    "indentation",
    "undefined alias": "expected an anchor for this alias; quote text that starts with *",
    "nesting depth": f"nested more than {_MAX_DEPTH} levels deep",
    "end of stream": "the end of the file was not expected here",
    "expected key": "expected a key; check the indentation, and quotes that close too early",
    "expected '-' indicator": "expected an entry that starts with `-`; check the indentation",
    "found another document": "expected one document, found a second one after `---`",
    "second occurrence": "expected an anchor of another name; this one stands in the file already",
}

_CONTEXTS = {
    "while parsing a flow sequence": "in the list that opens",
    "while parsing a flow mapping": "in the mapping that opens",
    "while parsing a block mapping": "in the mapping that starts",
    "while parsing a block collection": "in the list that starts",
    "while scanning a quoted scalar": "in the quoted text that starts",
    "found duplicate anchor; first occurrence": "the first",
}


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


@dataclass(slots=True)
class _Builder:
    """Plain data from nodes, gathering lines and problems on the way."""

    shown: str
    lines: dict[KeyPath, int] = field(default_factory=dict)
    written: dict[KeyPath, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    nodes: int = 0
    constructor: SafeConstructor = field(default_factory=SafeConstructor)

    def complain(self, node: yaml.Node, path: KeyPath, sentence: str) -> None:
        name = dotted(path)
        self.problems.append(f"{self.shown}:{_line(node)}: {name}{': ' if name else ''}{sentence}")

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self.nodes += 1
        if self.nodes > _MAX_NODES:
            raise ConfigurationError(
                f"{self.shown}: more than {_MAX_NODES:,} values once its aliases are followed"
            )
        if len(path) > _MAX_DEPTH:
            raise ConfigurationError(f"{self.shown}:{_line(node)}: nested more than {_MAX_DEPTH} levels deep")
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        if node.tag not in (_TAG + "map", _TAG + "seq"):
            return self.complain(node, path, _tag_sentence(node))
        return self.mapping(node, path) if isinstance(node, yaml.MappingNode) else self.sequence(node, path)

    def mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        if path not in self.lines:
            self.lines[path] = _line(node)
        first: dict[str, int] = {}
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node, path)
            if key is None:
                continue
            if key in first:
                self.complain(key_node, (*path, key), f"this key stands on line {first[key]} already")
                continue
            first[key] = self.lines[(*path, key)] = _line(key_node)
            data[key] = self.value(value_node, (*path, key))
        return data

    def key(self, node: yaml.Node, path: KeyPath) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            self.complain(node, path, "a key must be text, not a list or mapping")
        elif node.tag == _TAG + "merge":
            self.complain(node, path, "merge keys (<<) are not supported; write the keys out")
        elif node.tag in _TEXT_TAGS:
            return self.text(node, path)
        elif node.tag in _SCALARS:
            key = shortened(node.value)
            self.complain(node, path, f'the key {key} is not text to YAML; quote it: "{key}"')
        else:
            self.complain(node, path, _tag_sentence(node))
        return None

    def text(self, node: yaml.ScalarNode, path: KeyPath) -> str | None:
        try:
            node.value.encode()
        except UnicodeEncodeError:  # libyaml refuses this by itself
            self.complain(node, path, "text with half of a character (a lone surrogate) cannot be stored")
            return None
        return str(node.value)

    def sequence(self, node: yaml.Node, path: KeyPath) -> list[Any]:
        items = []
        for index, item in enumerate(node.value):
            self.lines[(*path, index)] = _line(item)
            items.append(self.value(item, (*path, index)))
        return items

    def scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        if node.tag in _TEXT_TAGS:
            return self.text(node, path)
        construct = _SCALARS.get(node.tag)
        if construct is None:
            return self.complain(node, path, _tag_sentence(node))
        self.written[path] = node.value
        try:
            return construct(self.constructor, node)
        except (ValueError, LookupError, AttributeError, OverflowError):
            kind = _KINDS[node.tag.removeprefix(_TAG)]
            sentence = f"{shortened(node.value)} is no valid {kind}; quote it if it is text"
            return self.complain(node, path, sentence)


_SCALARS: dict[str, Any] = {
    _TAG + "int": SafeConstructor.construct_yaml_int,
    _TAG + "float": SafeConstructor.construct_yaml_float,
    _TAG + "bool": SafeConstructor.construct_yaml_bool,
    _TAG + "null": SafeConstructor.construct_yaml_null,
    _TAG + "timestamp": SafeConstructor.construct_yaml_timestamp,
}

_KINDS = {
    "int": "whole number",
    "float": "number",
    "bool": "truth value",
    "null": "null",
    "timestamp": "date",
}


def _tag_sentence(node: yaml.Node) -> str:
    tag = node.tag.replace(_TAG, "!!")
    return f"tags such as {shortened(tag)} are not supported; remove it, or quote the text if it is text"
