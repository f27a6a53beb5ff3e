"""A class taken apart: the class itself, its methods and its attributes."""

from __future__ import annotations

import ast
from collections.abc import Callable

from oloproof.identity.bindings import Bindings
from oloproof.identity.normal import Reader
from oloproof.identity.scopes import dotted_chain
from oloproof.identity.summary import ClassOutline, Unit
from oloproof.identity.units import Position, decorations, function_unit, unit_of

_QUIET = (ast.Assign, ast.AnnAssign, ast.Pass, ast.Import, ast.ImportFrom)


class ClassReader:
    """Reads one class definition; `add` keeps a unit and gives its number, `add_class` reads a class inside it."""

    def __init__(
        self,
        node: ast.ClassDef,
        name: str,
        bindings: Bindings,
        position: Position,
        add: Callable[[Unit], int],
    ) -> None:
        self._node = node
        self._name = name
        self._bindings = bindings
        self._position = position
        self._add = add
        self._names = frozenset(Bindings(node.body).count)
        self._header = Reader(bindings, class_names=self._names)
        self._members: dict[str, list[int]] = {}
        self._attributes: list[str] = []
        self._computed: list[str] = []
        self._loud = False
        #: Whether the class body or an inner class calls something; whether something in it is decorated.
        self.calls = False
        self.decorated = False

    def outline(self, keep: Callable[[int, ClassOutline], None]) -> tuple[int, Unit]:
        """Read the class; every outline, of this class and those in it, goes to `keep` with the number of its unit."""
        node, header = self._node, self._header
        header.tokens += ("ClassDef", node.name)
        header.read_all(node.decorator_list)
        decorators = decorations(node.decorator_list, header)
        header.tokens.append("[")
        for base in node.bases:
            self._base(base)
        header.tokens.append("]")
        for keyword in node.keywords:
            header.tokens.append(f"={keyword.arg}")
            header.read_safely(keyword.value)
        header.calls = False
        for statement in node.body:
            self._statement(statement, keep)
        self.calls = self.calls or header.calls
        self.decorated = self.decorated or bool(decorators)
        docs = ast.ClassDef(node.name, [], [], _docstring(node), [])
        unit = unit_of(
            header,
            self._name,
            documented=[docs],
            bindings=self._bindings,
            position=self._position,
            decorators=decorators,
        )
        number = self._add(unit)
        for computed in self._computed:
            self._members.setdefault(computed, []).append(number)
        keep(number, self._outline())
        return number, unit

    def _base(self, base: ast.expr) -> None:
        header = self._header
        named = base.value if isinstance(base, ast.Subscript) else base
        chain = dotted_chain(named)
        if chain is None:
            header.read(base)
            return
        root, _, path = chain.partition(".")
        header.tokens.append("N" + chain)
        header.load("b", root, path)
        if isinstance(base, ast.Subscript):
            header.read(base.slice)

    def _outline(self) -> ClassOutline:
        node = self._node
        metaclasses = [keyword.value for keyword in node.keywords if keyword.arg in ("metaclass", None)]
        known = ("abc.ABCMeta", "builtins.type")
        return ClassOutline(
            self._members,
            self._attributes,
            [
                dotted_chain(base.value if isinstance(base, ast.Subscript) else base) or "?"
                for base in node.bases
            ],
            fields=any(not self._is_ours(decorator) for decorator in node.decorator_list),
            metaclass=any(self._bindings.dotted(dotted_chain(m) or "?") not in known for m in metaclasses),
            loud=self._loud,
        )

    def _is_ours(self, decorator: ast.expr) -> bool:
        chain = dotted_chain(decorator.func if isinstance(decorator, ast.Call) else decorator)
        return (self._bindings.dotted(chain or "?") or "").startswith("oloproof.")

    def _statement(self, node: ast.stmt, keep: Callable[[int, ClassOutline], None]) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            unit = function_unit(
                node, f"{self._name}.{node.name}", self._bindings, self._position, self._names
            )
            self.decorated = self.decorated or bool(unit.decorators)
            self._members.setdefault(node.name, []).append(self._add(unit))
        elif isinstance(node, ast.ClassDef):
            inside = ClassReader(node, f"{self._name}.{node.name}", self._bindings, self._position, self._add)
            number, _ = inside.outline(keep)
            self.calls = self.calls or inside.calls
            self.decorated = self.decorated or inside.decorated
            self._loud = self._loud or inside._loud
            self._members.setdefault(node.name, []).append(number)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            self._assignment(node)
        elif not isinstance(node, ast.Pass) and not _is_text(node):
            self._keep_in_header(node)

    def _assignment(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if len(names) != len(targets):
            self._keep_in_header(node)
            return
        reader = Reader(self._bindings, class_names=self._names)
        reader.read(node)
        self._attributes += names
        if reader.calls:
            header = self._header
            self._computed += names
            header.read(node)
            return
        unit = unit_of(reader, f"{self._name}.{names[0]}", bindings=self._bindings, position=self._position)
        number = self._add(unit)
        for name in names:
            self._members.setdefault(name, []).append(number)

    def _keep_in_header(self, node: ast.stmt) -> None:
        self._header.read(node)
        self._computed += Bindings([node]).count
        self._loud = self._loud or not isinstance(node, _QUIET)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _docstring(node: ast.ClassDef) -> list[ast.stmt]:
    return [statement for statement in node.body[:1] if _is_text(statement)]
