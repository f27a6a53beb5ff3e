"""Which code of the project a piece of code may call, wherever it stands and whatever it is called on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oloproof.identity.hierarchy import Hierarchy, methods
from oloproof.identity.linking import Links
from oloproof.identity.sources import Module

_FOLLOWED = "rcknpbs"


class Calls:
    """Follows references without asking which instance or class they belong to."""

    def __init__(self, links: Links, hierarchy: Hierarchy) -> None:
        self._links = links
        self._hierarchy = hierarchy
        self._asked: dict[tuple[Module, int], frozenset[str]] = {}

    def reached(
        self, module: Module, refs: Iterable[str], seen: set[tuple[Module, str]]
    ) -> Iterator[tuple[Module, int]]:
        """The units that references lead to, and theirs; names in `seen` are left out, and new ones are added."""
        pending = [(module, refs)]
        while pending:
            where, each = pending.pop()
            for ref in each:
                if ref[0] not in _FOLLOWED or ref[1] in "@^":
                    continue
                chain = ref.partition(">")[2] if ref[0] == "n" else ref[1:]
                for place, name, _ in self._links.resolve(where, chain).names:
                    if (place, name) not in seen:
                        seen.add((place, name))
                        for number in self.units(place, name):
                            yield place, number
                            pending.append((place, place.summary.units[number].refs))

    def units(self, module: Module, name: str) -> Iterator[int]:
        """The units behind a name; of a class all of it."""
        for binding in module.summary.names[name]:
            if isinstance(binding, int):
                yield binding
                each = self._hierarchy.at(module, binding)
                if each is not None:
                    for _, member in methods(self._hierarchy.with_inner(each)):
                        yield member

    def asked(self, module: Module, number: int, refs: Iterable[str]) -> frozenset[str]:
        """The attributes that the code behind references of a unit asks of objects it is given; `*` for any."""
        key = (module, number)
        if key not in self._asked:
            names: set[str] = set()
            for ref in refs:
                names.update(_attributes(ref))
            for where, unit in self.reached(module, refs, set()):
                for ref in where.summary.units[unit].refs:
                    names.update(_attributes(ref))
            self._asked[key] = frozenset(names)
        return self._asked[key]


def _attributes(ref: str) -> list[str]:
    """The names of attributes in a reference, but for the first one of self."""
    if ref[0] == "u":
        return ref[1:].split(" ")
    if ref[0] not in "rcknpbswm" or "." not in ref:
        return []
    return ref.split(".")[2 if ref[1] in "@^" else 1 :]
