"""What a walk over the project collects, and what it still has to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from oloproof.identity.calls import Calls
from oloproof.identity.effects import Effects
from oloproof.identity.hierarchy import Family, Hierarchy, ProjectClass
from oloproof.identity.knowledge import INDIFFERENT_PACKAGES, OWN, STANDARD_LIBRARY
from oloproof.identity.linking import Links
from oloproof.identity.normal import short_digest
from oloproof.identity.sources import Module, Sources

#: Stands for every installed package.
ALL_PACKAGES = "*"


@dataclass(frozen=True, slots=True)
class World:
    """The project as it stands."""

    sources: Sources
    links: Links
    hierarchy: Hierarchy
    calls: Calls
    effects: Effects


class Place(NamedTuple):
    """Where a reference stands: in which module; in the code of which class; of the instance of which family, when
    that is known."""

    module: Module
    owner: ProjectClass | None = None
    family: Family | None = None


class Walk:
    """Collects ingredients. The public methods say what is reached; `run` follows it to the end."""

    def __init__(self, world: World) -> None:
        self.world = world
        #: What counts, by name, with a digest.
        self.ingredients: dict[str, str] = {}
        #: Top-level names of modules outside the project.
        self.libraries: set[str] = set()
        self._seen: set[tuple[Any, ...]] = set()
        #: Lists of writers that count already, each with `known_families` at that time; and, by that, the units whose
        #: callers count.
        self._written: dict[tuple[int, int], Any] = {}
        self._called: dict[int, set[tuple[Module, int]]] = {}
        #: Definitions passed on as values, with docstrings or annotations.
        self._values: dict[tuple[Module, int], None] = {}
        self._reads_documentation = False
        #: Whether the code that is looked at is a function's, which may run at any time.
        self._in_function = False
        self._todo: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def copy_to(self, other: Walk) -> None:
        """Let another walk have been where this one has."""
        other.ingredients = self.ingredients.copy()
        other.libraries = self.libraries.copy()
        other._seen = self._seen.copy()
        other._written = self._written.copy()
        other._called = {known: called.copy() for known, called in self._called.items()}
        other._values = self._values.copy()
        other._reads_documentation = self._reads_documentation

    def run(self) -> None:
        while self._todo:
            method, arguments = self._todo.pop()
            method(*arguments)
            if not self._todo and self._values and self._may_read_documentation():
                values, self._values = self._values, {}
                for value in values:
                    self._once(self._show, *value)

    def _once(self, method: Callable[..., None], *arguments: Any) -> None:
        """Do something later, if it was not done before."""
        key = (method.__name__, *arguments)
        if key not in self._seen:
            self._seen.add(key)
            self._todo.append((method, arguments))

    def known_families(self) -> int:
        """How many instances are known of which single methods count: what a writer brings in depends on it."""
        return 0

    def reference(self, ref: str, place: Place) -> None:
        """Follow one reference, in the notation of `scopes`."""
        raise NotImplementedError

    def count(self, module: Module, name: str, bindings: Iterable[int | str]) -> None:
        units = module.summary.units
        prints = [units[each].code if isinstance(each, int) else _import_text(each) for each in bindings]
        self.ingredients[f"{module.name}:{name}"] = prints[0] if len(prints) == 1 else short_digest(prints)

    # ------------------------------------------------------------------------------------ documentation

    def documentation(self, module: Module, name: str) -> None:
        """What a name stands for is passed on as a value. Its docstring and annotations count if there is somebody who
        may read them: the project's own code, or a package that is not known to be indifferent."""
        for binding in module.summary.names.get(name, ()):
            if isinstance(binding, int):
                each = self.world.hierarchy.at(module, binding)
                if each is not None:
                    self.class_documentation(each)
                else:
                    self.value(module, binding)

    def class_documentation(self, each: ProjectClass) -> None:
        """As `documentation`, for a class with its members."""
        self.value(each.module, each.number)
        for numbers in each.outline.members.values():
            for number in numbers:
                self.value(each.module, number)

    def value(self, module: Module, number: int) -> None:
        """As `documentation`, for a unit."""
        if module.summary.units[number].docs:
            self._values[module, number] = None

    def _may_read_documentation(self) -> bool:
        return self._reads_documentation or any(
            name not in INDIFFERENT_PACKAGES
            and name not in STANDARD_LIBRARY
            and name not in (OWN, "builtins")
            and self.world.sources.module(name) is None
            for name in self.libraries
        )

    def _show(self, module: Module, number: int) -> None:
        unit = module.summary.units[number]
        self.ingredients[f"docstring and annotations of {module.name}:{unit.name}"] = unit.docs
        for ref in unit.doc_refs:
            self.reference(ref, Place(module))


def _import_text(target: str) -> str:
    _, module, name = target.split("/")
    return f"from {module} import {name}" if name else f"import {module}"
