"""The names a module binds at its top level, found before anything in it is read closely."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set

from oloproof.identity.knowledge import BUILTIN_NAMES, listed, top_level

_FRESH_DISPLAYS = (
    ast.List,
    ast.Dict,
    ast.Set,
    ast.Tuple,
    ast.Constant,
    ast.ListComp,
    ast.DictComp,
    ast.SetComp,
)
_FRESH_CALLS = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque"})
_CONSTANT_CALLS = frozenset(
    (
        *("builtins.float", "builtins.frozenset", "builtins.int", "builtins.len", "builtins.str"),
        *("os.getenv", "pathlib.Path", "re.compile"),
    )
)
_COMPOUND = (
    ast.If,
    ast.Try,
    ast.TryStar,
    ast.With,
    ast.AsyncWith,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.Match,
)
_IS_PROGRAM = "__name__ == '__main__'"
_BLOCKS = ("body", "orelse", "finalbody")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Bindings:
    """How often each name is bound at module level, and which imports bind it.

    `imports` maps a name to targets of the form `/a.b/` (the module a.b) or `/a.b/c` (what a.b calls c); relative
    modules keep their dots. `fresh` are the names that only ever hold a container made on the spot, so that
    changing it changes nothing else.
    """

    def __init__(self, body: Iterable[ast.stmt]) -> None:
        self.count: dict[str, int] = {}
        self.imports: dict[str, list[str]] = {}
        self.stars: list[str] = []
        self.fresh: set[str] = set()
        self.classes: set[str] = set()
        #: Outside packages of which something was looked up in a list of known things.
        self.assumed: set[str] = set()
        self._stale: set[str] = set()
        #: Names that only ever hold texts, numbers and the like.
        self.constants: set[str] = set()
        self._changeable: set[str] = set()
        for statement in body:
            self._statement(statement)
        self.fresh -= self._stale
        self.constants -= self._changeable

    def dotted(self, chain: str) -> str | None:
        """The full dotted name behind `name.attribute...` when only outside code can stand behind it: what an
        absolute import binds, or a builtin. None when the project itself binds the name, or nobody knows."""
        root, _, rest = chain.partition(".")
        if root in self.count:
            targets = self.imports.get(root, [])
            if not targets or targets[0].startswith("/."):
                return None
            return ".".join(part for part in (*targets[0][1:].split("/"), rest) if part)
        if root in BUILTIN_NAMES or not self.stars:
            return f"builtins.{chain}"
        return None

    def is_listed(self, chain: str | None, names: Set[str]) -> bool:
        """Whether an outside thing is on a list of known ones."""
        dotted = self.dotted(chain) if chain else None
        if dotted is None or not listed(dotted, names):
            return False
        self.assumed.add(top_level(dotted))
        return True

    def knows_nothing_of(self, name: str) -> bool:
        """Whether a builtin of this name is the builtin."""
        return name not in self.count

    def _is_constant(self, value: ast.expr) -> bool:
        """Whether a value is a text, a number, or something else that nobody can change."""
        if isinstance(value, ast.Tuple):
            return all(map(self._is_constant, value.elts))
        if isinstance(value, ast.UnaryOp):
            return self._is_constant(value.operand)
        if isinstance(value, ast.Call):
            called = value.func
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                return self.dotted(f"{called.value.id}.{called.attr}") in _CONSTANT_CALLS
            return isinstance(called, ast.Name) and self.dotted(called.id) in _CONSTANT_CALLS
        return isinstance(value, ast.Constant | ast.JoinedStr)

    def _bind(self, name: str, *, fresh: bool = False, constant: bool = False) -> None:
        (self.constants if constant else self._changeable).add(name)
        self.count[name] = self.count.get(name, 0) + 1
        (self.fresh if fresh else self._stale).add(name)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, _DEFINITIONS):
            self._bind(node.name)
            if isinstance(node, ast.ClassDef):
                self.classes.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name, target in imported(node):
                if name == "*":
                    self.stars.append(target)
                else:
                    self._bind(name)
                    self.imports.setdefault(name, []).append(target)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            if node.value is None:
                return
            targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else [node.target]
            for each in targets:
                alone = isinstance(each, ast.Name)
                for name in stored_names(each):
                    self._bind(
                        name,
                        fresh=alone and _is_fresh(node.value),
                        constant=alone and self._is_constant(node.value),
                    )
        elif isinstance(node, _COMPOUND):
            for name in stored_names(node):
                self._bind(name)
            for statement in inner(node):
                self._statement(statement)
        else:
            for name in stored_names(node):
                self._bind(name)


def without_dead_branches(body: list[ast.stmt], *, program: bool = False) -> list[ast.stmt]:
    """The statements of a module that a worker can execute: what stands under `if TYPE_CHECKING`, and unless it is a
    program under `if __name__ == "__main__"`, is left out, also inside classes and compound statements."""
    names = set() if program else {_IS_PROGRAM}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id == "TYPE_CHECKING" and getattr(node.value, "value", None) is False:
                names.add("TYPE_CHECKING")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name, target in imported(node):
                if target in ("/typing/", "/typing_extensions/"):
                    names.add(f"{name}.TYPE_CHECKING")
                elif target in ("/typing/TYPE_CHECKING", "/typing_extensions/TYPE_CHECKING"):
                    names.add(name)
    return _live(body, names)


def _live(body: list[ast.stmt], never: set[str]) -> list[ast.stmt]:
    kept = []
    for node in body:
        if isinstance(node, ast.If) and _never_true(node.test, never):
            kept += _live(node.orelse, never)
            continue
        kept.append(node)
        if isinstance(node, (*_COMPOUND, ast.ClassDef)):
            for part in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                for field in _BLOCKS:
                    if block := getattr(part, field, None):
                        setattr(part, field, _live(block, never))
    return kept


def _never_true(test: ast.expr, never: set[str]) -> bool:
    if isinstance(test, ast.Name | ast.Attribute):
        return ast.unparse(test) in never
    return isinstance(test, ast.Compare) and ast.unparse(test) in never


def inner(node: ast.stmt) -> Iterator[ast.stmt]:
    """The statements directly inside a compound statement, of all its branches."""
    for field in _BLOCKS:
        yield from getattr(node, field, ())
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield from part.body


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The names that an import binds, each with its target."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"/{'.' * node.level}{node.module or ''}/{alias.name}"
        elif alias.asname:
            yield alias.asname, f"/{alias.name}/"
        else:
            yield top_level(alias.name), f"/{top_level(alias.name)}/"


def stored_names(node: ast.AST) -> Iterator[str]:
    """Names that a statement's or an expression's own parts bind in the scope it stands in; the statements inside a
    compound statement are left out."""
    stack: list[ast.AST] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Name):
            if not isinstance(part.ctx, ast.Load):
                yield part.id
            continue
        if isinstance(part, ast.MatchAs | ast.MatchStar | ast.ExceptHandler) and part.name:
            yield part.name
        elif isinstance(part, ast.MatchMapping) and part.rest:
            yield part.rest
        comprehension = isinstance(part, ast.comprehension)
        for child in ast.iter_child_nodes(part):
            if isinstance(child, ast.stmt | ast.Lambda) or (comprehension and child is part.target):  # type: ignore[attr-defined]
                continue
            stack.append(child)


def _is_fresh(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        called = value.func
        name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
        return name in _FRESH_CALLS
    return isinstance(value, _FRESH_DISPLAYS)
