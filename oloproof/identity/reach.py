"""What one stage can reach.

The system itself is followed method by method, and so is what it keeps in attributes of its own
(`self.generator = Generator(...)`), as long as nobody else can call them: that is what tells the stages apart. An
instance that is passed on, or whose class has a base outside the project, counts wholly.
"""

from __future__ import annotations

import itertools

from oloproof.identity.hierarchy import Family, ProjectClass
from oloproof.identity.knowledge import words
from oloproof.identity.references import References
from oloproof.identity.sources import Module
from oloproof.identity.walk import Place, World

STAGES = ("retrieve", "generate", "count_tokens")
#: What Python calls by itself when an instance is made, dropped, or asked for an attribute.
_ALWAYS = (
    *("__init__", "__new__", "__post_init__", "__init_subclass__", "__del__", "__slots__", "__match_args__"),
    *("__getattr__", "__getattribute__", "__setattr__", "__delattr__"),
)
#: Attributes of any object or class that lead to no method of it.
_OF_EVERY_OBJECT = ({*dir(type), *dir(object)} | {"__post_init__"}) - words(
    "__getattribute__ __reduce__ __reduce_ex__ __getstate__ __dir__ __dict__ __call__ __subclasses__ mro __mro__ "
    "__base__ __bases__"
)
#: Methods of object that only set what they are given.
_HARMLESS_PARENTS = ("builtins.object.__init__", "builtins.object.__setattr__")


