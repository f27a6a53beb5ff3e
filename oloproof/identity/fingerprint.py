"""The code fingerprint of each stage: what of the project's code the stage's result depends on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
        for name in names:
            if not self.providers.get(name) and name != EVERYTHING:
                found[f"package {name}"] = UNKNOWN
        for each in self.closure(names):
            found[f"package {each}"] = self.versions[each]
        return found

    def closure(self, names: Iterable[str]) -> set[str]:
        """The distributions that provide these modules, and all that those depend on."""
        pending = [each for name in names for each in self.providers.get(name, ())]
        found: set[str] = set()
        while pending:
            each = pending.pop()
            if each not in found and each in self.versions:
                found.add(each)
                pending += self.requires.get(each, ())
        return found


def code_identity(
    target: str,
    modules: Mapping[str, str],
    search: Sequence[str],
    python: str,
    packages: Callable[[frozenset[str]], PackageFacts],
    cache: ParseCache | None = None,
    installed: frozenset[str] = frozenset(),
) -> CodeIdentity:
    """The code fingerprint of every stage of `target` (`module:Class`, `module:Outer.Inner`).

    `modules` are the project's modules that importing the app imported, with their files; `search` the folders in
    which it would find others. `python` is the minor version, `packages` is asked for the top-level names of all
    modules outside the project; `cache` keeps what was read of a file under a digest of its content. `installed` are
    top-level names of modules of the project that something installed has too.

    What counts for a stage is its method and what that refers to: methods and attributes through self, cls and
    super(); functions, classes, globals with all that changes them; the modules of the project it passes, as far as
    they do more than define when they are imported; and the constructor. What an instance keeps in its own attributes
    is followed like the instance itself. Comments, formatting, positions and the arguments of `@rag_system` do not
    count; docstrings and annotations only where somebody may read them. What cannot be resolved counts wholly, up to
    every module and package; and so do modules that code outside the project may import, since they stand in the place
    of one that it needs. Raises OSError when a file cannot be read.

    Reaching definitions by name as in call graphs (PyCG, Salis and others 2021), without types: a superset of what
    can run is enough here.
    """
    disk = Disk(search)

    imported = [[name, disk.place(file)] for name, file in modules.items()]

    def reached(needed: frozenset[str]) -> AllReached:
        def walk() -> AllReached:
            sources = Sources(modules, search, cache, disk=disk)
            with undisturbed():
                found = _settled(target, sources, modules, needed)
                sources.keep()
            return _told(found, sources, installed.difference(modules))

        question = ["system", target, imported, *map(disk.place, search), sorted(installed), sorted(needed)]
        return reached_again(question, map(disk.text_note, modules.values()), disk, cache, walk)

    ingredients = _with_packages(reached, python, packages, installed)
    prints = {stage: digest("code", canonical_json(found)).hex() for stage, found in ingredients.items()}
    return CodeIdentity(Fingerprints(**prints), ingredients)


def script_ingredients(
    file: str,
    name: str,
    search: Sequence[str],
    python: str,
    packages: Callable[[frozenset[str]], PackageFacts],
    cache: ParseCache | None = None,
    installed: frozenset[str] = frozenset(),
) -> Ingredients:
    """What a file that is run as a program depends on: all it defines and does, also what stands under
    `if __name__ == "__main__"`, and what that reaches. `name` is that of its module; see `code_identity` for the rest.
    Raises OSError when a file cannot be read."""
    folder = os.path.dirname(file)
    for _ in name.split(".")[1:]:
        folder = os.path.dirname(folder)
    search = [folder, *search]
    disk = Disk(search)

    def reached(needed: frozenset[str]) -> AllReached:
        def walk() -> AllReached:
            sources = Sources({name: file}, search, cache, program=name, disk=disk)
            with undisturbed():
                reach = _settled_program(name, sources, needed)
                sources.keep()
            return _told({_PROGRAM: reach}, sources, installed)

        question = [_PROGRAM, name, *map(disk.place, [file, *search]), sorted(installed), sorted(needed)]
        return reached_again(question, [disk.text_note(file)], disk, cache, walk)

    return _with_packages(reached, python, packages, installed)[_PROGRAM]


def _settled_program(name: str, sources: Sources, needed: frozenset[str]) -> Reach:
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
        for each in _needed_outside(sources, needed):
            reach.whole(each)
        reach.run()
        if len(sources.loaded()) == len(known):
            return reach


def _needed_outside(sources: Sources, needed: frozenset[str]) -> Iterator[Module]:
    """The modules that code outside the project finds where it looks for others: those with names of the standard
    library, and those that packages need."""
    for name in sorted((sources.top_levels() & STANDARD_LIBRARY) | needed):
        if (module := sources.module(name)) is not None:
            yield module


def _told(reached: Mapping[str, Reach | None], sources: Sources, unsure: frozenset[str]) -> AllReached:
    """What each walk came by. Modules of the project are no packages, unless it is not sure which of them is found."""
    doubtful = {name: module for name in sorted(unsure) if (module := sources.module(name)) is not None}
    found: dict[str, Reached | None] = {}
    for stage, reach in reached.items():
        libraries = set[str]()
        if reach is not None:
            libraries.update(name for name in reach.libraries if not _is_own(name, sources))
            libraries.update(name for name, module in doubtful.items() if reach.has_entered(module))
        found[stage] = None if reach is None else Reached(reach.ingredients, frozenset(libraries))
    return found


def _with_packages(
    reached: Callable[[frozenset[str]], AllReached],
    python: str,
    packages: Callable[[frozenset[str]], PackageFacts],
    installed: frozenset[str],
) -> dict[str, Ingredients]:
    """The ingredients of each walk, with those of the packages it came by. Of the names in `installed` a walk is told
    those that some of these packages need: what they then find is the project's."""
    needed: frozenset[str] = frozenset()
    while True:
        found_by = reached(needed)
        libraries = frozenset[str]().union(
            *(each.libraries for each in found_by.values() if each is not None)
        )
        facts = packages(libraries | installed)
        used = facts.closure(libraries - installed)
        found_needed = needed.union(
            name for name in installed if used.intersection(facts.providers.get(name, ()))
        )
        if found_needed == needed:
            break
        needed = found_needed
    ingredients: dict[str, Ingredients] = {}
    for stage, each in found_by.items():
        found = {"python": python}
        if each is not None:
            found |= {**each.ingredients, **facts.ingredients(each.libraries)}
        ingredients[stage] = dict(sorted(found.items()))
    return ingredients


