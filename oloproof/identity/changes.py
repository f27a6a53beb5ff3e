"""Which names of the project a piece of code changes, and what decorators do with what they are given."""

from __future__ import annotations

from collections.abc import Iterator

from oloproof.identity.hierarchy import Hierarchy, ProjectClass
from oloproof.identity.knowledge import (
    HARMLESS_STATEMENTS,
    PURE_DECORATORS,
    QUIET_DECORATORS,
    is_quiet_base,
    listed,
)
from oloproof.identity.linking import Links
from oloproof.identity.sources import Module
from oloproof.identity.summary import Unit


class Changes:
    """Reads changes off references."""

    def __init__(self, links: Links, hierarchy: Hierarchy) -> None:
        self._links = links
        self._hierarchy = hierarchy
        self._tame: dict[tuple[ProjectClass, str, int], bool] = {}

    def written(self, module: Module, unit: Unit) -> Iterator[tuple[Module, str] | None]:
        """The names that a unit changes; None for something outside, or for what nobody knows."""
        for ref in unit.refs:
            if ref[0] not in "wms" or ref[1] in "@^":
                continue
            if ref[0] == "s":
                found = self._links.resolve(module, ref[1:])
                if found.outside and not all(listed(name, HARMLESS_STATEMENTS) for name in found.outside):
                    yield None
                continue
            chain, method = ref[1:], ""
            if ref[0] == "m":
                chain, _, method = chain.rpartition(".")
                if not chain or chain.endswith("/"):
                    yield None
                    continue
            found = self._links.resolve(module, chain)
            definitions = found.definitions()
            if ref[0] == "w" and "." not in chain and "/" not in chain:
                yield module, chain  # a name declared global
            for where, name, path in definitions:
                yield where, name
                called = method or ("__setitem__" if path.endswith("__setitem__") else "")
                if called and not self._is_tame(where, name, called):
                    yield None
            yield from found.missing
            if not definitions and not found.missing:
                yield None

    def _is_tame(self, module: Module, name: str, method: str) -> bool:
        """Whether calling a method of what a name stands for changes that alone."""
        summary = module.summary
        if name in summary.containers:
            return True
        bindings = summary.names[name]
        if len(bindings) != 1 or not isinstance(bindings[0], int):
            return False
        if bindings[0] in summary.classes:
            return method == "__setitem__"
        made = [ref[2:] for ref in summary.units[bindings[0]].refs if ref.startswith("n>")]
        classes = [self._hierarchy.only(self._links.resolve(module, each)) for each in made]
        return bool(classes) and all(
            each is not None and self._defines_tamely(each, method) for each in classes
        )

    def _defines_tamely(self, each: ProjectClass, method: str, inert: int = 1) -> bool:
        """Whether a method does no more than keep what it is given; with `inert` 2, so does the function it gives."""
        key = (each, method, inert)
        if key not in self._tame:
            self._tame[key] = False  # while a method calls itself
            family = self._hierarchy.family(each)
            definer = family.definer(method)
            if definer is not None and family.quiet:
                units = [definer.module.summary.units[number] for number in definer.outline.members[method]]
                self._tame[key] = all(
                    unit.inert >= inert and None not in self.written(definer.module, unit) for unit in units
                )
        return self._tame[key]

    def decorator(self, module: Module, text: str) -> list[tuple[Module, str]] | None:
        """The names that a decorator changes when it is applied; None when nobody knows."""
        if text.startswith("class "):
            return self._base(module, text.removeprefix("class "))
        chain = text.removesuffix("()")
        if chain == "?":
            return None
        owner, _, method = chain.rpartition(".")
        if owner and self._is_own_object(module, owner, method, called=text.endswith("()")):
            return [(where, name) for where, name, _ in self._links.resolve(module, owner).definitions()]
        found = self._links.resolve(module, chain)
        if found.wholes or found.stars:
            return None
        changed: list[tuple[Module, str]] = []
        for where, name, path in found.definitions():
            for binding in where.summary.names[name]:
                unit = where.summary.units[binding] if isinstance(binding, int) else None
                if unit is None:
                    continue
                targets = list(self.written(where, unit))
                if path or unit.inert < (2 if text.endswith("()") else 1) or None in targets:
                    return None
                changed += [target for target in targets if target is not None]
        known = PURE_DECORATORS | QUIET_DECORATORS
        if not all(listed(name, known) for name in found.outside) or not (found.outside or found.names):
            return None
        if any(listed(name, QUIET_DECORATORS) for name in found.outside):
            changed.append((module, ""))
        return changed

    def _base(self, module: Module, chain: str) -> list[tuple[Module, str]] | None:
        """As `_decorator`, for the base of a class inside a compound statement."""
        found = self._links.resolve(module, chain) if chain != "?" else None
        if found is None or found.wholes or found.definitions() or not all(map(is_quiet_base, found.outside)):
            return None
        return []

    def _is_own_object(self, module: Module, chain: str, method: str, *, called: bool) -> bool:
        """Whether the chain is an instance of a class of the project whose method does no more than keep what it is
        given, or a single-dispatch function."""
        found = self._links.resolve(module, chain)
        definitions = found.definitions()
        if not definitions or found.wholes or found.outside:
            return False
        for where, name, path in definitions:
            bindings = where.summary.names[name]
            if path or len(bindings) != 1 or not isinstance(bindings[0], int):
                return False
            unit = where.summary.units[bindings[0]]
            made = [ref[2:] for ref in unit.refs if ref.startswith("n>")]
            classes = [self._hierarchy.only(self._links.resolve(where, each)) for each in made]
            if classes:
                if not all(each and self._defines_tamely(each, method, 1 + called) for each in classes):
                    return False
            elif method != "register" or not any("singledispatch" in ref for ref in unit.refs):
                return False
        return True
