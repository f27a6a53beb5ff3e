"""Which names in a piece of code are its own and which refer to something outside it.

What is referred to is a set of strings: letters for the kind of use, then a chain of names.

    r  read, as a value that may go anywhere       c  called, or read by something that does not pass it on
    w  written: what the chain names is assigned, deleted, or assigned into
    s  called by a statement that throws the result away
    m  a method that changes the object it is called on (`m` cache.update), also when that is a decorator
    n  `nattribute>chain`: a new instance of what the chain names, assigned to an attribute of self
    p  a method of a class called with self as its first argument: Base.__init__(self)
    b  a base class                                         k  compared with None
    l  a function that imports, called with a literal       T  that literal
    i  an import statement                                  t  a string that may name a module or what is in it
    D  looks at whatever is loaded                          B  reads source text
    A  reads a docstring or annotations                     V  passes on definitions inside it, with theirs
    P  changes an object that it is given
    a  changed by another name than its own            z  what calling it gives is changed: `zf>attributes`
    o  a method is called on it by another name        g  given to what is called: `gcalled<chain`
    y  returned                                        Y  what calling it gives is returned
    G  a function that is given an object that this one was given
    K  what it gives may be kept from call to call     Q  changes an object that it keeps from call to call
    X  two attributes of the instance may share an object: `Xone<other`
    E  has no parameters                               J  assigned into under a key that is fixed
    u  the attributes it asks of objects of which nothing is known, with spaces between them; `*` for any

A chain begins with a name that is global in the module; or with `@`, the instance or class of the method; or with
`^`, what `super()` gives (`^^` with arguments); or it is `/module/name.attribute`, from an import in a function.
"""

from __future__ import annotations

import ast

from oloproof.identity.aliases import Source
from oloproof.identity.bindings import Bindings

MODULE, CLASS, FUNCTION, COMPREHENSION = range(4)
Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Kinds of use that lead nowhere by themselves: they say what a piece of code does, to those who look at all of it.
NOTES = frozenset("uVPazogyYGKQEJX")
_NOTHING: frozenset[str] = frozenset()


class Scope:
    """The names of a function, class or comprehension, and what is loaded in it before it is known which those are."""

    __slots__ = (
        *("aliases", "borrowed", "bound", "given", "handed", "imports", "kind", "loads"),
        *("outside", "parameters", "parent", "tools"),
    )

    def __init__(self, kind: int, parent: Scope | None) -> None:
        self.kind = kind
        self.parent = parent
        self.bound: set[str] = set()
        self.parameters: frozenset[str] = _NOTHING
        #: Names declared global, and nonlocal.
        self.outside: frozenset[str] = _NOTHING
        self.borrowed: frozenset[str] = _NOTHING
        #: The targets of its imports, by the name they bind.
        self.imports: tuple[tuple[str, str], ...] = ()
        #: Uses of names: kind of use, the name, the attributes after it.
        self.loads: set[tuple[str, str, str]] = set()
        #: Where what its names hold comes from; and what it gives to whom.
        self.aliases: dict[str, set[Source]] = {}
        self.given: list[tuple[str, Source]] = []
        #: The attributes of the instance that were made with each name.
        self.handed: dict[str, set[str]] = {}
        #: Definitions inside it, whose docstrings count if they are passed on as values.
        self.tools: tuple[Function | ast.ClassDef, ...] = ()


