"""Keeping a pull request's code from what is the bot's: its token, the runner's files, the store, the report.

Where we are root, as in the action's container, the code runs as the owner of the workspace, so that what it writes
there is as if a step of the workflow had written it. The runner's own folders belong to that user too, on a hosted
runner, so they are shut while the code runs: given to root, and given back afterwards. Whatever the code could put in
the way of our own reading and writing in the workspace (a link, say), we meet with that user's rights only.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from oloproof.errors import UnfinishedError
from oloproof.worker.account import Account
from oloproof_ci.credentials import credentials_aside
from oloproof_ci.leftovers import no_leftovers

#: Who the code runs as when the workspace is root's.
NOBODY_ELSE = 64_123
NO_GROUP = 65_534
#: Variables that name a file by which the runner takes orders or tells what happened.
RUNNER_FILES = (
    "GITHUB_OUTPUT",
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_EVENT_PATH",
)
#: The runner's folder for temporary files. What earlier steps left running may be at work in folders of its own within
#: it, so it stays passable: nobody but root lists, adds or renames anything in it.
RUNNER_TEMP = "RUNNER_TEMP"
CLOSED, PASSABLE = 0o700, 0o711
#: Variables that hold a secret of the bot's: no variable of another name may pass it on.
TOKENS = ("GITHUB_TOKEN", "INPUT_GITHUB-TOKEN", "ACTIONS_RUNTIME_TOKEN")
WITHHELD = frozenset({"GITHUB_TOKEN", "GH_TOKEN", *RUNNER_FILES, RUNNER_TEMP, "HOME"})
WITHHELD_FAMILIES = ("ACTIONS_", "INPUT_", "GIT_CONFIG_")
#: A container action is handed the Docker daemon of its host. Whoever may speak to that is root there.
DAEMON = Path("/var/run/docker.sock")


@dataclass(frozen=True)
class Isolation:
    """What the pull request's code runs as, and the folder that only it and we know.

    `account` is None where we are not root: then the code runs as we do, and only its environment is kept clean.
    """

    folder: Path
    account: Account | None
    #: The workspace's owner, where that is not us: as whom we read and write in it while its code may be at work.
    owner: Account | None

    @property
    def store(self) -> Path:
        """Where the store is kept: nobody else may enter."""
        return self.folder / "store"

    @property
    def environments(self) -> Path:
        """Where the code's own packages are installed."""
        return self.folder / "environments"

    def environment(self, job: Mapping[str, str]) -> dict[str, str]:
        """What the code sees of the job's environment, with a home and a folder for temporary files of its own."""
        tokens = {job[name] for name in TOKENS if job.get(name)}
        kept = {
            n: value
            for n, value in job.items()
            if not withheld(n) and not any(token in value for token in tokens)
        }
        home, temporary = str(self.folder / "home"), str(self.folder / "temporary")
        own = {"HOME": home, "TMPDIR": temporary, "USER": "oloproof", "LOGNAME": "oloproof"}
        return {**kept, **own}


def withheld(name: str) -> bool:
    """Whether a variable of the job is kept from the pull request's code."""
    return name in WITHHELD or name.startswith(WITHHELD_FAMILIES)


@contextmanager
def isolated(workspace: Path, environment: Mapping[str, str]) -> Iterator[Isolation]:
    """Shut the runner's folders and make the code a place of its own, for as long as the block lasts."""
    account = account_for(workspace)
    folder = Path(tempfile.mkdtemp(prefix="oloproof-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for name in ("store", "home", "temporary", "environments"):
            (folder / name).mkdir(mode=0o700)
            if account is not None and name != "store":
                os.chown(folder / name, account.uid, account.gid)
        if account is not None:
            folder.chmod(0o711)
            needed = (workspace.resolve(), folder.resolve())
            for runners, mode in runner_folders(environment).items():
                if not any(place.is_relative_to(runners) for place in needed):
                    stack.enter_context(_shut(runners, mode))
        owner = owner_of(workspace)
        stack.enter_context(credentials_aside(workspace, owner, folder / "store"))
        stack.enter_context(no_leftovers())
        yield Isolation(folder, account, owner)


def account_for(workspace: Path, daemon: Path = DAEMON) -> Account | None:
    """The user that code in this workspace is to run as; None where we cannot become somebody else. `daemon` is the
    socket of the host's Docker daemon."""
    if os.geteuid() != 0:
        return None
    uid = workspace.stat().st_uid or NOBODY_ELSE
    # Not the workspace's group: on a hosted runner that may be the one that commands the Docker daemon.
    group = NO_GROUP if uid in _groups_of(daemon) else uid
    return Account(uid, group)


def owner_of(workspace: Path) -> Account | None:
    """The workspace's owner; None when that is us, or when we cannot become somebody else."""
    account = account_for(workspace)
    return None if account is None or account.uid == NOBODY_ELSE else account


def _groups_of(path: Path) -> set[int]:
    try:
        return {path.stat().st_gid}
    except OSError:
        return set()


def runner_folders(environment: Mapping[str, str]) -> dict[Path, int]:
    """The folders that hold what is the runner's, those that exist, and how each is to be shut."""
    named = {environment.get(RUNNER_TEMP, ""): PASSABLE, environment.get("HOME", ""): CLOSED}
    named |= {os.path.dirname(environment.get(name, "")): CLOSED for name in RUNNER_FILES}
    found = {Path(n).resolve(): mode for n, mode in named.items() if os.path.isabs(n) and os.path.isdir(n)}
    return {folder: found[folder] for folder in sorted(found) if folder != Path("/")}


@contextmanager
def _shut(folder: Path, mode: int) -> Iterator[None]:
    """Nobody but root may enter a folder, or change it, until it is given back to its owner as it was. Raises
    UnfinishedError when that cannot be had: the code is not run beside an open one."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        before = os.fstat(fd)
        try:
            os.fchmod(fd, mode)
            os.fchown(fd, 0, 0)
        except OSError as error:
            _give_back(fd, before)
            raise UnfinishedError(
                f"{folder}: cannot be kept from the pull request's code ({error.strerror}); the action's container "
                "needs root that may change owners, so neither a read-only mount nor a user namespace"
            ) from None
        try:
            yield
        finally:
            _give_back(fd, before)
    finally:
        os.close(fd)


def _give_back(fd: int, before: os.stat_result) -> None:
    with suppress(OSError):  # nothing may keep the others from being given back
        os.fchown(fd, before.st_uid, before.st_gid)
        os.fchmod(fd, stat.S_IMODE(before.st_mode))