def _is_own(name: str, sources: Sources) -> bool:
    if name in STANDARD_LIBRARY or name in (OWN, "builtins"):
        return True
    return sources.module(name) is not None or sources.was_imported(name)


def _settled(
    target: str, sources: Sources, modules: Mapping[str, str], needed: frozenset[str]
) -> dict[str, Reach | None]:
    """What each stage reaches; None for a stage that the class has not. Modules that turn up on the way may change
    names that were passed before, so the walk begins again with them."""
    links = Links(sources)
    ours = _load(sources, links, [target.partition(":")[0]])
    imported = [module for name in sorted(modules) if (module := sources.module(name)) is not None]
    outsiders = [module for module in imported if module not in ours]
    _load(sources, links, modules)
    while True:
        known = sources.loaded()
        reached = _reach(target, links, known, imported, [*outsiders, *_needed_outside(sources, needed)])
        if len(sources.loaded()) == len(known):
            return reached


def _reach(
    target: str, links: Links, known: list[Module], imported: list[Module], outsiders: list[Module]
) -> dict[str, Reach | None]:
    """As `_settled`, with the modules in `known`. Those in `outsiders` are imported by code outside the project, or by
    a name made at run time, so anything in them may be called by anybody."""
    sources, world = links.sources, _world(links, known)
    hierarchy = world.hierarchy
    name, _, path = target.partition(":")
    module = sources.module(name)
    found = links.resolve(module, path) if module is not None else Resolution()
    system = hierarchy.only(found)
    base = Reach(world, hierarchy.family(system) if system is not None else None)
    for entered in [*([module] if module is not None else []), *imported]:
        base.enter(entered)
    for each in outsiders:
        base.whole(each)
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


def _load(sources: Sources, links: Links, names: Iterable[str]) -> set[Module]:
    """Load modules, and whatever of the project they import anywhere; gives them all."""
    pending = [module for name in names if (module := sources.module(name)) is not None]
    seen = set(pending)
    while pending:
        module = pending.pop()
        for found in _mentioned(module, links):
            if found not in seen:
                seen.add(found)
                pending.append(found)
    return seen


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
