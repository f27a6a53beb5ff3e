"""Where the references in a piece of code lead."""

from __future__ import annotations

from oloproof.identity.definitions import Definitions
from oloproof.identity.knowledge import (
    DOCUMENTATION_READERS,
    DYNAMIC_IMPORTS,
    DYNAMIC_MODULES,
    IMPORT_CALLS,
    IMPORT_PATHS,
    REFLECTION,
    STANDARD_LIBRARY,
    listed,
    top_level,
)
from oloproof.identity.linking import Resolution
from oloproof.identity.scopes import NOTES
from oloproof.identity.sources import Module
from oloproof.identity.walk import Place


class References(Definitions):
    """A walk that follows references; what is special about instances is left to `Reach`."""

    def reference(self, ref: str, place: Place) -> None:
        """Follow one reference, in the notation of `scopes`."""
        use, chain = ref[0], ref[1:]
        module, links = place.module, self.world.links
        if use == "n":
            attribute, _, chain = chain.partition(">")
            self.new_instance(attribute, chain, place)
        elif use in NOTES:
            return  # looked at where the whole piece of code is
        elif use == "A":
            self._reads_documentation = True
        elif use == "D":
            self.everything()
        elif use == "B":
            self.everything(texts=True)
        elif use == "i":
            for imported in links.imported(module, chain):
                self.enter(imported)
            self._outside_import(chain, module)
        elif use == "t":
            self.follow(links.text(module, chain), "c", place)
        elif use == "T":
            self.follow(links.module(module, chain), "c", place)
        elif chain[0] in "@^":
            self.self_reference(use, chain, place)
        elif use == "p":
            self.parent_call(chain, place)
        elif use == "m":
            owner = chain.rpartition(".")[0]
            found = links.resolve(module, owner) if owner and not owner.endswith("/") else Resolution()
            if found.names:
                self.follow(found, "w", place)
            else:
                self.follow(links.resolve(module, chain), "c", place)
        else:
            self.follow(links.resolve(module, chain), use, place)

    def self_reference(self, use: str, chain: str, place: Place) -> None:
        """A use of self, or of super()."""

    def parent_call(self, chain: str, place: Place) -> None:
        """A method of a class is called with self."""
        self.follow(self.world.links.resolve(place.module, chain), "c", place)

    def new_instance(self, attribute: str, chain: str, place: Place) -> None:
        """A class is called, and the result assigned to an attribute of self, or to a name when that is empty."""
        self.follow(self.world.links.resolve(place.module, chain), "c", place)

    def follow(self, found: Resolution, use: str, place: Place) -> None:
        for module in found.entered:
            self.enter(module)
        for module in found.wholes:
            self.whole(module)
        for module in found.stars:
            self.whole(module, deep=False)
        for module, name in found.missing:
            self.writers_of(module, name)
        for module, name, path in found.names:
            if not self.known_class(module, name, path, use, place):
                self.name(module, name, read=use != "w")
            if use == "r":
                self._document_value(module, name, path)
        for dotted in found.outside:
            self.outside(dotted, use, place.module)

    def known_class(self, module: Module, name: str, path: str, use: str, place: Place) -> bool:
        """Whether the name is a class of the instance whose method this is, and has been dealt with."""
        return False

    def _document_value(self, module: Module, name: str, path: str) -> None:
        if not path or self.world.hierarchy.named(module, name) is not None:
            self.documentation(module, name)

    def _outside_import(self, target: str, module: Module) -> None:
        written = target.split("/")[1]
        absolute = module.absolute(written)
        if absolute and self.world.sources.module(top_level(absolute)) is None:
            self.libraries.add(top_level(absolute))

    def outside(self, dotted: str, use: str, module: Module) -> None:
        if use == "l" and dotted in IMPORT_CALLS:
            return
        if use == "r" and dotted in DYNAMIC_MODULES:
            self.everything()
        if use not in "wm":
            self.all_writers(self.world.effects.writers_outside(dotted))
        if listed(dotted, REFLECTION):
            self.whole(module)
        elif listed(dotted, DYNAMIC_IMPORTS) or (self._in_function and listed(dotted, IMPORT_PATHS)):
            self.everything()
        if listed(dotted, DOCUMENTATION_READERS):
            self._reads_documentation = True
        top = top_level(dotted)
        if top not in STANDARD_LIBRARY:
            self.libraries.add(top)
