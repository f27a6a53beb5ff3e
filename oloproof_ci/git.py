"""The user's git repository: what stands in its commits, and which of them is the base."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oloproof.checkouts import git_settings
from oloproof.errors import ConfigurationError
from oloproof.worker.account import Account


@dataclass(frozen=True)
class Base:
    """The commit that the head is held against. `ref` is what a person calls it."""

    sha: str
    ref: str


@dataclass(frozen=True)
class GitAccess:
    """As whom git runs, and in which environment.

    A repository's own configuration and attributes can make git start programs. Where a pull request's code can write
    to them, git has to run as that code does, and without our secrets. `tenant` is the user that the code runs as,
    to whom a worktree is given. `settings` are pairs of git's own, passed by environment.
    """

    environment: Mapping[str, str]
    account: Account | None = None
    tenant: Account | None = None
    settings: tuple[tuple[str, str], ...] = ()

    def popen_arguments(self) -> dict[str, Any]:
        """What makes `subprocess` start git so."""
        environment = without_local_variables(self.environment) | git_settings(self.settings)
        return {"env": environment, **({} if self.account is None else self.account.popen_arguments())}


class Repository:
    """A git checkout. Raises ConfigurationError where git does not give what is asked."""

    def __init__(self, folder: Path, access: GitAccess | None = None) -> None:
        self.access = access or GitAccess(os.environ)
        if shutil.which("git") is None:
            raise ConfigurationError("git is not installed; preview needs it to find and check out the base")
        self.root = Path(self._toplevel(folder))

    def _toplevel(self, folder: Path) -> str:
        done = self._git(folder, "rev-parse", "--show-toplevel")
        if done.returncode:
            hint = last_line(done.stderr)
            if "dubious ownership" in done.stderr:
                raise ConfigurationError(f"{folder}: git refuses this folder: {hint}")
            raise ConfigurationError(
                f"{folder}: not inside a git repository; run preview in a checkout of the project"
            )
        return done.stdout.rstrip("\n")

    def inside(self, folder: Path) -> Path:
        """A folder's path from the root of the repository."""
        try:
            return Path(os.path.realpath(folder)).relative_to(os.path.realpath(self.root))
        except ValueError:
            raise ConfigurationError(f"{folder}: lies outside the repository {self.root}") from None

    def head(self) -> str:
        """The commit that is checked out."""
        done = self.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if done.returncode:
            raise ConfigurationError(f"{self.root}: the repository has no commit yet, so there is no base")
        return done.stdout.strip()

    def parents(self, sha: str) -> list[str]:
        """A commit's parents, as it names them: in a shallow clone they may not be here themselves."""
        commit = self._output("cat-file", "commit", sha)
        header = commit.partition("\n\n")[0].splitlines()
        return [line.split()[1] for line in header if line.startswith("parent ")]

    def has(self, name: str) -> bool:
        """Whether a commit is here."""
        return self._commit(name) is not None

    def commit(self, name: str) -> str:
        """The id of the commit that a name which is here stands for."""
        return self._output("rev-parse", "--verify", f"{name}^{{commit}}").strip()

    def is_dirty(self) -> bool:
        """Whether the work tree holds anything that the head commit does not, untracked files included."""
        lines = self._output("status", "--porcelain", "--untracked-files=all").splitlines()
        return any(not (line.startswith("??") and "__pycache__/" in line) for line in lines)

    def files(self, name: str) -> list[str]:
        """The files of that name, tracked or not ignored, as paths relative to the root."""
        listed = self._output(
            "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", f":(glob)**/{name}"
        )
        return sorted({path for path in listed.split("\0") if path})

    def file_at(self, sha: str, path: Path) -> bytes | None:
        """The content that a file, or what a link at its place leads to, has in a commit; None when there is none.
        `path` starts at the root."""
        name = path.as_posix()
        if "\n" in name:
            return None
        found = subprocess.run(
            ["git", "-C", str(self.root), "cat-file", "--batch", "--follow-symlinks"],
            input=os.fsencode(f"{sha}:{name}\n"),
            capture_output=True,
            check=False,
            **self.access.popen_arguments(),
        ).stdout
        header, _, content = found.partition(b"\n")
        kind = header.split(b" ")
        return content.removesuffix(b"\n") if len(kind) == 3 and kind[1] == b"blob" else None

    def files_at(self, sha: str, name: str) -> list[Path]:
        """The files of that name in a commit, as paths from the root."""
        listed = self._output("ls-tree", "-r", "-z", "--name-only", "--full-tree", sha).split("\0")
        return [Path(path) for path in listed if path.rpartition("/")[2] == name]

    def submodules_at(self, sha: str) -> list[tuple[Path, str]]:
        """The submodules of a commit, each by its path from the root and the commit that it is at."""
        found = []
        for entry in self._output("ls-tree", "-r", "-z", "--full-tree", sha).split("\0"):
            about, _, path = entry.partition("\t")
            if about.startswith("160000 "):
                found.append((Path(path), about.split()[2]))
        return found

    def place_at(self, sha: str, file: Path) -> Path:
        """Where a file of the work tree stands in a commit: at the same place, or else where the only file of its name
        stands that is gone from the work tree, since then it was moved. Paths start at the root."""
        if self.file_at(sha, file) is not None:
            return file
        gone = [path for path in self.files_at(sha, file.name) if not (self.root / path).exists()]
        return gone[0] if len(gone) == 1 else file

    def base(self, wanted: str | None, setting: str = "--base") -> Base:
        """The merge base of HEAD with `wanted`, or with the default branch when None. `setting` is what names it."""
        head = self.head()
        if wanted is not None:
            if self._commit(wanted) is None:
                raise ConfigurationError(
                    f"{setting}: {wanted!r} is no commit of {self.root}; name a branch, a tag or a commit "
                    "(in a shallow clone fetch it first: git fetch --deepen=100)"
                )
            return Base(self.merge_base(head, wanted), wanted)
        name = self._default_branch()
        sha = self.merge_base(head, name)
        if sha == head and not self.is_dirty():
            raise ConfigurationError(
                f"{self.root}: nothing to compare: HEAD is the base ({name}, {head[:7]}) and the work tree has no "
                "changes; commit the change on a branch, or name another base with --base REF"
            )
        return Base(sha, name.removeprefix("origin/"))

    def related(self, one: str, other: str) -> bool:
        """Whether the history that is here holds a commit that both come from."""
        return self.git("merge-base", one, other).returncode == 0

    def merge_base(self, head: str, other: str) -> str:
        """The newest commit that both have in their history."""
        done = self.git("merge-base", head, other)
        if done.returncode:
            advice = (
                "this is a shallow clone: fetch more history (git fetch --unshallow)"
                if self.is_shallow()
                else "name another base with --base REF"
            )
            raise ConfigurationError(f"{self.root}: HEAD and {other!r} have no common commit; {advice}")
        return done.stdout.split()[0]

    def _default_branch(self) -> str:
        done = self.git("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
        candidates = [done.stdout.strip()] if not done.returncode else []
        candidates += ["origin/main", "origin/master"]
        configured = self.git("config", "--get", "init.defaultBranch").stdout.strip()
        candidates += [*([configured] if configured else []), "main", "master"]
        for name in candidates:
            if self._commit(name) is not None:
                return name
        raise ConfigurationError(
            f"{self.root}: no default branch found (looked for {', '.join(dict.fromkeys(candidates))}); "
            "name the base with --base REF"
        )

    def _commit(self, name: str) -> str | None:
        if name.startswith("-"):
            return None
        done = self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return None if done.returncode else done.stdout.strip()

    def _output(self, *arguments: str) -> str:
        done = self.git(*arguments)
        if done.returncode:
            raise ConfigurationError(f"{self.root}: git {arguments[0]} failed: {last_line(done.stderr)}")
        return done.stdout

    def is_shallow(self) -> bool:
        """Whether history was left out of the clone."""
        return self._output("rev-parse", "--is-shallow-repository").strip() == "true"

    def fetch(self, arguments: Sequence[str], settings: Sequence[tuple[str, str]]) -> str:
        """Fetch from origin; gives the end of what git said when it failed. `settings` go by environment: they may
        hold a secret."""
        access = replace(self.access, settings=(*self.access.settings, *settings))
        done = Repository._run(access, self.root, "fetch", "--quiet", "--no-tags", *arguments)
        return "" if done.returncode == 0 else last_line(done.stderr)

    def git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run git in the repository, whatever it ends with."""
        return self._git(self.root, *arguments)

    def _git(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run(self.access, folder, *arguments)

    @staticmethod
    def _run(access: GitAccess, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                ["git", "-C", str(folder), *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="surrogateescape",
                check=False,
                **access.popen_arguments(),
            )
        except OSError as error:
            raise ConfigurationError(f"{folder}: git could not be run ({error.strerror or error})") from None


#: Variables that tie git to one repository or index, as they are set inside hooks (`git rev-parse --local-env-vars`).
LOCAL_VARIABLES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_CONFIG",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_COUNT",
        "GIT_OBJECT_DIRECTORY",
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_GRAFT_FILE",
        "GIT_INDEX_FILE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_REPLACE_REF_BASE",
        "GIT_PREFIX",
        "GIT_SHALLOW_FILE",
        "GIT_COMMON_DIR",
        "GIT_INTERNAL_SUPER_PREFIX",
    }
)


def without_local_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which git finds its repository by the folder alone.

    A hook sets GIT_INDEX_FILE; a worktree added under it would be written into the user's own index.
    """
    return {name: value for name, value in environment.items() if name not in LOCAL_VARIABLES}


def last_line(text: str) -> str:
    """The end of what git said."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