class Names:
    """Keeps the scopes while a unit of a module is read.

    `class_names` are the names that the class around the unit binds, if there is one: what is evaluated in the class
    body may mean those, and functions are methods. After `finish`, `refs` are complete.
    """

    def __init__(self, bindings: Bindings, *, class_names: frozenset[str] | None = None) -> None:
        self.tokens: list[str] = []
        self.refs: set[str] = set()
        #: Names that the unit binds in the module.
        self.bound: list[str] = []
        self._bindings = bindings
        self._class_names = class_names or frozenset()
        self._module = Scope(MODULE, None)
        #: The scope of the class around the unit: functions in it are methods.
        self._class = None if class_names is None else Scope(CLASS, self._module)
        self._scope = self._class or self._module
        #: Attributes of objects of which nothing is known; `*` when their names are made at run time.
        self._unknown: set[str] = set()
        self._receiver: str | None = None

    def finish(self) -> None:
        """Turn what is still open into references."""
        scope = self._scope
        if scope is not self._module:
            for use, root, path in scope.loads:
                if root in self._class_names:
                    self.refs.add(f"{use}@.{joined(root, path)}")
            self._module.loads |= scope.loads
            self._module.given += scope.given
        for use, root, path in self._module.loads:
            self.refs.add("r@" if root == "__class__" else use + joined(root, path))
        for called, (kind, root, path) in self._module.given:
            self.refs.add(f"g{called}<{kind}{joined(root, path)}")
        if self._unknown:
            self.refs.add("u" + " ".join(sorted(self._unknown)))

    def show(self, node: Function | ast.ClassDef) -> None:
        """Note that somebody may be shown the docstring and annotations of a definition inside this unit."""
        raise NotImplementedError

    def load(self, use: str, root: str, path: str) -> None:
        """Note a use of a name."""
        if root == self._receiver:
            self.load_self(use, path)
        else:
            self._scope.loads.add((use, root, path))

    def load_self(self, use: str, path: str) -> None:
        """Note a use of the instance or class whose method is read."""
        path = path.removeprefix("__class__.")
        if path in ("", "__class__", "__dict__"):
            self.refs.add("r@")
        elif use[0] in "ns" or (use == "m" and "." not in path):
            self.refs.add(f"c@.{path}")
        else:
            self.refs.add(f"{use}@.{path}")

    def bind(self, name: str) -> None:
        """Note that a name is bound in the scope that is read."""
        scope = self._scope
        while scope.kind == COMPREHENSION and scope.parent is not None:
            scope = scope.parent
        if name in scope.outside:
            self.refs.add(f"w{name}")
        elif scope.kind == MODULE:
            self.bound.append(name)
        elif name not in scope.borrowed:
            scope.bound.add(name)

    def open(self, kind: int) -> Scope:
        self._scope = Scope(kind, self._scope)
        return self._scope

    def close(self) -> None:
        """Pass what the scope does not bind itself on to the next one that can."""
        scope = self._scope
        for node in scope.tools:
            if ("r", node.name, "") in scope.loads:
                self.show(node)
        parent = scope.parent
        assert parent is not None
        self._scope = parent
        while scope.kind != CLASS and parent.kind == CLASS and parent.parent is not None:
            parent = parent.parent
        imported = {name for name, _ in scope.imports}
        for load in scope.loads:
            use, root, path = load
            if root in scope.outside:
                self._module.loads.add(load)
            elif root in imported:
                self.refs.update(
                    use + extended(target, path) for name, target in scope.imports if name == root
                )
            elif scope.kind == CLASS or root not in scope.bound:
                parent.loads.add(load)
            else:
                self.used_here(scope, use, root, path)
        for attributes in scope.handed.values():
            first, *others = sorted(attributes)
            self.refs.update(f"X{first}<{other}" for other in others)
        for called, source in scope.given:
            self.given_from(scope, called, source)

    def used_here(self, scope: Scope, use: str, name: str, path: str) -> None:
        """A name that the scope itself binds is used; the scope is closed."""
        raise NotImplementedError

    def given_from(self, scope: Scope, called: str, source: Source) -> None:
        """In a scope that is closed, something was given to what is called."""
        raise NotImplementedError


def joined(root: str, path: str) -> str:
    return f"{root}.{path}" if path else root


def extended(target: str, path: str) -> str:
    """The target of an import, /module/name or /module/, with attributes after it."""
    return target + ("." if path and not target.endswith("/") else "") + path


def dotted_chain(node: ast.expr) -> str | None:
    """`a.b.c` as a string; None for anything but names and attributes."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    names.append(node.id)
    return ".".join(reversed(names))


def first_parameter(node: ast.arguments) -> str | None:
    """The name under which a method knows its instance or class."""
    parameters = [*node.posonlyargs, *node.args]
    return parameters[0].arg if parameters else None
