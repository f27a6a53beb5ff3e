"""Which installed distributions provide a module, and what those depend on.

Runs inside the interpreter of the user's app, so it uses the standard library only and nothing else of this package.
As a program: `python packages.py NAME...` prints the facts as JSON.
"""

import json
import re
import sys
from importlib.metadata import Distribution, distributions

#: Words in the names of extras under which packages list what only their own developers need, and tools that no
#: running app loads since a package names them in an extra.
_DEVELOPMENT = (
    "bench benchmark benchmarking build check ci code cover coverage cov dev devel develop developer development doc "
    "docs doctest documentation format formatting lint linters linting mypy precommit qa release style test testing "
    "tests tox type typecheck typehints types typing"
)
_TOOLS = (
    "black build coverage flake8 furo hypothesis isort mkdocs mypy nox pre-commit pylint pyright pytest ruff sphinx "
    "tox twine wheel"
)
DEVELOPMENT_EXTRAS = frozenset(_DEVELOPMENT.split())
DEVELOPMENT_TOOLS = frozenset(_TOOLS.split())
EVERYTHING = "*"
UNKNOWN = "unknown"
_TOP_LEVEL = re.compile(r"^([^/.,\n]+)(?:/|\.py,|\.(?:[^/,\n]*\.)?(?:so|pyd),)", re.MULTILINE)
_FIELD = re.compile(r"^(Name|Version|Requires-Dist): *(.*?)\s*$", re.MULTILINE)
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


def package_facts(names: list[str]) -> dict[str, object]:
    """Facts about top-level module names, as plain data.

    `providers`: for each name the distributions that install it, none for a name that nobody knows; `*` asks for all.
    `versions`: of those and of everything they depend on that is installed, whatever markers and extras say, but for
    extras that only a package's own developers need. `requires`: their direct dependencies. A distribution that was
    installed from a folder or a repository has in its version also what exactly was installed.
    """
    wanted = [name for name in names if name not in sys.stdlib_module_names]
    installed: dict[str, _Installed] = {}
    for distribution in distributions():
        found = _Installed(distribution)
        if found.name:
            installed.setdefault(found.name, found)
    providers: dict[str, list[str]] = {name: [] for name in wanted}
    if EVERYTHING in providers:
        providers[EVERYTHING] = sorted(installed)
    for each in installed.values():
        for name in each.top_levels().intersection(providers):
            providers[name].append(each.name)
    unknown = {name for name, found in providers.items() if not found}
    for each in installed.values() if unknown else ():
        for name in each.recorded().intersection(unknown):
            providers[name].append(each.name)
    versions: dict[str, str] = {}
    requires: dict[str, list[str]] = {}
    pending = [name for found in providers.values() for name in found]
    while pending:
        name = pending.pop()
        if name not in versions:
            versions[name] = installed[name].version()
            requires[name] = sorted(each for each in installed[name].requires() if each in installed)
            pending += requires[name]
    return {
        "providers": {name: sorted(found) for name, found in providers.items()},
        "versions": versions,
        "requires": requires,
    }


class _Installed:
    """A distribution, read as far as it is asked."""

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution
        self._recorded: set[str] | None = None
        text = self._read("METADATA") or self._read("PKG-INFO") or self._read("")
        header = re.split(r"\n\s*\n", text.replace("\r\n", "\n"), maxsplit=1)[0]
        self._fields = _FIELD.findall(header)
        self.name = _normalised(next((value for field, value in self._fields if field == "Name"), ""))

    def _read(self, file: str) -> str:
        try:
            return self._distribution.read_text(file) or ""
        except (OSError, UnicodeError):
            return ""

    def version(self) -> str:
        version = next((value for field, value in self._fields if field == "Version"), UNKNOWN)
        origin = self._read("direct_url.json")
        if not origin:
            return version
        import hashlib

        exactly = hashlib.sha256((origin_of(origin) + self._read("RECORD")).encode("utf-8", "replace"))
        return f"{version}+{exactly.hexdigest()[:12]}"

    def top_levels(self) -> set[str]:
        """The top-level modules that it says it installs, or else does."""
        return set(self._read("top_level.txt").split()) or self.recorded()

    def recorded(self) -> set[str]:
        """The top-level modules among its files."""
        if self._recorded is None:
            self._recorded = set(
                _TOP_LEVEL.findall(self._read("RECORD") or self._read("installed-files.txt"))
            )
        return self._recorded

    def requires(self) -> set[str]:
        found = set()
        lines = [value for field, value in self._fields if field == "Requires-Dist"]
        for line in lines or _sections(self._read("requires.txt")):
            name = _REQUIREMENT.match(line)
            if name and not _is_for_developers(name.group(1), _EXTRA.findall(line)):
                found.add(_normalised(name.group(1)))
        return found


def _is_for_developers(name: str, extras: list[str]) -> bool:
    if not extras:
        return False
    tool = re.split("[-_.]", name.lower())[0] in DEVELOPMENT_TOOLS or name.lower() in DEVELOPMENT_TOOLS
    return tool or all(DEVELOPMENT_EXTRAS.intersection(re.split("[-_.]", extra.lower())) for extra in extras)


def origin_of(text: str) -> str:
    """What tells one installation from a repository from another: not the folder it came from, which differs between
    machines."""
    try:
        origin = json.loads(text)
    except ValueError:
        return text
    return json.dumps([origin.get("vcs_info"), origin.get("archive_info")], sort_keys=True)


def _sections(text: str) -> list[str]:
    """The lines of an old `requires.txt`, with the extra of their section as a marker."""
    found, extra = [], ""
    for line in text.splitlines():
        if line.startswith("["):
            name = line.strip("[]").partition(":")[0]
            extra = f'; extra == "{name}"' if name else ""
        elif line.strip():
            found.append(line + extra)
    return found


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    print(json.dumps(package_facts(sys.argv[1:])))
