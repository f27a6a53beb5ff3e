"""Where the value of an expression may come from: what else may be changed when it is.

A source is a triple of kind, name and attributes after it:

    a  the object itself, or a part of it      i  a part of it
    e  a new container of the object, or of its parts
    z  what calling it gives; the attributes, behind a `>`, are those of the result
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from oloproof.identity.knowledge import words

Source = tuple[str, str, str]

#: Builtins that give numbers, texts and the like, which nobody can change.
_PLAIN = words(
    "len str int float bool repr sum hash ord chr round abs any all isinstance issubclass format print id callable "
    "hasattr range bytes open type"
)
#: Builtins that give a new container of the same parts.
_COPIES = words("list tuple dict set frozenset sorted enumerate zip filter map reversed")
#: Builtins that give parts of what they are given.
_PARTS = words("iter next min max getattr vars")
#: Methods that give a part of what they are called on, and a new container of its parts.
_ACCESSORS = words("get setdefault pop popitem popleft __getitem__ __iter__ __next__ __enter__")
_VIEWS = words("copy values items keys union")


def sources(node: ast.AST | None, path: str = "") -> list[Source]:
    """The sources of an expression's value; `path` are attributes asked of it."""
    kind = node.__class__
    if kind is ast.Name:
        return [("a", node.id, path)]  # type: ignore[union-attr]
    find = _FINDERS.get(kind)
    return find(node, path) if find is not None else []


def _of_attribute(node: ast.Attribute, path: str) -> list[Source]:
    return sources(node.value, f"{node.attr}.{path}" if path else node.attr)


def _of_subscript(node: ast.Subscript, path: str) -> list[Source]:
    return [part_of(source) for source in sources(node.value, path)]


def _of_value(node: ast.Starred | ast.Await | ast.NamedExpr, path: str) -> list[Source]:
    return sources(node.value, path)


def _of_choice(node: ast.IfExp, path: str) -> list[Source]:
    return sources(node.body, path) + sources(node.orelse, path)


def _of_either(node: ast.BoolOp, path: str) -> list[Source]:
    return [source for value in node.values for source in sources(value, path)]


def _of_operation(node: ast.BinOp, path: str) -> list[Source]:
    return [held_by(source) for side in (node.left, node.right) for source in sources(side)]


def _of_display(node: ast.List | ast.Tuple | ast.Set, path: str) -> list[Source]:
    return [held_by(source) for element in node.elts for source in sources(element)]


def _of_dict(node: ast.Dict, path: str) -> list[Source]:
    return [held_by(source) for value in node.values for source in sources(value)]


def _of_comprehension(node: Any, path: str) -> list[Source]:
    return [held_by(part_of(source)) for generator in node.generators for source in sources(generator.iter)]


def _of_call(node: ast.Call, path: str) -> list[Source]:
    function = node.func
    if isinstance(function, ast.Name):
        name = function.id
        if name in _PLAIN:
            return []
        if name in _COPIES or name in _PARTS:
            change = held_by if name in _COPIES else part_of
            return [change(source) for argument in node.args for source in sources(argument)]
        return [("z", name, f">{path}")]
    if not isinstance(function, ast.Attribute):
        return []
    method = function.attr
    found = []
    if method == "nullcontext":
        found += [source for argument in node.args for source in sources(argument, path)]
    for source in sources(function.value):
        kind, root, rest = source
        if method in _ACCESSORS:
            found.append(part_of(source))
        elif method in _VIEWS:
            found.append(held_by(source))
        elif kind == "a":
            found.append(("z", root, f"{rest}.{method}>{path}".lstrip(".")))
    return found


_FINDERS: dict[type[Any], Callable[[Any, str], list[Source]]] = {
    ast.Attribute: _of_attribute,
    ast.Subscript: _of_subscript,
    ast.Starred: _of_value,
    ast.Await: _of_value,
    ast.NamedExpr: _of_value,
    ast.IfExp: _of_choice,
    ast.BoolOp: _of_either,
    ast.BinOp: _of_operation,
    ast.List: _of_display,
    ast.Tuple: _of_display,
    ast.Set: _of_display,
    ast.Dict: _of_dict,
    ast.ListComp: _of_comprehension,
    ast.SetComp: _of_comprehension,
    ast.GeneratorExp: _of_comprehension,
    ast.DictComp: _of_comprehension,
    ast.Call: _of_call,
}


def part_of(source: Source) -> Source:
    """The source of a part of what comes from another."""
    kind, root, path = source
    return ("a" if kind == "e" else "i" if kind == "a" else kind), root, path


def held_by(source: Source) -> Source:
    """The source of a new container that holds what comes from another."""
    kind, root, path = source
    return ("e" if kind in "ai" else kind), root, path
