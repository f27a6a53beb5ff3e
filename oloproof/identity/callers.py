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
        self._index: dict[str, set[Place]] | None = None
        self._direct: dict[Place, tuple[Place, ...]] = {}
        self._all: dict[Place, tuple[Place, ...]] = {}

    def of(self, name: str, module: Module, number: int) -> Sequence[Place]:
        """The functions that call one that changes a name, directly or not, since they decide what it puts there; none
        for one that only fills in what is not there yet."""
        if _fills_in(name, module.summary.units[number]):
            return ()
        place = (module, number)
        if place not in self._all:
            self._all[place] = self._found(place)
        return self._all[place]

    def _found(self, first: Place) -> tuple[Place, ...]:
        seen = {first: False}
        pending = [first]
        while pending:
            place = pending.pop()
            if place not in self._direct:
                self._direct[place] = tuple(dict.fromkeys(self._users(*place)))
            for user in self._direct[place]:
                if user not in seen:
                    seen[user] = user[0].summary.units[user[1]].inert >= 0
                    pending.append(user)
        return tuple(place for place, counts in seen.items() if counts)

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
                for word in set(_IDENTIFIER.findall(" ".join(unit.refs))):
                    self._index.setdefault(word, set()).add((module, number))
                for ref in unit.refs:  # the letter of a use stands right before a name
                    for word in _IDENTIFIER.findall(ref[1:]):
                        self._index.setdefault(word, set()).add((module, number))
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
