"""Names, constants, attributes and subscripts in normal form."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, ClassVar

from oloproof.identity.aliases import sources
from oloproof.identity.flows import Flows
from oloproof.identity.knowledge import DOCUMENTATION, SOURCE_READERS, SPIES
from oloproof.identity.scopes import CLASS, MODULE, joined

_SPECIAL_ATTRIBUTES = SPIES | SOURCE_READERS | DOCUMENTATION
_SKIPPED_FIELDS = frozenset({"ctx", "type_comment", "kind", "simple"})


class Visitors(dict[type[Any], Callable[[Any, Any], None]]):
    """Functions that read a value into a reader, by the value's type. A kind of node that is not listed is read as it
    is: its name and all its parts; anything else by its `repr`."""

    def __missing__(self, kind: type[Any]) -> Callable[[Any, Any], None]:
        self[kind] = visitor = self._visitor(kind)
        return visitor

    def _visitor(self, kind: type[Any]) -> Callable[[Any, Any], None]:
        if not issubclass(kind, ast.AST):
            return lambda reader, value: reader.tokens.append(repr(value))
        tag = kind.__name__
        fields = tuple(field for field in kind._fields if field not in _SKIPPED_FIELDS)

        def read_parts(reader: Any, node: ast.AST) -> None:
            reader.tokens.append(tag)
            for field in fields:
                value = getattr(node, field, None)
                self[value.__class__](reader, value)

        return read_parts

    def noting(self, kind: type[Any], note: Callable[[Any, Any], None]) -> None:
        """Have something noted of each node of a kind, which is then read as it is."""
        read = self._visitor(kind)

        def visit(reader: Any, node: Any) -> None:
            note(reader, node)
            read(reader, node)

        self[kind] = visit


class Attributes(Flows):
    """Reads expressions into tokens: two pieces of code with equal tokens do the same."""

    #: What reads each kind of node, and of part of one.
    visitors: ClassVar[Visitors]
    #: Whether strings stand for the names in them.
    in_annotation = False

    def read(self, node: ast.AST) -> None:
        """Read a statement or an expression."""
        self.visitors[node.__class__](self, node)

    def read_all(self, nodes: Iterable[ast.AST | None]) -> None:
        tokens, visitors = self.tokens, self.visitors
        tokens.append("[")
        for node in nodes:
            visitors[node.__class__](self, node)
        tokens.append("]")

    def read_safely(self, node: ast.AST | None, use: str = "c") -> None:
        """Read an expression whose value is looked at here and not passed on."""
        if isinstance(node, ast.Name):
            self.tokens.append("N" + node.id)
            self.load(use, node.id, "")
        elif isinstance(node, ast.Attribute):
            self.attribute(node, use)
        elif node is None:
            self.tokens.append("None")
        else:
            self.read(node)

    def name(self, node: ast.Name) -> None:
        name = node.id
        self.tokens.append("N" + name)
        if node.ctx.__class__ is not ast.Load:
            self.bind(name)
        elif name == self._receiver:
            self.load_self("r", "")
        else:
            self._scope.loads.add(("r", name, ""))

    def constant(self, node: ast.Constant) -> None:
        value = node.value
        self.tokens.append("K" + repr(value))
        if value.__class__ is str and len(value) < 200:
            if _may_name_code(value):
                self.refs.add("t" + value)
            if self.in_annotation:
                with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                    self.read(ast.parse(value, mode="eval").body)

    # ------------------------------------------------------------------------- attributes and subscripts

    def attribute(self, node: ast.Attribute, use: str = "r", method: str = "") -> None:
        """Read an attribute. `method` is what is called on it by the syntax around it."""
        names = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            names.append(base.attr)
            base = base.value
        names.reverse()
        self.tokens.append("A" + ".".join(names))
        if node.ctx.__class__ is not ast.Load:
            use = "w"
        if not _SPECIAL_ATTRIBUTES.isdisjoint(names):
            use, names = self.special(use, names)
        path = ".".join((*names, method) if method else names)
        if isinstance(base, ast.Name):
            self.tokens.append("N" + base.id)
            self.load(use, base.id, path)
        elif not isinstance(base, ast.Call) or not self._instance_call(base, use, path):
            self._unknown.update(names)
            if use in "wmc":
                self._used_part(use, base, path)
            self._written_into(base) if use == "w" else self.read(base)

    def _used_part(self, use: str, base: ast.expr, path: str) -> None:
        """Note where an object comes from of which an attribute is changed, or a method called."""
        for kind, root, before in sources(base):
            if kind == "e":
                continue
            if use == "c":
                if kind != "z":
                    self.load("o", root, joined(before, path) if before else path)
            elif kind == "z":
                self.load("z", root, before + path.rpartition(".")[0])
            else:
                self.load("a", root, before)

    def special(self, use: str, names: list[str]) -> tuple[str, list[str]]:
        """Note attributes that show what is loaded, source text or docstrings; the last make their owner a value."""
        if not SPIES.isdisjoint(names):
            self.refs.add("D")
        if not SOURCE_READERS.isdisjoint(names):
            self.refs.add("B")
        for position, name in enumerate(names):
            if name in DOCUMENTATION and use != "w":
                self.refs.add("A")
                return "r", names[:position]
        return use, names

    def _instance_call(self, node: ast.Call, use: str, path: str) -> bool:
        """Read `super()` and `type(self)` before a dot; False for anything else."""
        function = node.func
        if self._receiver is None or not isinstance(function, ast.Name) or node.keywords:
            return False
        if function.id not in ("super", "type") or not self._bindings.knows_nothing_of(function.id):
            return False
        names = [argument.id for argument in node.args if isinstance(argument, ast.Name)]
        if len(names) != len(node.args) or (names and names[-1] != self._receiver):
            return False
        if function.id == "super" and len(names) in (0, 2):
            self.refs.add(f"{use}{'^^' if names else '^'}.{path}")
        elif function.id == "type" and len(names) == 1:
            self.load_self(use, path)
        else:
            return False
        self.tokens.append(f"{function.id}({','.join(names)})")
        return True

    def subscript(self, node: ast.Subscript) -> None:
        self.tokens.append("Subscript")
        if node.ctx.__class__ is ast.Load:
            self.read(node.value)
        else:
            self._written_into(node.value, "__setitem__")
            if isinstance(node.slice, ast.Constant) and isinstance(node.value, ast.Name):
                self.load("J", node.value.id, "")
        self.read(node.slice)

    def augmented_assign(self, node: ast.AugAssign) -> None:
        self.tokens.append("AugAssign " + node.op.__class__.__name__)
        if isinstance(node.target, ast.Attribute):
            self._written_into(node.target, "__iadd__")
            base = node.target.value
            if not isinstance(node.value, ast.Constant) and isinstance(base, ast.Name):
                self.load("w", base.id, f"{node.target.attr}.__setitem__")  # a list is changed in place
        else:
            self.read(node.target)
            if isinstance(node.target, ast.Name) and not isinstance(node.value, ast.Constant):
                on_import = self._scope.kind in (MODULE, CLASS)
                self.load("a" if on_import else "w", node.target.id, "" if on_import else "__iadd__")
        self.read(node.value)

    def _written_into(self, base: ast.expr, method: str = "") -> None:
        """Read what is assigned into: a name or an attribute counts as written, not as read. `method` is what is called
        on it."""
        if isinstance(base, ast.Name):
            self.tokens.append("N" + base.id)
            self.load("w", base.id, method)
        elif isinstance(base, ast.Attribute):
            self.attribute(base, "w", method)
        elif isinstance(base, ast.Subscript):
            self.tokens.append("Subscript")
            self._written_into(base.value, "__getitem__")
            self.read(base.slice)
        else:
            self._used_part("w", base, "")
            self.read(base)


def _may_name_code(text: str) -> bool:
    """Whether a string looks like module.name, module:name or path/file.py."""
    if text.endswith(".py"):
        return True
    return ("." in text or ":" in text) and text.replace(".", "").replace(":", "").isidentifier()