class Reach(References):
    """A walk that knows instances."""

    def __init__(self, world: World, system: Family | None = None) -> None:
        super().__init__(world)
        self._system = system
        self._families: list[Family] = []
        #: The instances kept in attributes, and what is asked of each attribute: attributes after it, kind of use.
        self._parts: dict[tuple[Family, str], list[ProjectClass]] = {}
        self._asked: dict[tuple[Family, str], list[tuple[str, str]]] = {}

    def copy(self) -> Reach:
        other = Reach(self.world, self._system)
        self.copy_to(other)
        other._families = list(self._families)
        other._parts = {key: list(value) for key, value in self._parts.items()}
        other._asked = {key: list(value) for key, value in self._asked.items()}
        return other

    def stage(self, system: ProjectClass, stage: str) -> bool:
        """Reach a stage of the system; False when it has none of that name."""
        family = self.world.hierarchy.family(system)
        if family.closed and family.definer(stage) is None and stage not in family.writers:
            return False
        self.instance(system)
        self.member(family, stage, "", "c")
        return True

    def instance(self, each: ProjectClass) -> None:
        """An instance is made; what is asked of it is told later."""
        self._once(self._instance, each)

    def _instance(self, each: ProjectClass) -> None:
        family = self.world.hierarchy.family(each)
        self._families.append(family)
        for member in family.members:
            place = Place(member.module, member, family)
            outline = member.outline
            self.count(member.module, member.unit.name, [member.number])
            self.unit(member.number, place)
            self._changed_elsewhere(member, family)
            if outline.fields or not family.closed:
                self.count_attributes(member)
                for name in outline.attributes:
                    self.member_of(member, name, place)
            for name in outline.members:
                if name not in STAGES and (not family.closed or self._is_registered(member, name)):
                    self.member_of(member, name, place)
            if family.shown:
                self.class_documentation(member)
        for name in _ALWAYS:
            if family.definer(name) is not None:
                self.member(family, name, "", "c")

    def _changed_elsewhere(self, member: ProjectClass, family: Family) -> None:
        """Follow what changes the class itself: what it puts there may call anything on an instance."""
        self.writers_of(member.module, member.unit.name)
        effects = self.world.effects
        writers = effects.writers_of(member.module, member.unit.name)
        if any(
            writer.owner not in family.members and writer.number not in writer.module.summary.classes
            for writer in itertools.chain(writers.direct, effects.callers(writers, set()))
        ):
            self.escape(family)

    def _is_registered(self, each: ProjectClass, name: str) -> bool:
        """Whether a decorator of a method may hand it to somebody who calls it."""
        units = [each.module.summary.units[number] for number in each.outline.members[name]]
        return any(self.world.effects.hands_on(each.module, unit) for unit in units)

    def is_exempt(self, each: ProjectClass) -> bool:
        return self._system is not None and each in self._system.members

    def _unit(self, number: int, place: Place) -> None:
        super()._unit(number, place)
        if place.family is not None and place.owner is not None:
            self._handed_over(number, place, place.owner, place.family)

    def _handed_over(self, number: int, place: Place, owner: ProjectClass, family: Family) -> None:
        """Follow what decorators, descriptors and functions in the class body may ask of an instance: they are given it
        without its being named."""
        module, effects = place.module, self.world.effects
        unit = module.summary.units[number]
        if unit.inert >= 0 and not unit.decorators:
            return
        if unit.inert >= 0:
            refs = ["c" + text.removesuffix("()") for text in unit.decorators if text != "?"]
            if effects.is_outside(module, unit):
                self._open(family)
        else:
            refs = [ref for ref in unit.refs if ref[0] != "b"]
            if number != owner.number and self._is_function(module, refs):
                self.escape(family)
        asked = self.world.calls.asked(module, number, refs)
        if "*" in asked or "__dict__" in asked:
            self.escape(family)
        for name in asked:
            if name in family.writers or family.definer(name) is not None:
                self.member(family, name, "", "c")

    def _is_function(self, module: Module, refs: list[str]) -> bool:
        """Whether a function of the module's project is among what is referred to."""
        found = [
            self.world.links.resolve(module, ref[1:]) for ref in refs if ref[0] in "rc" and ref[1] not in "@^"
        ]
        return any(
            where.summary.units[binding].inert >= 0
            for each in found
            for where, name, _ in each.definitions()
            for binding in where.summary.names[name]
            if isinstance(binding, int)
        )

    def _open(self, family: Family) -> None:
        """Somebody unknown is given an instance: any helper may be called, though not another stage."""
        for member in family.members:
            for name in member.outline.members:
                if name not in STAGES:
                    self.member_of(member, name, Place(member.module, member, family))

    def member(self, family: Family, name: str, path: str, use: str) -> None:
        """An attribute of an instance is used, and attributes of that."""
        self._once(self._member, family, name, path, use)

    def _member(self, family: Family, name: str, path: str, use: str) -> None:
        definer = family.definer(name)
        known = definer is not None
        if definer is not None:
            self.member_of(definer, name, Place(definer.module, definer, family))
            if use == "r":
                for number in definer.outline.members[name]:
                    self.value(definer.module, number)
        if use != "w" and not (use == "m" and "." not in path):
            for owner, number in family.writers.get(name, ()):
                known = True
                self._method(owner, number, family)
            if not known and name not in _OF_EVERY_OBJECT:
                self.escape(family)
        if use in "wk" and not path:
            return
        key = (family, name)
        self._asked.setdefault(key, []).append((path, use))
        for part in self._parts.get(key, ()):
            self._ask(part, path, use)

    def _method(self, owner: ProjectClass, number: int, family: Family) -> None:
        unit = owner.module.summary.units[number]
        self.member_of(owner, unit.name.rpartition(".")[2], Place(owner.module, owner, family))

    def known_families(self) -> int:
        return len(self._families)

    def method_elsewhere(self, owner: ProjectClass, number: int) -> None:
        known = [self._system, *self._families] if self._system is not None else self._families
        family = next((family for family in known if owner in family.members), None)
        if family is None:
            self.whole_class(owner)
        else:
            self._method(owner, number, family)

    def escape(self, family: Family) -> None:
        """The instance is passed on: anybody may call anything."""
        for member in family.members:
            self.whole_class(member)
            self.class_documentation(member)

    # ---------------------------------------------------------------------------- parts of an instance

    def new_instance(self, attribute: str, chain: str, place: Place) -> None:
        found = self.world.links.resolve(place.module, chain)
        part = self.world.hierarchy.only(found)
        family = place.family
        kept = part is not None and self.world.hierarchy.family(part).closed
        if not attribute or part is None or not kept or family is None or not family.closed:
            self.follow(found, "c", place)
            return
        for module in found.entered:
            self.enter(module)
        for module, name, _ in found.names:
            if self.world.hierarchy.named(module, name) is not part:
                self.name(module, name)
        self.instance(part)
        key = (family, attribute)
        parts = self._parts.setdefault(key, [])
        if part not in parts:
            parts.append(part)
            for path, use in self._asked.get(key, ()):
                self._ask(part, path, use)

    def _ask(self, part: ProjectClass, path: str, use: str) -> None:
        family = self.world.hierarchy.family(part)
        if not path or use == "w":
            self.escape(family)
            return
        name, _, rest = path.partition(".")
        self.member(family, name, rest, "c" if use == "m" and not rest else use)

    # --------------------------------------------------------------------------------------- references

    def self_reference(self, use: str, chain: str, place: Place) -> None:
        family, owner = place.family, place.owner
        if family is None:
            if owner is not None and use == "r" and chain[0] == "@":
                self._document_member(owner, chain[2:].partition(".")[0])
            return
        start, _, rest = chain.partition(".")
        if not rest:
            self.escape(family)
            return
        name, _, path = rest.partition(".")
        if start == "@":
            self.member(family, name, path, use)
        else:
            self._inherited(family, owner, name, every=start == "^^")

    def _inherited(self, family: Family, owner: ProjectClass | None, name: str, *, every: bool) -> None:
        """What `super()` finds: the next definition after the class, or any when it is called with arguments."""
        members = family.members
        if not every and owner in members:
            members = members[members.index(owner) + 1 :]
        found = [member for member in members if name in member.outline.members]
        for member in found if every else found[:1]:
            self.member_of(member, name, Place(member.module, member, family))
        if not found and name not in _OF_EVERY_OBJECT:
            self.escape(family)

    def _document_member(self, owner: ProjectClass, name: str) -> None:
        """An attribute of an instance is passed on, or the instance itself."""
        if not name:
            for member in self.world.hierarchy.family(owner).members:
                self.class_documentation(member)
        definer = self.world.hierarchy.family(owner).definer(name)
        if definer is not None:
            for number in definer.outline.members[name]:
                self.value(definer.module, number)

    def known_class(self, module: Module, name: str, path: str, use: str, place: Place) -> bool:
        family = place.family
        each = self.world.hierarchy.named(module, name) if family is not None else None
        if family is None or each is None or each not in family.members:
            return False
        if use == "b":
            return True
        member = path.partition(".")[0]
        definer = self.world.hierarchy.family(each).definer(member) if member else None
        if definer is None:
            return False
        self.member_of(definer, member, Place(definer.module, definer, family))
        return True

    def parent_call(self, chain: str, place: Place) -> None:
        found = self.world.links.resolve(place.module, chain)
        family, named = place.family, self.world.hierarchy.named
        own = family is not None and all(
            path and named(module, name) in family.members for module, name, path in found.definitions()
        )
        outside = [dotted for dotted in found.outside if dotted not in _HARMLESS_PARENTS]
        if family is not None and (not own or outside or found.wholes or found.stars):
            self.escape(family)
        elif place.owner is not None and family is None:
            self._document_member(place.owner, "")
        self.follow(found, "c", place)
