"""Units made from syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from oloproof.identity.bindings import Bindings
from oloproof.identity.inert import inertness
from oloproof.identity.normal import Reader, short_digest
from oloproof.identity.scopes import Function, dotted_chain
from oloproof.identity.summary import Unit

#: Tokens that tell where a piece of code stands among what it depends on when it is executed on import.
Position = Callable[[Reader], Iterable[str]]


def function_unit(
    node: Function,
    name: str,
    bindings: Bindings,
    position: Position,
    class_names: frozenset[str] | None = None,
) -> Unit:
    """The unit of a function of the module, or of a method when `class_names` is given."""
    reader = Reader(bindings, class_names=class_names)
    reader.unit(node)
    _note_kind(node, reader, method=class_names is not None)
    found = decorations(node.decorator_list, reader)
    return unit_of(
        reader,
        name,
        documented=[node],
        bindings=bindings,
        decorators=found,
        inert=inertness(node, bindings),
        position=position,
    )


def _note_kind(node: Function, reader: Reader, *, method: bool) -> None:
    """Note whether a function takes nothing, and whether what it gives may be kept for the next call."""
    arguments = node.args
    taken = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
    static = any(dotted_chain(decorator) == "staticmethod" for decorator in node.decorator_list)
    if taken <= (method and not static) and arguments.vararg is None and arguments.kwarg is None:
        reader.refs.add("E")
    if not all(reader.keeps_nothing(decorator) for decorator in node.decorator_list):
        reader.refs.add("K")


def unit_of(
    reader: Reader,
    name: str,
    *,
    bindings: Bindings,
    documented: Iterable[Function | ast.ClassDef] = (),
    decorators: Iterable[str] = (),
    inert: int = -1,
    position: Position,
) -> Unit:
    """Close a reader; `documented` are the definitions whose docstrings and annotations belong to the unit."""
    reader.finish()
    code = short_digest([*reader.tokens, *position(reader)])
    nodes = [node for node in (*documented, *reader.shown) if Reader.is_documented(node)]
    docs, doc_refs = _documentation(nodes, bindings) if nodes else ("", [])
    return Unit(name, code, sorted(reader.refs), docs, doc_refs, list(decorators), inert)


def _documentation(nodes: Iterable[Function | ast.ClassDef], bindings: Bindings) -> tuple[str, list[str]]:
    """Digest and references of docstrings and annotations."""
    reader = Reader(bindings)
    for node in nodes:
        reader.documentation(node)
    reader.finish()
    return short_digest(reader.tokens) if reader.tokens else "", sorted(reader.refs)


def decorations(nodes: Iterable[ast.expr], reader: Reader) -> list[str]:
    """The decorators that may do more than wrap, `()` behind those that are called; the object whose method is a
    decorator counts as changed by it."""
    found = []
    for node in nodes:
        if reader.is_pure(node):
            continue
        called = isinstance(node, ast.Call)
        chain = dotted_chain(node.func if isinstance(node, ast.Call) else node)
        if chain is None:
            found.append("?")
        elif not chain.endswith((".setter", ".getter", ".deleter")):
            found.append(chain + "()" * called)
            root, _, path = chain.partition(".")
            if path:
                reader.load("m", root, path)
    return found
