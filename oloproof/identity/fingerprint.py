"""The code fingerprint of each stage: what of the project's code the stage's result depends on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from oloproof.canonical import canonical_json, digest
from oloproof.identity.calls import Calls
from oloproof.identity.disk import Disk
from oloproof.identity.earlier import AllReached, Reached, reached_again
from oloproof.identity.effects import Effects
from oloproof.identity.hierarchy import Hierarchy
from oloproof.identity.knowledge import OWN, STANDARD_LIBRARY
from oloproof.identity.linking import Links, Resolution
from oloproof.identity.packages import EVERYTHING, UNKNOWN
from oloproof.identity.reach import STAGES, Reach
from oloproof.identity.sources import Module, Sources, undisturbed
from oloproof.identity.summary import MemoryCache, ParseCache
from oloproof.identity.walk import Place, World

__all__ = [
    "CodeIdentity",
    "Fingerprints",
    "Ingredients",
    "MemoryCache",
    "PackageFacts",
    "ParseCache",
    "code_identity",
    "script_ingredients",
]

_PROGRAM = "program"
#: What a fingerprint is made of: names of ingredients, sorted, with short digests or versions.
Ingredients = Mapping[str, str]


@dataclass(frozen=True)
class Fingerprints:
    """Hex digests of the code behind each stage."""

    retrieve: str
    generate: str
    count_tokens: str


@dataclass(frozen=True)
class CodeIdentity:
    """The fingerprints of the stages, and what each is made of."""

    fingerprints: Fingerprints
    ingredients: Mapping[str, Ingredients]


@dataclass(frozen=True)
class PackageFacts:
    """What `packages.package_facts` tells: which distributions provide a module, their versions and dependencies."""

    providers: Mapping[str, Sequence[str]]
    versions: Mapping[str, str]
    requires: Mapping[str, Sequence[str]]

    def ingredients(self, names: Iterable[str]) -> dict[str, str]:
        """The versions of what provides these modules and of all that depends on; `unknown` for a module that no
        distribution provides."""
        found = {}
        pending: list[str] = []
        for name in names:
            providers = self.providers.get(name, ())
            pending += providers
            if not providers and name != EVERYTHING:
                found[f"package {name}"] = UNKNOWN
        seen = set()
        while pending:
            each = pending.pop()
            if each not in seen and each in self.versions:
                seen.add(each)
                found[f"package {each}"] = self.versions[each]
                pending += self.requires.get(each, ())
        return found


def code_identity(
    target: str,
    modules: Mapping[str, str],
    search: Sequence[str],
    python: str,
    packages: Callable[[frozenset[str]], PackageFacts],
    cache: ParseCache | None = None,
) -> CodeIdentity:
    """The code fingerprint of every stage of `target` (`module:Class`, `module:Outer.Inner`).

    `modules` are the project's modules that importing the app imported, with their files; `search` the folders in
    which it would find others. `python` is the minor version, `packages` is asked once, for the top-level names of
    all modules outside the project; `cache` keeps what was read of a file under a digest of its content.

    What counts for a stage is its method and what that refers to: methods and attributes through self, cls and
    super(); functions, classes, globals with all that changes them; the modules of the project it passes, as far as
    they do more than define when they are imported; and the constructor. What an instance keeps in its own attributes
    is followed like the instance itself. Comments, formatting, positions and the arguments of `@rag_system` do not
    count; docstrings and annotations only where somebody may read them. What cannot be resolved counts wholly, up to
    every module and package. Raises OSError when a file cannot be read.

    Reaching definitions by name as in call graphs (PyCG, Salis and others 2021), without types: a superset of what
    can run is enough here.
    """
    disk = Disk(search)

    def walk() -> AllReached:
        sources = Sources(modules, search, cache, disk=disk)
        with undisturbed():
            reached = _settled(target, sources, modules)
            sources.keep()
        return _told(reached, sources)

    imported = [[name, disk.place(file)] for name, file in modules.items()]
    question = ["system", target, imported, *map(disk.place, search)]
    first = map(disk.text_note, modules.values())
    ingredients = _with_packages(reached_again(question, first, disk, cache, walk), python, packages)
    prints = {stage: digest("code", canonical_json(found)).hex() for stage, found in ingredients.items()}
    return CodeIdentity(Fingerprints(**prints), ingredients)


def script_ingredients(
    file: str,
    name: str,
    search: Sequence[str],
    python: str,
    packages: Callable[[frozenset[str]], PackageFacts],
    cache: ParseCache | None = None,
) -> Ingredients:
    """What a file that is run as a program depends on: all it defines and does, also what stands under
    `if __name__ == "__main__"`, and what that reaches. `name` is that of its module; see `code_identity` for the rest.
    Raises OSError when a file cannot be read."""
    folder = os.path.dirname(file)
    for _ in name.split(".")[1:]:
        folder = os.path.dirname(folder)
    search = [folder, *search]
    disk = Disk(search)

    def walk() -> AllReached:
        sources = Sources({name: file}, search, cache, program=name, disk=disk)
        with undisturbed():
            reach = _settled_program(name, sources)
            sources.keep()
        return _told({_PROGRAM: reach}, sources)

    question = [_PROGRAM, name, *map(disk.place, [file, *search])]
    reached = reached_again(question, [disk.text_note(file)], disk, cache, walk)
    return _with_packages(reached, python, packages)[_PROGRAM]


def _settled_program(name: str, sources: Sources) -> Reach:
    links = Links(sources)
    while True:
        _load(sources, links, [name])
        known = sources.loaded()
        reach = Reach(_world(links, known))
        module = sources.module(name)
        assert module is not None
        for above in links.imported(module, f"/{name}/"):
            reach.enter(above)
        reach.whole(module, deep=False)
        reach.run()
        if len(sources.loaded()) == len(known):
            return reach


def _told(reached: Mapping[str, Reach | None], sources: Sources) -> AllReached:
    """What each walk came by. Modules of the project are no packages."""
    own = {name for reach in reached.values() if reach for name in reach.libraries if _is_own(name, sources)}
    return {
        stage: None if reach is None else Reached(reach.ingredients, frozenset(reach.libraries - own))
        for stage, reach in reached.items()
    }


def _with_packages(
    reached: AllReached, python: str, packages: Callable[[frozenset[str]], PackageFacts]
) -> dict[str, Ingredients]:
    """The ingredients of each walk, with those of the packages it came by."""
    facts = packages(frozenset().union(*(each.libraries for each in reached.values() if each is not None)))
    ingredients: dict[str, Ingredients] = {}
    for stage, each in reached.items():
        found = {"python": python}
        if each is not None:
            found |= {**each.ingredients, **facts.ingredients(each.libraries)}
        ingredients[stage] = dict(sorted(found.items()))
    return ingredients


def _is_own(name: str, sources: Sources) -> bool:
    if name in STANDARD_LIBRARY or name in (OWN, "builtins"):
        return True
    return sources.module(name) is not None or sources.was_imported(name)


def _settled(target: str, sources: Sources, modules: Mapping[str, str]) -> dict[str, Reach | None]:
    """What each stage reaches; None for a stage that the class has not. Modules that turn up on the way may change
    names that were passed before, so the walk begins again with them."""
    links = Links(sources)
    _load(sources, links, [target.partition(":")[0], *modules])
    while True:
        known = sources.loaded()
        reached = _reach(target, links, known, [name for name in modules if sources.module(name)])
        if len(sources.loaded()) == len(known):
            return reached


def _reach(target: str, links: Links, known: list[Module], imported: list[str]) -> dict[str, Reach | None]:
    sources, world = links.sources, _world(links, known)
    hierarchy = world.hierarchy
    name, _, path = target.partition(":")
    module = sources.module(name)
    found = links.resolve(module, path) if module is not None else Resolution()
    system = hierarchy.only(found)
    base = Reach(world, hierarchy.family(system) if system is not None else None)
    for each in [name, *sorted(imported)]:
        if (entered := sources.module(each)) is not None:
            base.enter(entered)
    if module is None or not (found.names or found.wholes):
        base.everything()
    elif system is None:
        base.follow(found, "r", Place(module))
    else:
        for where, passed, _ in found.names:  # what imports the class on the way to it
            if hierarchy.named(where, passed) is None:
                base.name(where, passed)
    base.run()
    reached: dict[str, Reach | None] = {}
    for stage in STAGES:
        reach = base.copy()
        there = system is None or reach.stage(system, stage)
        reach.run()
        reached[stage] = reach if there else None
    return reached


def _world(links: Links, known: list[Module]) -> World:
    hierarchy = Hierarchy(links)
    calls = Calls(links, hierarchy)
    return World(links.sources, links, hierarchy, calls, Effects(links, hierarchy, calls, known))


def _load(sources: Sources, links: Links, names: Iterable[str]) -> None:
    """Load modules, and whatever of the project they import anywhere."""
    pending = [module for name in names if (module := sources.module(name)) is not None]
    seen = set(pending)
    while pending:
        module = pending.pop()
        for found in _mentioned(module, links):
            if found not in seen:
                seen.add(found)
                pending.append(found)


def _mentioned(module: Module, links: Links) -> Iterable[Module]:
    summary = module.summary
    for item in summary.on_import:
        if isinstance(item, str):
            yield from links.imported(module, item)
    for unit in summary.units:
        for ref in unit.refs:
            if ref[0] == "i":
                yield from links.imported(module, ref[1:])
            elif ref[0] == "T":
                yield from links.module(module, ref[1:]).wholes
            elif ref[0] == "t":
                yield from links.text(module, ref[1:]).entered
