"""Which functions call one that changes something, and so decide what it puts there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from oloproof.identity.knowledge import top_level
from oloproof.identity.linking import Links
from oloproof.identity.sources import Module
from oloproof.identity.summary import Unit

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_READS = "rck"


#: A unit by its module and its number there.
Place = tuple[Module, int]


class Callers:
    """Finds the functions that refer to another, by the names in their references."""

    def __init__(self, links: Links, units: Sequence[tuple[Module, int, Unit]]) -> None:
        self._links = links
        self._units = units
        self._index: dict[str, dict[Place, None]] | None = None
        self._known: dict[Place, tuple[Place, ...]] = {}

    def count(self, name: str, module: Module, number: int) -> bool:
        """Whether those who call a unit that changes a name decide what it puts there: not when it only fills in what
        is not there yet."""
        return not _fills_in(name, module.summary.units[number])

    def of(self, place: Place) -> tuple[Place, ...]:
        """The units that refer to a unit."""
        if place not in self._known:
            self._known[place] = tuple(dict.fromkeys(self._users(*place)))
        return self._known[place]

    def _users(self, module: Module, number: int) -> Iterator[Place]:
        """The units that refer to a unit."""
        unit = module.summary.units[number]
        for full in unit.name.split(","):
            owner, _, name = full.rpartition(".")
            special = name.startswith("__") and name.endswith("__")
            if owner and not special:
                yield from self._by_identifier(name)
                continue
            top = top_level(full)
            for where, other in self._by_identifier(top):
                refs = where.summary.units[other].refs
                chains = (
                    ref.partition(">")[2] if ref[0] == "n" else ref[1:]
                    for ref in refs
                    if ref[0] in "rcsmwnpbk"
                )
                if any(
                    (module, top) == (place, found)
                    for chain in chains
                    if top in chain and chain[0] not in "@^"
                    for place, found, _ in self._links.resolve(where, chain).names
                ):
                    yield where, other

    def _by_identifier(self, name: str) -> Iterable[Place]:
        if self._index is None:
            self._index = {}
            for module, number, unit in self._units:
                place = (module, number)
                # The letter of a use stands right before a name.
                for word in _IDENTIFIER.findall(" ".join([ref[1:] for ref in unit.refs])):
                    self._index.setdefault(word, {})[place] = None
        return self._index.get(name, ())


def _fills_in(name: str, unit: Unit) -> bool:
    """Whether a function changes a name only to fill in what is not there yet: the name itself, when it is not set and
    nothing comes from the caller; or an entry, under a key that is not fixed, which it reads as well."""
    refs = [ref for ref in unit.refs if name in ref]
    if "E" in unit.refs and any(ref[0] == "k" for ref in refs):
        return True
    written = [ref for ref in refs if ref[0] in "wma"]
    keyed = all(ref.endswith((f"{name}.__setitem__", f"{name}.setdefault")) for ref in written)
    read = any(ref[0] in _READS for ref in refs)
    return bool(written) and keyed and read and not any(ref[0] == "J" for ref in refs)
