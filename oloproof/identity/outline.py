"""A source file taken apart into units: what it defines, binds and does when it is imported."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from oloproof.identity.bindings import Bindings, imported, inner, without_dead_branches
from oloproof.identity.classes import ClassReader
from oloproof.identity.knowledge import BUILTIN_NAMES, MUTATORS, top_level
from oloproof.identity.normal import Reader, short_digest
from oloproof.identity.scopes import Function, dotted_chain
from oloproof.identity.summary import ClassOutline, Summary, Unit
from oloproof.identity.units import decorations, function_unit, unit_of

_QUIET = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Pass, ast.Raise),
)
_BRANCHES = (ast.If, ast.Try, ast.TryStar, ast.With, ast.Match)
_QUIET_MANAGERS = frozenset({"open", "suppress", "catch_warnings"})


class Outline:
    """Reads a module; `summary` gives what was found. `program`: it is run as one."""

    def __init__(self, tree: ast.Module, *, program: bool = False) -> None:
        tree.body = without_dead_branches(tree.body, program=program)
        self._bindings = Bindings(tree.body)
        #: Names that mean different things at different places: bound several times, or builtins too.
        self._rebound = {n for n, times in self._bindings.count.items() if times > 1 or n in BUILTIN_NAMES}
        self._units: list[Unit] = []
        self._names: dict[str, list[int | str]] = {}
        self._classes: dict[int, ClassOutline] = {}
        self._on_import: list[int | str] = []
        self._suspects: list[int] = []
        self._callers: list[int] = []
        self._libraries: dict[str, None] = {}
        self._patches = False
        self._seen: Counter[str] = Counter()
        self._acts = 0
        text = ast.get_docstring(tree, clean=False)
        if text is not None and "__doc__" not in self._bindings.count:
            digest = short_digest(["docstring", repr(text)])
            self._names["__doc__"] = [self._add(Unit("__doc__", digest, docs=digest))]
        for statement in tree.body:
            self._statement(statement)

    def summary(self, text: str) -> Summary:
        used = {_root(ref) for unit in self._units for ref in (*unit.refs, *unit.doc_refs)}
        unused = [
            target
            for name, targets in self._bindings.imports.items()
            if name not in used
            for target in targets
            if not target.startswith(("/.", "/__future__/"))
        ]
        return Summary(
            text,
            units=self._units,
            names=self._names,
            classes=self._classes,
            on_import=self._on_import,
            stars=self._bindings.stars,
            suspects=self._suspects,
            callers=self._callers,
            patches=self._patches,
            unused=unused,
            libraries=list(self._libraries),
            assumed=sorted(self._bindings.assumed),
            containers=sorted(self._bindings.fresh),
            constants=sorted(self._bindings.constants),
        )

    def _add(self, unit: Unit) -> int:
        self._units.append(unit)
        return len(self._units) - 1

    def _bind(self, name: str, what: int | str) -> None:
        self._names.setdefault(name, []).append(what)
        self._seen[name] += 1

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._function(node)
        elif isinstance(node, ast.ClassDef):
            self._class(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node)
        elif not isinstance(node, ast.Pass | ast.Global | ast.Raise) and not _is_text(node):
            self._other(node)

    def _function(self, node: Function) -> None:
        unit = function_unit(node, node.name, self._bindings, self._position)
        number = self._add(unit)
        if unit.decorators:
            self._suspects.append(number)
        self._bind(node.name, number)

    def _class(self, node: ast.ClassDef) -> None:
        reader = ClassReader(node, node.name, self._bindings, self._position, self._add)
        number, _ = reader.outline(self._classes.__setitem__)
        if reader.decorated or node.bases or node.keywords or self._classes[number].loud:
            self._suspects.append(number)
        if reader.calls:
            self._callers.append(number)
        self._bind(node.name, number)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name, target in imported(node):
            if name == "*":
                self._seen[name] += 1
            else:
                self._bind(name, target)
        if isinstance(node, ast.ImportFrom):
            self._on_import += [f"{target.removesuffix('*')}" for _, target in imported(node)]
        else:
            self._on_import += [f"/{alias.name}/" for alias in node.names]
        self._note_libraries(node)

    def _note_libraries(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Import):
            self._libraries.update((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if not node.level and node.module and node.module != "__future__":
                self._libraries[node.module] = None
        else:
            for statement in inner(node):
                self._note_libraries(statement)

    def _other(self, node: ast.stmt) -> None:
        """A binding, a compound statement, or a statement that acts."""
        changes = list(_changed(node))
        fresh = self._own_containers(node, changes)
        acts = not fresh if changes else not self._is_quiet(node)
        reader = Reader(self._bindings)
        reader.read(node)
        names = list(dict.fromkeys([*fresh, *reader.bound]))
        if not names and not acts and not reader.calls:
            return
        number = self._add(self._binding_unit(reader, names))
        if acts:
            self._on_import.append(number)
            self._acts += 1
        elif reader.calls:
            self._callers.append(number)
        if self._units[number].decorators:
            self._suspects.append(number)
        for name in names:
            self._bind(name, number)
        for name, target in _inner_imports(node):
            self._bind(name, target)
        self._on_import += [ref[1:] for ref in self._units[number].refs if ref[0] == "i"]
        self._note_libraries(node)

    def _binding_unit(self, reader: Reader, names: list[str]) -> Unit:
        found: list[str] = []
        for definition in reader.definitions:
            found += decorations(definition.decorator_list, reader)
            if isinstance(definition, ast.ClassDef):
                found += [f"class {dotted_chain(base) or '?'}" for base in definition.bases]
                found += ["?" for keyword in definition.keywords]
        documented = reader.definitions
        reader.finish()
        return unit_of(
            reader,
            ",".join(names),
            documented=documented,
            bindings=self._bindings,
            decorators=found,
            position=self._position,
        )

    def _position(self, reader: Reader) -> Iterator[str]:
        """What a statement that is executed on import finds: which binding of a name that has several, which stars
        and actions came before."""
        if self._rebound:
            for root in sorted(self._rebound.intersection(map(_root, reader.refs))):
                yield f"{root}#{self._seen[root]}"
        if self._seen["*"] or self._bindings.stars:
            yield f"stars {self._seen['*']}"
        if reader.calls and self._acts:
            yield f"after {self._acts}"

    def _own_containers(self, node: ast.stmt, changes: list[str]) -> list[str]:
        """The names of this module's own containers, if the statement changes those alone; what changes something
        imported or a class is noted."""
        for chain in changes:
            if chain.endswith("()"):
                continue
            root = top_level(chain)
            foreign = root in self._bindings.imports or root in self._bindings.classes
            if chain in ("?", "builtins") or (foreign and self._bindings.dotted(chain) != "os.environ"):
                self._patches = True
        simple = isinstance(node, ast.Assign | ast.AugAssign | ast.Delete | ast.Expr | ast.AnnAssign)
        own = [name for chain in changes if (name := chain.removesuffix("()")) in self._bindings.fresh]
        return own if simple and len(own) == len(changes) else []

    def _is_quiet(self, node: ast.stmt) -> bool:
        """Whether a statement does nothing but bind names, however it is decided which."""
        if isinstance(node, ast.Assign):
            return not any(isinstance(target, ast.Name) and target.id == "_" for target in node.targets)
        if isinstance(node, _QUIET):
            return True
        if isinstance(node, ast.Expr):
            return _is_text(node)
        if isinstance(node, ast.Assert):
            return not any(isinstance(part, ast.Call) for part in ast.walk(node))
        if isinstance(node, ast.With) and not all(
            _is_quiet_manager(item.context_expr) for item in node.items
        ):
            return False
        if isinstance(node, _BRANCHES):
            return all(self._is_quiet(statement) for statement in inner(node))
        return type(node).__name__ == "TypeAlias"


def _is_text(node: ast.stmt) -> bool:
    """Whether it is a docstring, or a declaration without a value."""
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_quiet_manager(node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return name in _QUIET_MANAGERS


def _changed(node: ast.stmt) -> Iterator[str]:
    """What a statement assigns into, deletes from or changes by a method: `name` for `name[...] = x`, `name()` for
    `name.append(x)`, `name.attribute` for `name.attribute = x`, `?` for the rest."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        targets = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
        targets = [node.target]
    elif isinstance(node, ast.With | ast.AsyncWith):
        targets = [item.optional_vars for item in node.items if item.optional_vars]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield from _changed_by_call(node.value)
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Tuple | ast.List):
            targets += target.elts
        elif isinstance(target, ast.Starred):
            targets.append(target.value)
        elif isinstance(target, ast.Subscript):
            yield dotted_chain(target.value) or "?"
        elif isinstance(target, ast.Attribute):
            yield dotted_chain(target) or "?"
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for statement in inner(node):
            yield from _changed(statement)


def _changed_by_call(node: ast.Call) -> Iterator[str]:
    function = node.func
    if isinstance(function, ast.Name) and function.id in ("setattr", "delattr") and node.args:
        yield f"{dotted_chain(node.args[0]) or '?'}.?"
    elif (
        isinstance(function, ast.Attribute)
        and function.attr in MUTATORS
        and isinstance(function.value, ast.Name)
    ):
        yield f"{function.value.id}()"


def _inner_imports(node: ast.stmt) -> Iterator[tuple[str, str]]:
    for statement in inner(node):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield from ((name, target) for name, target in imported(statement) if name != "*")
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _inner_imports(statement)


def _root(ref: str) -> str:
    chain = ref.partition(">")[2] if ref[0] == "n" else ref[1:]
    return top_level(chain)
