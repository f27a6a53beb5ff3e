"""The packages of the system under test, installed by uv into a virtual environment that only its workers use.

What is installed, and what its build scripts do, is the pull request's: uv runs as the code does, in the environment
that the code sees.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from oloproof.errors import ConfigurationError
from oloproof.worker.account import Account

#: How much of what an installer said is shown, in lines.
SHOWN = 20
#: Lines of a requirement file that lead to another one.
_INCLUDING = ("-r", "--requirement", "-c", "--constraint")


@dataclass(frozen=True)
class Wanted:
    """The inputs `requirements` (paths from the top of the repository), `install` (a command) and `python-version`."""

    requirements: tuple[str, ...] = ()
    install: str = ""
    python: str = ""

    @property
    def anything(self) -> bool:
        return bool(self.requirements or self.install or self.python)


class Environments:
    """Makes each checkout its virtual environment; checkouts that ask for the same packages share one."""

    def __init__(
        self, folder: Path, wanted: Wanted, environment: Mapping[str, str], account: Account | None
    ) -> None:
        self._folder = folder
        self._wanted = wanted
        self._environment = {**environment, "UV_CACHE_DIR": str(folder / "cache"), "UV_NO_PROGRESS": "1"}
        self._seen = self._environment
        self._account = account
        self._made: dict[str, Path] = {}

    def interpreter(self, tree: Path, withheld: Container[str] = ()) -> str:
        """The Python of a checkout, given by its top folder. What is installed there sees no variable that is
        `withheld`. Raises ConfigurationError with what uv said."""
        if not self._wanted.anything:
            # Our own dependencies are not the system's: it gets the interpreter beneath our virtual environment.
            return os.path.realpath(sys.executable)
        key = self._key(tree)
        self._seen = {name: value for name, value in self._environment.items() if name not in withheld}
        if key not in self._made:
            self._made[key] = self._make(tree, self._folder / f"environment-{len(self._made) + 1}")
        return str(self._made[key] / "bin" / "python")

    def variables(self, interpreter: str) -> dict[str, str]:
        """What a program must find in its environment to see the installed packages' commands."""
        home = Path(interpreter).parent.parent
        if home not in self._made.values():
            return {}
        path = self._environment.get("PATH", os.defpath)
        return {"VIRTUAL_ENV": str(home), "PATH": f"{home / 'bin'}{os.pathsep}{path}"}

    def _key(self, tree: Path) -> str:
        """The same for checkouts that ask for the same packages."""
        if self._wanted.install:
            return str(tree)
        content = hashlib.sha256()
        for name in self._wanted.requirements:
            for path, text in _requirement_files(tree, tree / name, set()):
                content.update(f"{path.relative_to(tree)}\0{len(text)}\0{text}".encode())
                if any(_is_local(line) for line in text.splitlines()):
                    return str(tree)
        return content.hexdigest()

    def _make(self, tree: Path, place: Path) -> Path:
        wanted = self._wanted
        python, uv = wanted.python or os.path.realpath(sys.executable), _uv()
        self._run(
            [uv, "venv", "--quiet", "--no-project", "--python", python, str(place)], tree, "python-version"
        )
        present = [name for name in wanted.requirements if (tree / name).exists()]
        if present:
            listed = [argument for name in present for argument in ("--requirement", name)]
            self._run(
                [uv, "pip", "install", "--quiet", "--python", str(place / "bin" / "python"), *listed],
                tree,
                "requirements",
            )
        if wanted.install:
            self._made[str(tree)] = place
            # The command may well be pip's, which uv leaves out.
            self._run(
                [str(place / "bin" / "python"), "-m", "ensurepip", "--default-pip"], tree, "python-version"
            )
            self._run(
                ["sh", "-c", wanted.install], tree, "install", self.variables(str(place / "bin" / "python"))
            )
        return place

    def check_named(self, tree: Path) -> None:
        """Raise ConfigurationError when a requirement file of the head is not there, or lies outside the checkout."""
        for name in self._wanted.requirements:
            path = tree / name
            if not path.is_file():
                raise ConfigurationError(
                    f"input requirements: {name}: no such file; paths start at the top of the repository"
                )
            if not path.resolve().is_relative_to(tree.resolve()):
                raise ConfigurationError(f"input requirements: {name}: lies outside the repository")

    def _run(
        self, command: Sequence[str], tree: Path, setting: str, variables: Mapping[str, str] | None = None
    ) -> None:
        try:
            done = subprocess.run(
                command,
                cwd=tree,
                env={**self._seen, **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                check=False,
                **({} if self._account is None else self._account.popen_arguments()),
            )
        except OSError as error:
            who = "" if self._account is None else f" by user {self._account.uid}, whose the workspace is"
            raise ConfigurationError(
                f"input {setting}: {command[0]} cannot be run{who} ({error.strerror or error}); install it "
                "where any user may run it"
            ) from None
        if done.returncode:
            said = [line for line in done.stdout.splitlines() if line.strip()][-SHOWN:]
            raise ConfigurationError(
                f"input {setting}: {_shown(command)} ended with exit status {done.returncode}; "
                f"change what the input names, or the input\n" + "\n".join(f"    {line}" for line in said)
            )


def _uv() -> str:
    """The program, which is installed beside our own interpreter or found like any other."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise ConfigurationError("uv is not installed, and it is what installs packages: pip install uv")
    return found


def _shown(command: Sequence[str]) -> str:
    """A command as its reader knows it."""
    program = os.path.basename(command[0])
    return shlex.join([program, *command[1:]] if program == "sh" else [program, *command[1:3]])


def _requirement_files(tree: Path, path: Path, seen: set[Path]) -> list[tuple[Path, str]]:
    """A requirement file and those that it includes, with their texts; what is no file of the checkout is left out."""
    if path in seen or not path.is_file() or not path.resolve().is_relative_to(tree.resolve()):
        return []
    seen.add(path)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found = [(path, text)]
    for line in text.splitlines():
        option, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if option in _INCLUDING and rest:
            found += _requirement_files(tree, Path(os.path.normpath(path.parent / rest.strip())), seen)
    return found


def _is_local(line: str) -> bool:
    """Whether a requirement may be a folder of the checkout, which differs between head and base."""
    text = line.strip()
    return text.startswith((".", "/", "-e", "--editable", "file:")) or " @ file:" in text
