"""What counts with a module, a name, a class and a piece of code once they are reached."""

from __future__ import annotations

from oloproof.identity.effects import Writer, Writers
from oloproof.identity.hierarchy import ProjectClass
from oloproof.identity.knowledge import top_level
from oloproof.identity.linking import Resolution
from oloproof.identity.normal import short_digest
from oloproof.identity.sources import Module
from oloproof.identity.walk import ALL_PACKAGES, Place, Walk


class Definitions(Walk):
    """A walk from one definition to the next."""

    def follow(self, found: Resolution, use: str, place: Place) -> None:
        """What a chain stands for is used in some way."""
        raise NotImplementedError

    def outside(self, dotted: str, use: str, module: Module) -> None:
        """Something outside the project is used in a module."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------ modules

    def enter(self, module: Module) -> None:
        """The module is imported: what it does then counts."""
        self._once(self._enter, module)

    def has_entered(self, module: Module) -> bool:
        """Whether the module is imported."""
        return (self._enter.__name__, module) in self._seen

    def _enter(self, module: Module) -> None:
        summary, world = module.summary, self.world
        sequence = []
        for item in summary.on_import:
            if isinstance(item, int):
                sequence.append(summary.units[item].code)
                self.unit(item, Place(module))
                continue
            for imported in world.links.imported(module, item):
                self.enter(imported)
                if imported in world.effects.acting:
                    sequence.append(imported.name)
        if sequence:
            self.ingredients[f"import of {module.name}"] = short_digest(sequence)
        for number in world.effects.loud.get(module, ()):
            each = world.hierarchy.at(module, number)
            if each is not None and self.is_exempt(each):
                continue
            for name in summary.units[number].name.split(","):
                self.name(module, name)
        for target in summary.unused:
            self.outside(target[1:].replace("/", ".").strip("."), "c", module)
        shadowed = any(world.sources.module(name) for name in summary.assumed)
        if summary.patches or summary.opaque or shadowed:
            self.whole(module)

    def whole(self, module: Module, *, deep: bool = True) -> None:
        """Any name of the module may be used; if `deep`, also any name of the modules that it imports."""
        self._once(self._whole, module, deep)

    def _whole(self, module: Module, deep: bool) -> None:
        self.enter(module)
        summary = module.summary
        if summary.opaque:
            self.ingredients[f"text of {module.name}"] = summary.text
            self.everything()
            return
        self.ingredients[f"all of {module.name}"] = "included"
        for name, bindings in summary.names.items():
            if name == "__doc__":
                self.documentation(module, name)
                continue
            self.name(module, name)
            for binding in bindings:
                if deep and isinstance(binding, str):
                    self.follow(self.world.links.resolve(module, binding), "c", Place(module))
        for star in summary.stars:
            self.follow(self.world.links.resolve(module, star.removesuffix("*")), "c", Place(module))

    def everything(self, *, texts: bool = False) -> None:
        """Any module of the project may be used, and any package; with `texts`, their source text too."""
        self._once(self._everything, texts)

    def _everything(self, texts: bool) -> None:
        self.libraries.add(ALL_PACKAGES)
        for module in self.world.sources.everything():
            self.whole(module)
            if texts:
                self.ingredients[f"text of {module.name}"] = module.summary.text

    # -------------------------------------------------------------------------------------- definitions

    def name(self, module: Module, name: str, *, read: bool = True) -> None:
        """A name of a module is used; if it is read, what changes it counts too."""
        self._once(self._name, module, name)
        if read:
            self.writers_of(module, name)

    def _name(self, module: Module, name: str) -> None:
        summary = module.summary
        bindings = summary.names.get(name, ())
        self.count(module, name, bindings)
        for binding in bindings:
            if isinstance(binding, int):
                each = self.world.hierarchy.at(module, binding)
                if each is not None:
                    self.whole_class(each)
                else:
                    self.unit(binding, Place(module))

    def _writers(self, module: Module, name: str) -> None:
        writers = self.world.effects.writers_of(module, name)
        order = sorted((each.module.name, each.number) for each in writers.direct if each.on_import)
        if len(order) > 1:
            units = [f"{place}:{self._unit_name(place, number)}" for place, number in order]
            self.ingredients[f"order of changes to {module.name}:{name}"] = short_digest(units)
        self.all_writers(writers)

    def all_writers(self, writers: Writers) -> None:
        """As `writer`, for all that change a name, and all that call those."""
        known = self.known_families()
        if (id(writers), known) in self._written:
            return
        self._written[id(writers), known] = writers  # kept, so that nothing else gets its number
        for writer in writers.direct:
            self.writer(writer)
        for writer in self.world.effects.callers(writers, self._called.setdefault(known, set())):
            self.writer(writer)

    def writer(self, writer: Writer) -> None:
        """A piece of code changes something that is read here."""
        if writer.owner is not None:
            self.method_elsewhere(writer.owner, writer.number)
            return
        for bound in writer.module.summary.units[writer.number].name.split(","):
            if bound:
                self.name(writer.module, top_level(bound))
        self.unit(writer.number, Place(writer.module))

    def _unit_name(self, module: str, number: int) -> str:
        found = self.world.sources.module(module)
        assert found is not None
        return found.summary.units[number].name

    def writers_of(self, module: Module, name: str) -> None:
        """What changes a name counts."""
        self._once(self._writers, module, name)

    def method_elsewhere(self, owner: ProjectClass, number: int) -> None:
        """A method changes something that is read here."""
        self.whole_class(owner)

    def whole_class(self, each: ProjectClass) -> None:
        """A class is used: all of it, since its instances may go anywhere."""
        self._once(self._whole_class, each)

    def _whole_class(self, each: ProjectClass) -> None:
        outline = each.outline
        place = Place(each.module, each)
        self.count(each.module, each.unit.name, [each.number])
        self.unit(each.number, place)
        self.count_attributes(each)
        for name in outline.members:
            self.member_of(each, name, place)
        if self.world.hierarchy.family(each).shown:
            self.class_documentation(each)

    def count_attributes(self, each: ProjectClass) -> None:
        """The attributes of a class count in the order in which it defines them."""
        if each.outline.attributes:
            self.ingredients[f"order of attributes of {each.name}"] = short_digest(each.outline.attributes)

    def is_exempt(self, each: ProjectClass) -> bool:
        """Whether the definition of a class, whatever it may do, is not to count for every stage."""
        return False

    def member_of(self, each: ProjectClass, name: str, place: Place) -> None:
        """A method or attribute that a class itself defines."""
        numbers = each.outline.members[name]
        self.count(each.module, f"{each.unit.name}.{name}", numbers)
        for number in numbers:
            inner = self.world.hierarchy.at(each.module, number)
            if inner is not None and inner is not each:
                self.whole_class(inner)
            else:
                self.unit(number, place)

    def unit(self, number: int, place: Place) -> None:
        """A piece of code is executed."""
        self._once(self._unit, number, place)

    def _unit(self, number: int, place: Place) -> None:
        module = place.module
        unit = module.summary.units[number]
        self.libraries.update(map(top_level, module.summary.libraries))
        self._in_function = unit.inert >= 0
        for ref in unit.refs:
            self.reference(ref, place)
        if unit.docs and ("V" in unit.refs or (unit.decorators and self.world.effects.shows(module, unit))):
            self.value(module, number)
