"""What results of a checkout are identified by: the code of app and evaluators, the environment, the preparation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from oloproof.canonical import canonical_json, digest
from oloproof.errors import ConfigurationError
from oloproof.identity.fingerprint import (
    CodeIdentity,
    PackageFacts,
    ParseCache,
    code_identity,
    script_ingredients,
)
from oloproof.identity.preparation import Preparation

#: How many digits are shown of a variable's digest.
_SHORT = 16


@dataclass(frozen=True)
class Surroundings:
    """A checkout as its worker described it: the folders in which it finds modules, Python's minor version, how to ask
    for the versions of packages, and which names of modules are the project's and of something installed."""

    search: Sequence[str]
    python: str
    packages: Callable[[frozenset[str]], PackageFacts]
    installed: frozenset[str] = frozenset()

    def code(self, target: str, modules: Mapping[str, str], outlines: ParseCache | None) -> CodeIdentity:
        """The fingerprints of what `target` (module:name) reaches; raises ConfigurationError when a file cannot be
        read, as all methods here."""
        with _readable_files():
            return code_identity(
                target, modules, self.search, self.python, self.packages, outlines, self.installed
            )

    def preparation(
        self,
        command: str,
        root: Path,
        top: Path,
        tracked: Callable[[str], bool] | None,
        outlines: ParseCache | None,
    ) -> dict[str, str]:
        """What a `prepare` command depends on; see `Preparation` for the arguments."""

        def code_of(file: Path, module: str) -> dict[str, str]:
            search, python = self.search, self.python
            found = script_ingredients(
                str(file), module, search, python, self.packages, outlines, self.installed
            )
            return dict(found)

        with _readable_files():
            return Preparation(root, top, tracked, code_of).ingredients(command)


def variables(names: Sequence[str], values: Mapping[str, str]) -> dict[str, str]:
    """The digest of each variable by its name; of one that is not set, that it is not."""
    return {
        name: digest("variable", name, values[name]).hex()[:_SHORT] if name in values else "not set"
        for name in sorted(set(names))
    }


def environment_digest(names: Sequence[str], values: Mapping[str, str]) -> str:
    """The digest of the variables that `identity.env` names, empty when there are none; values go no further."""
    wanted = sorted(set(names))
    if not wanted:
        return ""
    return digest("environment", canonical_json([[name, values.get(name)] for name in wanted])).hex()


def preparation_digest(ingredients: Mapping[str, str]) -> str:
    """The digest of what a `prepare` command depends on."""
    return digest("prepare", canonical_json(dict(ingredients))).hex()


@contextmanager
def _readable_files() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigurationError(f"{error.filename}: cannot be read ({error.strerror})") from None
