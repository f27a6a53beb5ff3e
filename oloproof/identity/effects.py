"""What happens when modules are imported, and which code changes a name from elsewhere.

Decorators, base classes and calls can put what they are given into a registry. Where that registry is a name of the
project, what is registered counts with the name; where nobody knows, it counts for every stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from oloproof.identity.calls import Calls
from oloproof.identity.changes import Changes
from oloproof.identity.hierarchy import Hierarchy, ProjectClass, methods
from oloproof.identity.knowledge import QUIET_DECORATORS, listed, top_level
from oloproof.identity.linking import Links
from oloproof.identity.sharing import Place, Sharing
from oloproof.identity.sources import Module
from oloproof.identity.summary import Unit


class Writer(NamedTuple):
    """A unit that changes a name, and the class whose method it is."""

    module: Module
    number: int
    owner: ProjectClass | None
    on_import: bool


class Writers(NamedTuple):
    """What changes a name: units that do it themselves, and those among them whose callers decide what is put there.

    The same object for the same units, so that whoever follows them can tell that they have been followed.
    """

    direct: tuple[Writer, ...]
    called: tuple[Place, ...]


class Effects:
    """Reads the effects of all modules at once.

    `writers` are the units that change a name, by module and name; `loud` the definitions of each module that may
    act on something unknown; `acting` the modules in which anything happens when they are imported.
    """

    def __init__(self, links: Links, hierarchy: Hierarchy, calls: Calls, modules: Iterable[Module]) -> None:
        self._links = links
        self._hierarchy = hierarchy
        self._changes = Changes(links, hierarchy)
        self.writers: dict[tuple[Module, str], list[Writer]] = {}
        self.loud: dict[Module, list[int]] = {}
        self.acting: set[Module] = set()
        self._calls = calls
        self._owners: dict[tuple[Module, int], ProjectClass] = {}
        self._quiet_names: set[tuple[Module, str]] = set()
        modules = list(modules)
        for module in modules:
            self._note_writers(module)
        self._sharing = Sharing(links, hierarchy, modules, self._owners)
        hierarchy.note_writes(self._sharing.attribute_writes())
        for target, module, number in list(self._sharing.writes()):
            owner, unit = self._owners.get((module, number)), module.summary.units[number]
            self._write(target, module, number, owner, on_import=unit.inert < 0)
        for module in modules:
            loud = [number for number in module.summary.suspects if self._is_loud(module, number)]
            loud += [number for number in module.summary.callers if self._calls_loudly(module, number)]
            if loud:
                self.loud[module] = loud
        self._outside: dict[str, list[tuple[Module, int]]] = {}
        for dotted, module, number in self._sharing.outside_writes():
            self._outside.setdefault(dotted, []).append((module, number))
        self._find_acting(modules)
        #: The writers of each group of names that may share an object.
        self._of_group: dict[tuple[Module, str], list[tuple[tuple[Module, str], Writer]]] = {}
        for target, writers in self.writers.items():
            group = self._sharing.group(target)
            self._of_group.setdefault(group, []).extend((target, writer) for writer in writers)
        self._complete: dict[tuple[Module, str], Writers] = {}
        self._same: dict[Writers, Writers] = {}
        #: By a name outside the project, who changes something around it.
        self._around: dict[str, Writers] = {}
        #: What is changed outside the project, by each name that holds it.
        self._held: dict[str, list[str]] = {}
        for dotted in self._outside:
            for holder in _holders(dotted):
                self._held.setdefault(holder, []).append(dotted)

    def writers_of(self, module: Module, name: str) -> Writers:
        """What changes a name or what it shares an object with."""
        group = self._sharing.group((module, name))
        if group not in self._complete:
            direct = self._of_group.get(group, [])
            called = [
                (writer.module, writer.number)
                for target, writer in direct
                if not writer.on_import
                and self._sharing.callers.count(target[1], writer.module, writer.number)
            ]
            self._complete[group] = self._shared([writer for _, writer in direct], called)
        return self._complete[group]

    def writers_outside(self, dotted: str) -> Writers:
        """The functions that change something outside the project which is used here, or which holds that or is held by
        it."""
        if dotted not in self._around:
            around = [dotted, *_holders(dotted), *self._held.get(dotted, ())]
            direct, called = [], []
            for changed in around:
                for place in self._outside.get(changed, ()):
                    direct.append(self._function(place))
                    if self._sharing.callers.count(changed, *place):
                        called.append(place)
            self._around[dotted] = self._shared(direct, called)
        return self._around[dotted]

    def callers(self, writers: Writers, seen: set[Place]) -> Iterator[Writer]:
        """The functions that call those that change something, directly or not, since they decide what is put there.
        Units in `seen` are left out, with what calls them; new ones are added."""
        pending = [place for place in writers.called if place not in seen]
        seen.update(pending)
        while pending:
            for place in self._sharing.callers.of(pending.pop()):
                if place not in seen:
                    seen.add(place)
                    pending.append(place)
                    if place[0].summary.units[place[1]].inert >= 0:
                        yield self._function(place)

    def _function(self, place: Place) -> Writer:
        return Writer(*place, self._owners.get(place), on_import=False)

    def _shared(self, direct: Iterable[Writer], called: Iterable[Place]) -> Writers:
        writers = Writers(tuple(dict.fromkeys(direct)), tuple(dict.fromkeys(called)))
        return self._same.setdefault(writers, writers)

    def shows(self, module: Module, unit: Unit) -> bool:
        """Whether a decorator of the unit may show its docstring and annotations to somebody."""
        return any(self._changes.decorator(module, text) != [] for text in unit.decorators)

    def is_outside(self, module: Module, unit: Unit) -> bool:
        """Whether a decorator of the unit comes from outside the project and may do anything with what it wraps."""
        chains = [text.removesuffix("()") for text in unit.decorators]
        return "?" in chains or any(
            not listed(name, QUIET_DECORATORS)
            for chain in chains
            for name in self._links.resolve(module, chain).outside
        )

    def hands_on(self, module: Module, unit: Unit) -> bool:
        """Whether a decorator of the unit may hand it to somebody unknown."""
        return any(self._changes.decorator(module, text) is None for text in unit.decorators)

    def _write(
        self,
        target: tuple[Module, str],
        module: Module,
        number: int,
        owner: ProjectClass | None = None,
        *,
        on_import: bool = True,
    ) -> None:
        writer = Writer(module, number, owner, on_import)
        writers = self.writers.setdefault(target, [])
        if writer not in writers:
            writers.append(writer)
        if on_import:
            self.acting.add(module)

    def _note_writers(self, module: Module) -> None:
        for number in module.summary.classes:
            each = self._hierarchy.at(module, number)
            assert each is not None
            for owner, member in methods([each]):
                self._owners[module, member] = owner
        for number, unit in enumerate(module.summary.units):
            for target in self._changes.written(module, unit):
                if target is not None:
                    self._write(
                        target, module, number, self._owners.get((module, number)), on_import=unit.inert < 0
                    )

    # -------------------------------------------------------------------------------------- definitions

    def _is_loud(self, module: Module, number: int) -> bool:
        """Whether a definition may act on something unknown; what it is known to change is noted."""
        unit = module.summary.units[number]
        decorators = [(module, text) for text in unit.decorators]
        each = self._hierarchy.at(module, number)
        loud = False
        if each is not None:
            inside = self._hierarchy.with_inner(each)
            loud = any(part.outline.loud for part in inside) or any(
                self._derives_loudly(part) for part in inside
            )
            for _, member in methods(inside):
                decorators += [(module, text) for text in module.summary.units[member].decorators]
        for where, text in decorators:
            changed = self._changes.decorator(where, text)
            if changed is None:
                loud = True
            for target in changed or ():
                self._write(target, module, number)
        return loud

    def _derives_loudly(self, each: ProjectClass) -> bool:
        family = self._hierarchy.family(each)
        if not family.quiet:
            return True
        for base in family.members[1:]:
            for number in base.outline.members.get("__init_subclass__", ()):
                hook = base.module.summary.units[number]
                changed = list(self._changes.written(base.module, hook))
                if hook.inert < 1 or None in changed:
                    return True
                for target in (*changed, (base.module, base.unit.name.partition(".")[0])):
                    if target is not None:
                        self._write(target, each.module, each.number)
        return False

    # -------------------------------------------------------------------------------------------- calls

    def _calls_loudly(self, module: Module, number: int) -> bool:
        """Note that a binding that calls code of the project changes what that code changes. True when that is
        something unknown."""
        seen = self._quiet_names.copy()
        unit = module.summary.units[number]
        changed: set[tuple[Module, str] | None] = set()
        changes_arguments = False
        for place, reached in self._calls.reached(module, unit.refs, seen):
            found = place.summary.units[reached]
            changed.update(self._changes.written(place, found))
            changed.update(self._written_in_class(place, reached, found))
            if "P" in found.refs:
                changes_arguments = True
        if changes_arguments:
            changed.update(self._passed(module, unit))
        elif not changed:
            self._quiet_names = seen
        for target in changed:
            if target is not None:
                self._write(target, module, number)
        return None in changed

    def _written_in_class(self, module: Module, number: int, unit: Unit) -> Iterator[tuple[Module, str]]:
        """The class whose own attributes a method changes."""
        owner = self._owners.get((module, number))
        if owner is not None:
            attributes = self._hierarchy.family(owner).attributes()
            if any(
                ref[:3] in ("w@.", "m@.") and ref[3:].partition(".")[0] in attributes for ref in unit.refs
            ):
                yield owner.module, top_level(owner.unit.name)

    def _passed(self, module: Module, unit: Unit) -> Iterator[tuple[Module, str]]:
        """The names that a unit passes on as values."""
        for ref in unit.refs:
            if ref[0] == "r" and ref[1] not in "@^":
                for where, name, _ in self._links.resolve(module, ref[1:]).definitions():
                    yield where, name

    def _find_acting(self, modules: list[Module]) -> None:
        importers: dict[Module, list[Module]] = {}
        for module in modules:
            for item in module.summary.on_import:
                if isinstance(item, str):
                    for imported in self._links.imported(module, item):
                        importers.setdefault(imported, []).append(module)
            if module in self.loud or any(isinstance(item, int) for item in module.summary.on_import):
                self.acting.add(module)
        pending = list(self.acting)
        while pending:
            for importer in importers.get(pending.pop(), ()):
                if importer not in self.acting:
                    self.acting.add(importer)
                    pending.append(importer)


def _holders(dotted: str) -> Iterator[str]:
    """The names that a dotted name lies below."""
    while "." in dotted:
        dotted = dotted.rpartition(".")[0]
        yield dotted
