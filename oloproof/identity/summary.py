"""What is kept of one source file: its definitions with digests, and what each refers to.

A summary depends on the bytes of the file alone, so it can be kept under their digest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

#: Goes into the key of a kept summary; to be raised whenever the normal form or the references change.
SUMMARY_VERSION = "6"


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest piece of a module that counts on its own: a function, a method, a class without its methods, an
    attribute of a class, a binding, or a compound statement with everything in it.

    `code` and `docs` are digests, of the normal form and of docstring and annotations (empty when there are none);
    `refs` and `doc_refs` are what each refers to, in the notation of `scopes`. `decorators` are those that may do
    more than wrap, with `()` when they are called. `inert` says how much of a function is known to do nothing to
    anything but its arguments: -1 it is no function, 0 nothing is known, 1 its own statements, 2 those of the
    functions directly inside it too.
    """

    name: str
    code: str
    refs: Sequence[str] = ()
    docs: str = ""
    doc_refs: Sequence[str] = ()
    decorators: Sequence[str] = ()
    inert: int = -1


@dataclass(frozen=True, slots=True)
class ClassOutline:
    """A class: the units of its members by name (its own unit where the class body computes them), the names of its
    attributes in order, and its bases (`?` for one that is not a name).

    `fields`: decorated, so that all its attributes may matter. `metaclass`: has one that is not known.
    `loud`: the class body does more than define.
    """

    members: Mapping[str, Sequence[int]]
    attributes: Sequence[str]
    bases: Sequence[str]
    fields: bool = False
    metaclass: bool = False
    loud: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """A module. `names` maps what it binds to the units and the targets of imports that bind it, in order;
    `classes` maps the unit of a class to its outline. `on_import` holds, in order, the units of statements that act
    when the module is imported, and the targets of its imports; `stars` the modules it imports all from.

    `suspects` are units whose definition may act on something else, `callers` bindings that call something,
    `containers` names that only ever hold a container made on the spot, `constants` those that only ever hold a text or
    number. `patches`: it changes what is not its own.
    `unused`: imports that nothing refers to. `libraries`: the modules it imports by absolute names. `assumed`: the
    outside packages whose decorators were taken to be what they are known as. `text` is a digest of the file; an
    `opaque` file could not be parsed, and there is nothing else.
    """

    text: str
    opaque: bool = False
    units: Sequence[Unit] = ()
    names: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    classes: Mapping[int, ClassOutline] = field(default_factory=dict)
    on_import: Sequence[int | str] = ()
    stars: Sequence[str] = ()
    suspects: Sequence[int] = ()
    callers: Sequence[int] = ()
    patches: bool = False
    unused: Sequence[str] = ()
    libraries: Sequence[str] = ()
    assumed: Sequence[str] = ()
    containers: Sequence[str] = ()
    constants: Sequence[str] = ()

    def to_json(self) -> str:
        units = [[u.name, u.code, u.refs, u.docs, u.doc_refs, u.decorators, u.inert] for u in self.units]
        classes = {
            unit: [c.members, c.attributes, c.bases, c.fields, c.metaclass, c.loud]
            for unit, c in self.classes.items()
        }
        rest = [self.names, classes, self.on_import, self.stars, self.suspects, self.callers, self.patches]
        last = [self.unused, self.libraries, self.assumed, self.containers, self.constants]
        return json.dumps([self.text, self.opaque, units, *rest, *last], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Summary:
        """The summary that `to_json` wrote. Raises ValueError, TypeError or IndexError for anything else."""
        data = json.loads(text)
        data[2] = [Unit(*unit) for unit in data[2]]
        data[4] = {int(unit): ClassOutline(*outline) for unit, outline in data[4].items()}
        return cls(*data)


class ParseCache(Protocol):
    """Keeps texts under keys; both are made here. A cache may forget, and must not change."""

    def read(self, key: str) -> str | None:
        """The text kept under a key, or None."""

    def write(self, entries: Mapping[str, str]) -> None:
        """Keep texts that were not found, once what they say is complete."""


class MemoryCache:
    """A ParseCache that lasts as long as it is held."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def read(self, key: str) -> str | None:
        return self._entries.get(key)

    def write(self, entries: Mapping[str, str]) -> None:
        self._entries.update(entries)
