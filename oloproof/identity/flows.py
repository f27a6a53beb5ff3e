"""Where the objects go that names hold: under which other names, into which attributes, to whom."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from oloproof.identity.aliases import Source, part_of, sources
from oloproof.identity.knowledge import top_level
from oloproof.identity.scopes import CLASS, MODULE, Names, Scope, joined

#: Stand for a parameter as the origin of an object, and for a default that is made once.
PARAMETER, KEPT_ORIGIN = "*parameter", "*kept"
KEPT: Source = ("a", KEPT_ORIGIN, "")


class Flows(Names):
    """Follows objects within a unit, and notes what leaves it."""

    def used_here(self, scope: Scope, use: str, name: str, path: str) -> None:
        """A name of the scope itself is used."""
        if path and use not in "azoyY":
            self._unknown.update(path.split("."))
        if use == "p":
            self.refs.add("r@")
        elif use in "wma":
            if path or use == "a":
                self._change(scope, name, part="." in path or "__getitem__" in path)
        elif use in "yo" or (use == "c" and path):
            for kind, root, rest in self._origins(scope, name, part=True, seen=set()):
                if kind == "z":
                    self._note(scope, use.replace("y", "Y").replace("c", "o"), root, rest)
                else:
                    after = "" if use == "y" else path
                    self._note(
                        scope, "o" if use == "c" else use, root, joined(rest, after) if rest else after
                    )

    def _change(self, scope: Scope, name: str, *, part: bool) -> None:
        """What a name holds is changed, or a part of it."""
        for kind, root, path in self._origins(scope, name, part=part, seen=set()):
            self._note(scope, "z" if kind == "z" else "a", root, path)

    def _note(self, scope: Scope, use: str, root: str, path: str) -> None:
        if root == PARAMETER:
            if use in "az":
                self.refs.add("P")
        elif root == KEPT_ORIGIN:
            if use in "az":
                self.refs.add("Q")
        elif root == self._receiver:
            if path and use == "a":
                self.load_self("w", f"{path}.__setitem__")
        elif scope.parent is not None:
            scope.parent.loads.add((use, root, path))

    def _origins(self, scope: Scope, name: str, *, part: bool, seen: set[str]) -> Iterator[Source]:
        """Where what a name of the scope holds comes from, outside of the scope; `part` for a part of it."""
        if name in seen:
            return
        seen.add(name)
        if name in scope.parameters:
            yield "a", PARAMETER, ""
        for kind, root, path in scope.aliases.get(name, ()):
            if kind == "e" and not part:
                continue
            if root == self._receiver:
                yield kind, root, path
            elif root in scope.bound and kind != "z":
                yield from self._origins(scope, root, part=part or kind == "i", seen=seen)
            elif root not in scope.bound:
                yield kind, root, path

    def given_from(self, scope: Scope, called: str, source: Source) -> None:
        """Something is given to what is called."""
        kind, root, _ = source
        if top_level(called) in scope.bound:
            called = "?" + called.rpartition(".")[2]
        if root == self._receiver or root not in scope.bound:
            self._give(scope, called, source)
        elif kind != "z":
            for origin in self._origins(scope, root, part=True, seen=set()):
                self._give(scope, called, origin)

    def _give(self, scope: Scope, called: str, source: Source) -> None:
        root = source[1]
        if root == PARAMETER:
            self.refs.add("G" + called)
        elif root == KEPT_ORIGIN:
            self.refs.add("Q")
        elif root == self._receiver:
            if source[2] and source[0] != "z":
                self.refs.add(f"g{called}<{source[0]}@.{source[2]}")
        elif scope.parent is not None:
            scope.parent.given.append((called, source))

    def share(self, attribute: str, value: ast.expr) -> None:
        """Note what an attribute of the instance shares with others."""
        found = sources(value)
        if isinstance(value, ast.Call):
            for argument in (*value.args, *(keyword.value for keyword in value.keywords)):
                found = found + sources(argument)
        if isinstance(value, ast.Attribute):
            found = found + sources(value.value)
        for kind, root, path in found:
            if kind == "z":
                continue
            if root != self._receiver:
                self._scope.handed.setdefault(root, set()).add(attribute)
            elif path:
                self.refs.add(f"X{attribute}<{top_level(path)}")

    def alias(self, target: ast.AST, value: ast.expr) -> None:
        """Note that what is assigned to a target comes from a value."""
        if self._scope.kind not in (MODULE, CLASS):
            self._alias(target, set(sources(value)))

    def alias_parts(self, target: ast.AST, whole: ast.expr) -> None:
        """Note that what is assigned to a target is one part of something after the other."""
        if self._scope.kind not in (MODULE, CLASS):
            self._alias(target, {part_of(source) for source in sources(whole)})

    def _alias(self, target: ast.AST, found: set[Source]) -> None:
        if not found:
            return
        if isinstance(target, ast.Name):
            self._scope.aliases.setdefault(target.id, set()).update(found)
        elif isinstance(target, ast.Starred):
            self._alias(target.value, found)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = {part_of(source) for source in found}
            for element in target.elts:
                self._alias(element, parts)
