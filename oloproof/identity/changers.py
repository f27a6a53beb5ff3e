"""Which functions change what they are given, and which methods change their own instance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from oloproof.identity.hierarchy import Hierarchy
from oloproof.identity.knowledge import ARGUMENT_CHANGERS, MUTATORS, listed, top_level
from oloproof.identity.linking import Links
from oloproof.identity.sources import Module
from oloproof.identity.summary import Unit

_READS = "rck"

#: A unit by its module and its number there.
Place = tuple[Module, int]


class Changers:
    """Looks at all units of the modules. `self_changers` are the names of methods that change their own instance."""

    def __init__(self, links: Links, hierarchy: Hierarchy, units: Sequence[tuple[Module, int, Unit]]) -> None:
        self._links = links
        self._hierarchy = hierarchy
        self._units = units
        self._changers: set[tuple[Module, int]] = set()
        self._changing_methods: set[str] = set()
        #: The last parts of names of functions and classes that change their arguments when they are called.
        self._changing = {name.rpartition(".")[2] for name in ARGUMENT_CHANGERS} | {"heapq", "operator"}
        self.self_changers = {"send"}  # of generators
        #: The names of methods that change what an attribute of their instance holds; and of attributes that hold a
        #: method which changes what it is called on.
        self.part_changers: set[str] = set()
        self.held_changers: set[str] = set()
        #: The names of methods and properties that give a part of their instance.
        self.part_givers = {
            unit.name.rpartition(".")[2]
            for _, _, unit in units
            if "." in unit.name and any(ref.startswith("y@.") for ref in unit.refs)
        }
        self._find_changers()
        self._find_self_changers()

    def _find_changers(self) -> None:
        """The functions that change what they are given, themselves or by giving it to others that do."""
        passing: dict[Place, list[str]] = {}
        #: The functions that pass on what they are given, by each name that leads to what they give it to.
        waiting: dict[str, list[Place]] = {}
        found: list[Place] = []
        for module, number, unit in self._units:
            place = (module, number)
            if "P" in unit.refs:
                found.append(place)
            elif called := [ref[1:] for ref in unit.refs if ref[0] == "G"]:
                passing[place] = called
                for name in {name for chain in called for name in _names(module, chain)}:
                    waiting.setdefault(name, []).append(place)
        while found:
            looked_at: dict[Place, None] = {}
            for place in found:
                passing.pop(place, None)
                for name in self._add_changer(*place):
                    looked_at.update(dict.fromkeys(waiting.get(name, ())))
            found = self._passing_on(looked_at, passing) or self._passing_on(passing, passing)

    def _passing_on(self, places: Iterable[Place], passing: Mapping[Place, list[str]]) -> list[Place]:
        """Those that give what they are given to a function that changes it."""
        return [
            place
            for place in places
            if place in passing and any(self.changes(place[0], called) for called in passing[place])
        ]

    def _add_changer(self, module: Module, number: int) -> set[str]:
        """Note a function that changes what it is given; gives the names by which it may be called."""
        self._changers.add((module, number))
        owner, _, name = module.summary.units[number].name.rpartition(".")
        called = owner.rpartition(".")[2] if name == "__init__" else name
        self._changing.add(called)
        if owner:
            self._changing_methods.add(name)
        return {called, name}

    def changes(self, module: Module, called: str) -> bool:
        """Whether what is called changes its arguments."""
        if called[0] == "?":
            return called[1:] in self._changing_methods
        if not self.may_lead(module, called, self._changing):
            return False
        found = self._links.resolve(module, called)
        if any(listed(name, ARGUMENT_CHANGERS) for name in found.outside):
            return True
        return any(
            path.rpartition(".")[2] in self._changing_methods
            or any((where, number) in self._changers for number in self.called(where, name))
            for where, name, path in found.definitions()
        )

    @staticmethod
    def may_lead(module: Module, chain: str, names: set[str]) -> bool:
        """Whether a chain may lead to something of one of these names, perhaps by another name that an import gives."""
        return not names.isdisjoint(chain.split(".")) or not names.isdisjoint(_imported_names(module, chain))

    def called(self, module: Module, name: str) -> Iterator[int]:
        """The units that are executed when what a name stands for is called."""
        for binding in module.summary.names.get(name, ()):
            if isinstance(binding, int):
                yield binding
                each = self._hierarchy.at(module, binding)
                definer = self._hierarchy.family(each).definer("__init__") if each is not None else None
                if definer is not None and definer.module is module:
                    yield from definer.outline.members["__init__"]

    def _find_self_changers(self) -> None:
        """The methods that change their own instance, by name: not those that only fill in what is not there yet."""
        calling: list[tuple[str, set[str]]] = []
        for _, _, unit in self._units:
            owner, _, name = unit.name.rpartition(".")
            if not owner or unit.inert < 0:
                continue
            if any(ref.startswith("r@.") and ref.rpartition(".")[2] in MUTATORS for ref in unit.refs):
                self.held_changers.update(ref[1:].partition("<")[0] for ref in unit.refs if ref[0] == "X")
            if name == "__init__":
                continue
            written = {ref[3:] for ref in unit.refs if ref.startswith(("w@.", "m@."))}
            changed = [path for path in written if not _is_filled_in(path, unit)]
            if changed:
                self.self_changers.add(name)
            if any("." in path for path in changed):
                self.part_changers.add(name)
            calling.append((name, {ref[3:] for ref in unit.refs if ref.startswith(("c@.", "s@."))}))
        size = -1
        while size != len(self.self_changers):
            size = len(self.self_changers)
            self.self_changers.update(
                name for name, called in calling if not called.isdisjoint(self.self_changers)
            )


def _is_filled_in(path: str, unit: Unit) -> bool:
    """Whether an attribute of self that a method writes is only filled in when it is None, or under a key."""
    name = top_level(path)
    if f"k@.{name}" in unit.refs:
        return True
    keyed = path.endswith((".__setitem__", ".setdefault"))
    return keyed and any(ref[0] in _READS and ref[1:].startswith(f"@.{name}") for ref in unit.refs)


def _names(module: Module, chain: str) -> list[str]:
    """The names in a chain, and in what an import makes of its first one."""
    return [*chain.lstrip("?").split("."), *_imported_names(module, chain)]


def _imported_names(module: Module, chain: str) -> list[str]:
    return [
        name
        for binding in module.summary.names.get(top_level(chain), ())
        if isinstance(binding, str)
        for name in binding.replace("/", ".").split(".")
    ]
