"""Which functions change a module-level name, a class or what a function keeps, by another name than its own.

An object can be changed through an alias, through a function that is given it or returns it, through a method of its
own, or through a part of it. Whoever does so counts for whoever reads the object; and whoever calls him, since that
decides what is put there. The references that tell of it are made in `scopes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from oloproof.identity.callers import Callers
from oloproof.identity.changers import Changers
from oloproof.identity.hierarchy import Hierarchy, ProjectClass
from oloproof.identity.knowledge import MUTATORS, SEEDS, top_level
from oloproof.identity.linking import Links
from oloproof.identity.sources import Module
from oloproof.identity.summary import Unit

#: A unit, and a name of a module.
Place = tuple[Module, int]
Target = tuple[Module, str]

_SEEDING = frozenset(name.rpartition(".")[2] for name in SEEDS)
#: References by which a function may change any name of its module.
_REFLECTING = ("cexec", "zglobals.>", "zvars.>", "asys.modules", "wsys.modules", "zimportlib.import_module")


class Sharing:
    """Looks at all functions of the modules. `owners` says which class a method belongs to."""

    def __init__(
        self,
        links: Links,
        hierarchy: Hierarchy,
        modules: Iterable[Module],
        owners: Mapping[Place, ProjectClass],
    ) -> None:
        self._links = links
        self._hierarchy = hierarchy
        self._owners = owners
        self._units = [
            (module, number, unit) for module in modules for number, unit in enumerate(module.summary.units)
        ]
        self._changers = Changers(links, hierarchy, self._units)
        self._callable: set[str] = set()
        self._groups: dict[Target, Target] = {}
        self._callers = Callers(links, self._units)
        self._find_groups()
        self._find_callable()

    # ----------------------------------------------------------------------------------------- groups

    def _find_groups(self) -> None:
        """Put together the names that may hold the same object, or one a part of the other."""
        for module, _, unit in self._units:
            if unit.inert >= 0 or not unit.name or "." in unit.name:
                continue
            each = self._class_of(module, unit)
            if each is not None:
                for base in self._hierarchy.family(each).members[1:]:
                    self._join((module, unit.name), (base.module, top_level(base.unit.name)))
                continue
            first, *others = unit.name.split(",")
            for other in (*self._held(module, unit), *((module, name) for name in others)):
                self._join((module, first), other)

    def _held(self, module: Module, unit: Unit) -> Iterator[Target]:
        """The names whose objects a binding may hold."""
        for ref in unit.refs:
            if ref[0] == "r" and ref[1] not in "@^":
                for where, name, _ in self._links.resolve(module, ref[1:]).definitions():
                    if self._is_object(where, name):
                        yield where, name
            elif ref[0] in "cn" and ref[1] not in "@^":
                chain = ref.partition(">")[2] if ref[0] == "n" else ref[1:]
                for where, name, _ in self._links.resolve(module, chain).definitions():
                    if self._is_object(where, name):
                        yield where, name
                    yield from self._returned(where, name, set())

    def _is_object(self, module: Module, name: str) -> bool:
        """Whether a name stands for something else than a function, a class, or a text or number."""
        return name not in module.summary.constants and any(
            isinstance(binding, int)
            and module.summary.units[binding].inert < 0
            and binding not in module.summary.classes
            for binding in module.summary.names.get(name, ())
        )

    def _class_of(self, module: Module, unit: Unit) -> ProjectClass | None:
        return self._hierarchy.named(module, unit.name)

    def _join(self, one: Target, other: Target) -> None:
        first, second = self._root(one), self._root(other)
        if first != second:
            self._groups[first] = second

    def _root(self, target: Target) -> Target:
        while target in self._groups:
            target = self._groups[target]
        return target

    def group(self, target: Target) -> Target:
        """What stands for all names that may share an object with this one."""
        return self._root(target)

    @property
    def callers(self) -> Callers:
        """Who calls the functions that change something."""
        return self._callers

    # ----------------------------------------------------------------------------------------- writes

    def writes(self) -> Iterator[tuple[Target, Module, int]]:
        """The names that each unit changes, beside those that it says it changes."""
        for module, number, unit in self._units:
            for ref in unit.refs:
                if ref[0] in "azog" or (ref[0] in "cs" and ref[1] not in "@^"):
                    for target in self._changed(module, unit, ref):
                        yield target, module, number
                    if unit.inert >= 0 and ref.startswith(_REFLECTING):
                        yield from (((module, name), module, number) for name in module.summary.names)
            yield from self._kept(module, number, unit)

    def _kept(self, module: Module, number: int, unit: Unit) -> Iterator[tuple[Target, Module, int]]:
        """What a function keeps from call to call, and the attributes of a class that its method changes in place."""
        if "Q" in unit.refs:
            yield (module, top_level(unit.name)), module, number
        written = [ref[3:] for ref in unit.refs if ref[:3] in ("w@.", "m@.") and "." in ref[3:]]
        owner = self._owners.get((module, number)) if written else None
        if owner is None:
            return
        attributes = self._hierarchy.family(owner).attributes()
        for path in written:
            name, _, rest = path.partition(".")
            if rest != "__iadd__" and name in attributes:
                yield (owner.module, top_level(owner.unit.name)), module, number

    def _changed(self, module: Module, unit: Unit, ref: str) -> Iterator[Target]:
        use, chain = ref[0], ref[1:]
        if use == "a":
            yield from self._objects(module, chain)
        elif use == "z":
            yield from self._results(module, *chain.split(">", 1))
        elif use == "g":
            called, _, given = chain.partition("<")
            if not (self._changers.changes(module, called) or self._is_handed_on(module, unit, called)):
                return
            if given[0] == "z":
                yield from self._results(module, *given[1:].split(">", 1))
            elif given[1:2] != "@":
                yield from self._objects(module, given[1:])
        elif "." in chain or use == "o":
            if chain.rpartition(".")[2] in self._changers.self_changers:
                yield from self._instances(module, chain, use)
        elif self._callable and self._changers.may_lead(module, chain, self._callable):
            yield from self._called_objects(module, chain)

    def _find_callable(self) -> None:
        """The names of objects that change something when they are called: methods of an object, functions to which one
        was given beforehand, instances."""
        for module, _, unit in self._units:
            if (
                unit.inert >= 0
                or not unit.name
                or "." in unit.name
                or self._class_of(module, unit) is not None
            ):
                continue
            passed = [ref[1:] for ref in unit.refs if ref[0] == "r" and ref[1] not in "@^"]
            if (
                (
                    "__call__" in self._changers.self_changers
                    and any(ref.startswith("n>") for ref in unit.refs)
                )
                or any(each.rpartition(".")[2] in MUTATORS | self._changers.self_changers for each in passed)
                or any(self._changers.changes(module, each) for each in passed)
            ):
                self._callable.update(unit.name.split(","))

    def _called_objects(self, module: Module, chain: str) -> Iterator[Target]:
        """What is called, when it is one of those objects."""
        for where, name, _ in self._links.resolve(module, chain).definitions():
            if name in self._callable and self._is_object(where, name):
                yield where, name

    def _objects(self, module: Module, chain: str) -> Iterator[Target]:
        for where, name, path in self._links.resolve(module, chain).definitions():
            if path or self._is_object(where, name):
                yield where, name

    def _instances(self, module: Module, chain: str, use: str) -> Iterator[Target]:
        """What a method is called on, unless it is made outside the project."""
        for where, name, path in self._links.resolve(module, chain).definitions():
            if not self._is_object(where, name) or (use != "o" and not path):
                continue
            for binding in where.summary.names[name]:
                refs = where.summary.units[binding].refs if isinstance(binding, int) else ()
                made = [ref[2:] for ref in refs if ref.startswith("n>")]
                if not made or any(self._links.resolve(where, each).definitions() for each in made):
                    yield where, name

    def _results(self, module: Module, called: str, path: str) -> Iterator[Target]:
        """What is changed when what a call gives is changed."""
        for where, name, rest in self._links.resolve(module, called.rstrip(".")).definitions():
            each = self._hierarchy.named(where, name)
            if each is not None and not rest:
                attributes = self._hierarchy.family(each).attributes()
                if attributes and (not path or top_level(path) in attributes):
                    yield where, name
                continue
            if rest.rpartition(".")[2] in self._changers.part_givers and self._is_object(where, name):
                yield where, name
            yield from self._returned(where, name, set())
            if any("K" in where.summary.units[number].refs for number in self._changers.called(where, name)):
                yield where, name

    def _returned(self, module: Module, name: str, seen: set[Target]) -> Iterator[Target]:
        """The names whose objects a function gives, itself or by others."""
        if (module, name) in seen:
            return
        seen.add((module, name))
        for number in self._changers.called(module, name):
            for ref in module.summary.units[number].refs:
                if ref[0] == "y":
                    yield from self._objects(module, ref[1:])
                elif ref[0] == "Y":
                    called = ref[1:].partition(">")[0].rstrip(".")
                    for where, other, _ in self._links.resolve(module, called).definitions():
                        yield from self._returned(where, other, seen)

    def _is_handed_on(self, module: Module, unit: Unit, called: str) -> bool:
        """Whether what is called is also given a function that changes its arguments, as `map` and `partial` are."""
        if called == "?":
            return "P" in unit.refs
        return any(
            self._changers.changes(module, ref.partition("<")[2][1:])
            for ref in unit.refs
            if ref.startswith(f"g{called}<a")
        )

    def attribute_writes(self) -> dict[Place, set[str]]:
        """The attributes of its instance that each method has changed by others: by giving them to a function that
        changes its arguments, or by calling a method that changes what it holds."""
        found: dict[Place, set[str]] = {}
        for module, number, unit in self._units:
            for ref in unit.refs if (module, number) in self._owners else ():
                called, _, given = ref[1:].partition("<")
                if ref[0] == "g" and given[1:3] == "@.":
                    if self._changers.changes(module, called):
                        found.setdefault((module, number), set()).add(top_level(given[3:]))
                elif ref[0] in "cs" and ref[1] == "@":
                    name, _, path = ref[3:].partition(".")
                    if path.rpartition(".")[2] in self._changers.part_changers or (
                        not path and name in self._changers.held_changers
                    ):
                        found.setdefault((module, number), set()).add(name)
        return found

    def outside_writes(self) -> Iterator[tuple[str, Module, int]]:
        """What functions change of modules outside the project, by its dotted name."""
        for module, number, unit in self._units:
            for ref in unit.refs if unit.inert >= 0 else ():
                if ref[0] in "wma" and ref[1] not in "@^":
                    for dotted in self._links.resolve(module, ref[1:]).outside:
                        changed = (
                            dotted.rpartition(".")[0] if dotted.endswith("__") or ref[0] == "m" else dotted
                        )
                        if changed.partition(".")[2]:
                            yield changed, module, number
                elif ref[0] in "cs" and ref[1:].rpartition(".")[2] in _SEEDING:
                    for dotted in self._links.resolve(module, ref[1:]).outside:
                        if dotted in SEEDS:
                            yield dotted.rpartition(".")[0], module, number
