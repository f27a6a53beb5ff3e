"""What a chain of names in one module stands for: a definition in another, a whole module, something outside."""

from __future__ import annotations

from dataclasses import dataclass, field

from oloproof.identity.knowledge import BUILTIN_NAMES, OWN, top_level
from oloproof.identity.sources import Module, Sources

#: What every module has without binding it.
_MODULE_ATTRIBUTES = frozenset(
    {"__name__", "__file__", "__path__", "__package__", "__spec__", "__loader__", "__doc__"}
)


@dataclass(slots=True)
class Resolution:
    """Everything that a chain passes or ends at.

    `names`: module, name and the attributes left over. `wholes`: modules that may be looked at by any name; `stars`:
    those all of which is imported. `outside`: dotted names of the standard library and of installed packages.
    `entered`: modules that are imported on the way. `missing`: names that a module does not bind where it is seen.
    """

    names: list[tuple[Module, str, str]] = field(default_factory=list)
    wholes: list[Module] = field(default_factory=list)
    stars: list[Module] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    entered: list[Module] = field(default_factory=list)
    missing: list[tuple[Module, str]] = field(default_factory=list)

    def definitions(self) -> list[tuple[Module, str, str]]:
        """The names that are bound by something else than an import."""
        return [
            found
            for found in self.names
            if any(isinstance(binding, int) for binding in found[0].summary.names[found[1]])
        ]


class Links:
    """Resolves chains; remembers what it found."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._known: dict[tuple[Module, str], Resolution] = {}
        self._imported: dict[tuple[Module, str], list[Module]] = {}

    def resolve(self, module: Module, chain: str) -> Resolution:
        """What a chain (in the notation of `scopes`) stands for in a module."""
        found = self._known.get((module, chain))
        if found is None:
            walk = _Walk(self.sources)
            if chain.startswith("/"):
                walk.target(module, chain, "")
            else:
                root, _, path = chain.partition(".")
                walk.name(module, root, path)
            found = self._known[module, chain] = walk.found
        return found

    def imported(self, module: Module, target: str) -> list[Module]:
        """The modules of the project that an import executes, in that order."""
        found = self._imported.get((module, target))
        if found is None:
            found = self._imported[module, target] = self._find_imported(module, target)
        return found

    def _find_imported(self, module: Module, target: str) -> list[Module]:
        _, written, name = target.split("/")
        absolute = module.absolute(written)
        if absolute is None:
            return []
        parts = absolute.split(".")
        names = [".".join(parts[: count + 1]) for count in range(len(parts))]
        if name:
            names.append(f"{absolute}.{name.partition('.')[0]}")
        return [found for each in names if (found := self.sources.module(each)) is not None]

    def text(self, module: Module, text: str) -> Resolution:
        """What a string may name: module.name, module:name, or a file of the project."""
        walk = _Walk(self.sources)
        if text.endswith(".py"):
            stem = text.removesuffix(".py").strip("./").replace("/", ".")
            candidates = {stem, stem.rpartition(".")[2], f"{module.name.rpartition('.')[0]}.{stem}"}
            for name in sorted(candidates):
                if (found := self.sources.module(name)) is not None:
                    walk.found.wholes.append(found)
            return walk.found
        absolute = module.absolute(text.replace(":", "."))
        if absolute is not None:
            parts = absolute.split(".")
            if self.sources.module(parts[0]) or self.sources.is_folder(parts[0]):
                walk.module(parts[0], parts[1:])
        return Resolution() if walk.found.missing else walk.found

    def module(self, module: Module, name: str) -> Resolution:
        """The module behind the literal argument of a function that imports."""
        walk = _Walk(self.sources)
        walk.module(module.absolute(name) or "?", [])
        return walk.found


class _Walk:
    """One resolution."""

    def __init__(self, sources: Sources) -> None:
        self.found = Resolution()
        self._sources = sources
        self._seen: set[tuple[str, str, str]] = set()

    def name(self, module: Module, root: str, path: str) -> None:
        """A name that is global in a module, with attributes after it."""
        key = (module.name, root, path)
        if key in self._seen:
            return
        self._seen.add(key)
        found, summary = self.found, module.summary
        if summary.opaque:
            found.wholes.append(module)
            return
        bindings = summary.names.get(root, ())
        if bindings:
            found.names.append((module, root, path))
        for binding in bindings:
            if isinstance(binding, str):
                self.target(module, binding, path)
        for star in summary.stars:
            self._star(module, star, root, path, bound=bool(bindings))
        if not bindings:
            found.missing.append((module, root))
        if not bindings and (not summary.stars or root in BUILTIN_NAMES):
            found.outside.append(".".join(["builtins", root, *([path] if path else [])]))

    def _star(self, module: Module, star: str, root: str, path: str, bound: bool) -> None:
        absolute = module.absolute(star.split("/")[1]) or ""
        source = self._sources.module(absolute)
        if source is None:
            if not bound:
                self.found.outside.append(f"{absolute}.{root}")
        elif self._sources.module(f"{absolute}.{root}") is not None:
            self.found.stars.append(source)
            self.module(absolute, [root, *path.split(".")] if path else [root])
        elif self._binds(source, root, set()):
            self.found.stars.append(source)
            self.name(source, root, path)
        elif not bound and root not in BUILTIN_NAMES:
            self.found.stars.append(source)

    def target(self, module: Module, target: str, path: str) -> None:
        """What an import names, with attributes after it."""
        _, written, name = target.split("/")
        absolute = module.absolute(written)
        if absolute is not None:
            self.module(absolute, [part for part in (*name.split("."), *path.split(".")) if part])

    def module(self, name: str, parts: list[str]) -> None:
        """What follows after a module's full name."""
        if not name or top_level(name) == OWN:
            return
        found, sources = self.found, self._sources
        above = name
        while "." in above:
            above = above.rpartition(".")[0]
            if (parent := sources.module(above)) is not None:
                found.entered.append(parent)
        module = sources.module(name)
        if module is None:
            self._no_module(name, parts)
            return
        found.entered.append(module)
        if not parts or module.summary.opaque:
            found.wholes.append(module)
            return
        head, path = parts[0], ".".join(parts[1:])
        bound = self._binds(module, head, set())
        if bound:
            self.name(module, head, path)
        below = f"{name}.{head}"
        if sources.module(below) is not None or sources.is_folder(below):
            self.module(below, parts[1:])
        elif not bound and head not in _MODULE_ATTRIBUTES:
            found.wholes.append(module)
            found.missing.append((module, head))

    def _no_module(self, name: str, parts: list[str]) -> None:
        sources, found = self._sources, self.found
        inside = False
        if sources.is_folder(name):
            below = f"{name}.{parts[0]}" if parts else ""
            inside = bool(below) and (sources.module(below) is not None or sources.is_folder(below))
            if inside:
                self.module(below, parts[1:])
            if sources.was_imported(name) or "." in name:
                return
        parent = sources.module(name.rpartition(".")[0]) if "." in name else None
        if parent is not None:
            found.wholes.append(parent)
        else:
            found.outside.append(".".join([name, *parts]))

    def _binds(self, module: Module, name: str, seen: set[str]) -> bool:
        summary = module.summary
        if name in summary.names or summary.opaque:
            return True
        if module.name in seen:
            return False
        seen.add(module.name)
        for star in summary.stars:
            source = self._sources.module(module.absolute(star.split("/")[1]) or "")
            if source is not None and self._binds(source, name, seen):
                return True
        return False
