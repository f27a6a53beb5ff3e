"""Classes with their bases: where a method comes from, and who else may call it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from oloproof.identity.knowledge import CLOSED_BASES, STANDARD_LIBRARY, is_quiet_base, listed, top_level
from oloproof.identity.linking import Links, Resolution
from oloproof.identity.sources import Module
from oloproof.identity.summary import ClassOutline, Unit


@dataclass(frozen=True, eq=False, slots=True)
class ProjectClass:
    """A class of the project: its module and the number of its unit there."""

    module: Module
    number: int

    @property
    def unit(self) -> Unit:
        return self.module.summary.units[self.number]

    @property
    def outline(self) -> ClassOutline:
        return self.module.summary.classes[self.number]

    @property
    def name(self) -> str:
        return f"{self.module.name}:{self.unit.name}"


@dataclass(eq=False, slots=True)
class Family:
    """A class and those it derives from, in the order in which methods are looked for.

    `closed`: nothing outside the project calls its methods by itself. `quiet`: deriving from its bases leaves no
    trace outside the project. `shown`: a base may show docstrings and annotations to somebody.
    `writers`: the methods that set or change each attribute of the instance.
    """

    members: list[ProjectClass]
    closed: bool = True
    quiet: bool = True
    shown: bool = False
    writers: dict[str, list[tuple[ProjectClass, int]]] = field(default_factory=dict)

    def definer(self, name: str, after: ProjectClass | None = None) -> ProjectClass | None:
        """The class whose definition of a member is found, among those after a given one."""
        members = self.members
        if after is not None and after in members:
            members = members[members.index(after) + 1 :]
        return next((each for each in members if name in each.outline.members), None)

    def attributes(self) -> set[str]:
        """The names of class attributes."""
        return {name for each in self.members for name in each.outline.attributes}


class Hierarchy:
    """Finds the families of classes."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._classes: dict[tuple[Module, int], ProjectClass] = {}
        self._families: dict[ProjectClass, Family] = {}
        self._more: Mapping[tuple[Module, int], set[str]] | None = None

    def note_writes(self, more: Mapping[tuple[Module, int], set[str]]) -> None:
        """Attributes of their instance that methods change in a way that their own references do not tell. Until this
        is called, families tell no writers."""
        self._more = more
        for family in self._families.values():
            self._note_writers(family)

    def _note_writers(self, family: Family) -> None:
        """Find what sets or changes each attribute, or what it shares an object with."""
        if self._more is None:
            return
        groups: dict[str, set[str]] = {}
        for member, number in methods(family.members):
            unit = member.module.summary.units[number]
            for name in {*_written(unit.refs), *self._more.get((member.module, number), ())}:
                family.writers.setdefault(name, []).append((member, number))
            for one, other in _shared(unit):
                group = groups.get(one, {one}) | groups.get(other, {other})
                groups.update(dict.fromkeys(group, group))
        for group in {id(group): group for group in groups.values()}.values():
            writers = [each for name in sorted(group) for each in family.writers.get(name, ())]
            if writers:
                family.writers.update((name, list(dict.fromkeys(writers))) for name in group)

    def at(self, module: Module, number: int) -> ProjectClass | None:
        """The class whose unit has that number."""
        if number not in module.summary.classes:
            return None
        return self._classes.setdefault((module, number), ProjectClass(module, number))

    def named(self, module: Module, name: str) -> ProjectClass | None:
        """The class that a name always stands for."""
        bindings = module.summary.names.get(name, ())
        if len(bindings) != 1 or not isinstance(bindings[0], int):
            return None
        return self.at(module, bindings[0])

    def only(self, resolution: Resolution) -> ProjectClass | None:
        """The class that a chain always stands for; also a class inside another."""
        found = resolution.definitions()
        if len(found) != 1 or resolution.wholes or resolution.outside or resolution.stars:
            return None
        module, name, path = found[0]
        each = self.named(module, name)
        for part in path.split(".") if path else ():
            inside = each.outline.members.get(part, ()) if each else ()
            each = self.at(module, inside[0]) if len(inside) == 1 else None
        return each

    def with_inner(self, each: ProjectClass) -> list[ProjectClass]:
        """A class and the classes defined inside it."""
        found = [each]
        for numbers in each.outline.members.values():
            for number in numbers:
                inner = self.at(each.module, number)
                if inner is not None and inner not in found:
                    found += self.with_inner(inner)
        return found

    def family(self, each: ProjectClass) -> Family:
        """The family of a class."""
        if each not in self._families:
            self._families[each] = Family(
                [each], closed=False, quiet=False
            )  # while a class derives from itself
            self._families[each] = self._read(each)
        return self._families[each]

    def _read(self, each: ProjectClass) -> Family:
        found = Family([each])
        outline = each.outline
        orders = []
        for chain in outline.bases:
            resolution = self._links.resolve(each.module, chain)
            base = self.only(resolution)
            if base is not None:
                family = self.family(base)
                orders.append(list(family.members))
                found.closed = found.closed and family.closed
                found.quiet = found.quiet and family.quiet
                found.shown = found.shown or family.shown
                continue
            known = bool(resolution.outside) and not resolution.wholes and not resolution.definitions()
            outside = resolution.outside
            if not known or not all(listed(name, CLOSED_BASES) for name in outside):
                found.closed = False
            found.quiet = found.quiet and known and all(map(is_quiet_base, outside))
            found.shown = found.shown or not known or not all(map(_is_plain, outside))
        if outline.metaclass:
            found.closed = found.quiet = False
            found.shown = True
        if each.unit.decorators:
            found.closed = False
        merged = _merge([*orders, [order[0] for order in orders]])
        if merged is None:
            found.closed = False
            merged = list(dict.fromkeys(member for order in orders for member in order))
        found.members += [member for member in merged if member is not each]
        self._note_writers(found)
        return found


def methods(classes: Sequence[ProjectClass]) -> Iterator[tuple[ProjectClass, int]]:
    """The units of the members of classes, with the class each belongs to."""
    for each in classes:
        for numbers in each.outline.members.values():
            for number in numbers:
                yield each, number


def _written(refs: Sequence[str]) -> Iterator[str]:
    """The attributes of self that references write to, and the methods whose result they change."""
    for ref in refs:
        if ref.startswith(("w@.", "m@.")):
            yield ref[3:].partition(".")[0]
        elif ref.startswith("z@."):
            yield ref[3:].partition(">")[0].partition(".")[0]


def _shared(unit: Unit) -> Iterator[tuple[str, str]]:
    """The attributes of self that may share an object: by an assignment, or since a method gives one."""
    for ref in unit.refs:
        if ref[0] == "X":
            one, _, other = ref[1:].partition("<")
            yield one, other
        elif ref.startswith("y@."):
            yield unit.name.rpartition(".")[2], top_level(ref[3:])


def _is_plain(dotted: str) -> bool:
    return top_level(dotted) in STANDARD_LIBRARY or top_level(dotted) == "builtins"


def _merge(orders: list[list[ProjectClass]]) -> list[ProjectClass] | None:
    """The C3 linearisation (Barrett and others 1996, as in Python's own method resolution order)."""
    merged = []
    orders = [order for order in orders if order]
    while orders:
        for order in orders:
            head = order[0]
            if not any(head in other[1:] for other in orders):
                break
        else:
            return None
        merged.append(head)
        orders = [rest for order in orders if (rest := order[1:] if order[0] is head else order)]
    return merged
