"""Which files are noted when code opens them. A hook cannot be taken away again, so each check is a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from oloproof.worker.reads import PASSED_OVER

PROGRAM = """
import json, os, sqlite3, sys, threading
from pathlib import Path
from oloproof.worker.current import CALL, Call
from oloproof.worker.reads import Reads

root = Path(sys.argv[1])
reads = Reads(sys.argv[1])

def read(path):
    with open(path) as file:
        file.read()

def write(path, mode="w"):
    with open(path, mode) as file:
        file.write("text")

def told():
    found = reads.drain()
    print(json.dumps(found and [[name for name, _ in names] for names in found]))

"""


def noted(root: Path, code: str, cwd: Path | None = None, **environment: str) -> list[list[list[str]] | None]:
    """What `drain` gave each time the code called told()."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + dedent(code), str(root)],
        cwd=cwd or root,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def files(root: Path, code: str, cwd: Path | None = None, **environment: str) -> list[str]:
    """The files that were noted for retrievals."""
    (found,) = noted(root, f"{dedent(code)}\ntold()", cwd, **environment)
    return [] if found is None else found[0]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "data/corpus.jsonl", "module.py"):
        (folder / name).write_text("")
    return folder


# ---------------------------------------------------------------------------------------------- what counts


@pytest.mark.parametrize(
    "code",
    [
        "open('a.txt').close()",
        "open(b'a.txt').close()",
        "open('./data/../a.txt').close()",
        "open(root / 'a.txt', 'rb', 0).close()",
        "open('a.txt', 'r+').close()",
        "open('a.txt', 'a+').close()",
        "Path('a.txt').read_bytes()",
        "os.close(os.open('a.txt', os.O_RDONLY))",
        "os.chdir('data'); read('../a.txt')",
        "sqlite3.connect('a.txt').close()",
        "sqlite3.connect('file:a.txt?mode=ro', uri=True).close()",
        "sqlite3.connect(f'file://{root}/a.txt', uri=True).close()",
        "thread = threading.Thread(target=read, args=['a.txt']); thread.start(); thread.join()",
        "os.symlink(root, root.parent / 'link'); read(root.parent / 'link' / 'a.txt')",
    ],
)
def test_a_file_is_noted_however_it_is_opened_for_reading(root: Path, code: str) -> None:
    assert files(root, code) == ["a.txt"]


def test_paths_are_relative_to_the_root_and_sorted(root: Path) -> None:
    code = "read(root / 'data' / 'corpus.jsonl'); read('b.txt'); read('a.txt'); read('b.txt')"
    assert files(root, code) == ["a.txt", "b.txt", "data/corpus.jsonl"]


def test_the_root_may_be_given_through_a_link(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert files(link, "read('a.txt'); read(root / 'b.txt')") == ["a.txt", "b.txt"]


def test_a_link_inside_the_project_counts_under_its_own_name(root: Path) -> None:
    (root.parent / "outside.txt").write_text("")
    (root / "link.txt").symlink_to(root.parent / "outside.txt")
    assert files(root, "read('link.txt')") == ["link.txt"]


def test_each_file_is_told_once(root: Path) -> None:
    code = "read('a.txt'); told(); read('a.txt'); told(); read('b.txt'); read('a.txt'); told(); told()"
    assert noted(root, code) == [[["a.txt"], []], None, [["b.txt"], []], None]


def test_a_file_that_was_to_be_read_and_is_not_there_counts(root: Path) -> None:
    code = """
        try:
            read("synonyms.txt")
        except FileNotFoundError:
            pass
    """
    assert files(root, code) == ["synonyms.txt"]


def test_source_text_that_is_data_counts_and_what_is_imported_or_shown_does_not(root: Path) -> None:
    (root / "more.py").write_text("")
    code = """
        import linecache, traceback
        sys.path.insert(0, str(root))
        sys.dont_write_bytecode = True
        import module
        linecache.getlines(str(root / "more.py"))
        told()
        read("module.py")
        read("more.py")
        told()
    """
    assert noted(root, code) == [None, [["module.py", "more.py"], []]]


# ------------------------------------------------------------------------------------------ what does not


@pytest.mark.parametrize(
    "code",
    [
        "write('a.txt')",
        "write('a.txt', 'a')",
        "write('new.txt'); read('new.txt')",
        "write('a.txt', 'w+'); read('a.txt')",
        "write('new.txt', 'x'); read('new.txt')",
        "write('new.tmp'); os.replace('new.tmp', 'new.txt'); read('new.txt')",
        "sqlite3.connect('new.db').close(); sqlite3.connect('new.db').close()",
        "os.close(os.open('data', os.O_RDONLY))",
        "os.mkfifo('pipe'); os.close(os.open('pipe', os.O_RDONLY | os.O_NONBLOCK))",
        "os.fdopen(os.dup(1)).close()",
        "read('/etc/passwd')",
        "read(root.parent / 'project_of_others.txt')",
        "read('/dev/null')",
        "sqlite3.connect(':memory:').close()",
        "sqlite3.connect('').close()",
    ],
)
def test_what_is_written_made_here_elsewhere_or_no_file_is_not_noted(root: Path, code: str) -> None:
    (root.parent / "project_of_others.txt").write_text("")
    assert files(root, code) == []


def test_what_is_appended_to_still_counts_when_it_is_read(root: Path) -> None:
    assert files(root, "write('a.txt', 'a'); read('a.txt')") == ["a.txt"]


def test_what_was_read_counts_though_it_is_written_afterwards(root: Path) -> None:
    assert files(root, "read('a.txt'); write('a.txt')") == ["a.txt"]


@pytest.mark.parametrize("folder", sorted(PASSED_OVER))
def test_folders_of_tools_and_caches_do_not_count(root: Path, folder: str) -> None:
    (root / "data" / folder / "deep").mkdir(parents=True)
    (root / "data" / folder / "deep" / "a.txt").write_text("")
    assert files(root, f"read('data/{folder}/deep/a.txt')") == []


def test_a_virtual_environment_under_any_name_does_not_count(root: Path) -> None:
    (root / "tools" / "lib").mkdir(parents=True)
    (root / "tools" / "pyvenv.cfg").write_text("")
    (root / "tools" / "lib" / "a.txt").write_text("")
    assert files(root, "read('tools/lib/a.txt')") == []


def test_temporary_folders_count_only_where_the_project_itself_lies_in_one(root: Path) -> None:
    (root / "temporary").mkdir()
    (root / "temporary" / "a.txt").write_text("")
    assert files(root, "read('temporary/a.txt')") == ["temporary/a.txt"]
    assert files(root, "read('temporary/a.txt')", TMPDIR=str(root / "temporary")) == []
    assert files(root, "read('a.txt')", TMPDIR=str(root)) == ["a.txt"]
    assert files(root, "read('a.txt')", TMPDIR=str(root.parent)) == ["a.txt"]


def test_a_name_that_is_no_text_is_left_out(root: Path) -> None:
    (root / os.fsdecode(b"\xff.txt")).write_text("")
    assert files(root, "read(b'\\xff.txt'); read('a.txt')") == ["a.txt"]


# ------------------------------------------------------------------------------------------------ stages


def test_what_only_later_stages_open_is_told_apart(root: Path) -> None:
    code = """
        CALL.set(Call("generate"))
        read("a.txt"); told()
        CALL.set(Call("retrieve"))
        read("b.txt"); told()
        read("a.txt"); told()
        CALL.set(Call("count_tokens"))
        read("a.txt"); read("b.txt"); told()
    """
    assert noted(root, code) == [[[], ["a.txt"]], [["b.txt"], []], [["a.txt"], []], None]


def test_what_we_read_ourselves_does_not_count(root: Path) -> None:
    code = "CALL.set(Call('packages')); read('a.txt'); told(); CALL.set(None); read('a.txt'); told()"
    assert noted(root, code) == [None, [["a.txt"], []]]


def test_a_thread_whose_call_is_not_known_reads_for_retrievals(root: Path) -> None:
    code = """
        CALL.set(Call("generate"))
        thread = threading.Thread(target=read, args=["a.txt"])
        thread.start(); thread.join()
    """
    assert files(root, code) == ["a.txt"]


# --------------------------------------------------------------------------------------------- robustness


def test_the_hook_breaks_nothing_that_worked(root: Path) -> None:
    code = """
        os.chdir("data")
        os.rename(root / "data", root / "moved")
        os.mkdir(root / "gone"); os.chdir(root / "gone"); os.rmdir(root / "gone")
        for path in ("a.txt", "", "x" * 5000, "\\0", "\\ud800"):
            try:
                open(path)
            except (OSError, ValueError):
                continue
        read(root / "a.txt")
    """
    assert files(root, code) == ["a.txt"]


def test_no_file_is_lost_between_threads(root: Path) -> None:
    for n in range(400):
        (root / "data" / f"{n}.txt").write_text("")
    code = """
        sys.setswitchinterval(1e-6)
        found = []
        threads = [
            threading.Thread(target=lambda at=at: [read(f"data/{n}.txt") for n in range(at, 400, 4)])
            for at in range(4)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            found += [name for name, _ in (reads.drain() or [[]])[0]]
        found += [name for name, _ in (reads.drain() or [[]])[0]]
        assert sorted(found) == sorted(f"data/{n}.txt" for n in range(400)), len(found)
    """
    noted(root, code)


@pytest.mark.parametrize(
    ("code", "noted"),
    [
        ("os.listdir('data')", ["data/"]),
        ("list(os.scandir('data'))", ["data/"]),
        ("os.listdir()", ["./"]),
        ("list(root.glob('data/*.txt'))", ["data/"]),
        ("os.listdir('/etc')", []),
        ("os.makedirs('.cache/x', exist_ok=True); os.listdir('.cache')", []),
        (
            "import importlib.util; importlib.invalidate_caches(); importlib.util.find_spec('nothing_of_that_name')",
            [],
        ),
    ],
)
def test_a_folder_that_is_listed_is_noted_with_a_slash(root: Path, code: str, noted: list[str]) -> None:
    assert [name for name in files(root, code) if name.endswith("/")] == noted


# ------------------------------------------------------------------------------ what the hook must go after

#: Maps a file into memory and closes it, all in C.
MAPPED = """
import ctypes
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
fd = c.open(b'long.txt', 0)
c.mmap(None, ctypes.c_size_t(99), 1, 2, fd, ctypes.c_long(0))
c.close(fd)
reads.note_held(0)
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # opened in another way
        (
            "fd = os.open('data', os.O_RDONLY); os.close(os.open('corpus.jsonl', os.O_RDONLY, dir_fd=fd))",
            "corpus",
        ),
        ("fd = os.open('data', os.O_RDONLY); os.listdir(fd)", "data/"),
        ("list(os.fwalk('data'))", "data/"),
        ("import ctypes; Path('own.so').touch(); ctypes.CDLL('./own.so')", "own.so"),
        # source text as data
        ("import pkgutil; pkgutil.get_data('package', 'prompts.py')", "package/prompts.py"),
        (
            "from importlib import resources; resources.files('package').joinpath('prompts.py').read_text()",
            "prompts",
        ),
        (
            "from importlib import resources; resources.open_binary('package', 'prompts.py').close()",
            "prompts",
        ),
        ("import inspect, package.prompts; inspect.getsource(package.prompts)", "package/prompts.py"),
        ("import runpy; runpy.run_path('module.py')", "module.py"),
        # other processes
        ("os.fork() or (read('a.txt'), os._exit(0)); os.wait()", "a.txt"),
        (
            "import multiprocessing as m\nwith m.get_context('fork').Pool(2) as p: p.map(read, ['a.txt'])",
            "a.txt",
        ),
        ("import subprocess; subprocess.run(['cat', 'a.txt'])", "a.txt"),
        ("import subprocess; subprocess.run('cat a.txt | wc', shell=True)", "a.txt"),
        ("import subprocess; subprocess.run([sys.executable, 'module.py'])", "module.py"),
        ("import subprocess; subprocess.run(['cat', 'corpus.jsonl'], cwd='data')", "data/corpus.jsonl"),
        ("import subprocess; subprocess.run(['true', '--config=data/corpus.jsonl'])", "data/corpus.jsonl"),
        ("os.system('cat a.txt >/dev/null')", "a.txt"),
        ("os.waitpid(os.posix_spawn('/bin/cat', ['cat', 'a.txt'], {}), 0)", "a.txt"),
        ("os.spawnvp(os.P_WAIT, 'cat', ['cat', 'a.txt'])", "a.txt"),
        # whether a file is there
        ("os.path.exists('a.txt')", "a.txt"),
        ("import glob; glob.glob('synonyms.txt')", "synonyms.txt//exists"),
        ("Path('synonyms.txt').is_file()", "synonyms.txt//exists"),
        ("os.access('synonyms.txt', os.R_OK)", "synonyms.txt//exists"),
        ("os.stat(root / 'a.txt')", "a.txt"),
        # by a library that is no Python
        ("import ctypes; ctypes.CDLL(None).open(b'a.txt', 0); reads.note_held(0)", "a.txt"),
        (MAPPED, "long.txt"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_read_in_a_roundabout_way_is_noted(root: Path, code: str, expected: str) -> None:
    (root / "package").mkdir()
    (root / "long.txt").write_text("x" * 99)
    for name in ("__init__", "prompts"):
        (root / "package" / f"{name}.py").write_text("PROMPT = 'say'\n")
    quiet = "sys.dont_write_bytecode = True; sys.path.insert(0, str(root)); null = os.dup(1); os.dup2(2, 1)"
    try_it = f"try:\n    {code.replace(chr(10), chr(10) + '    ')}\nexcept OSError: pass"
    (found,) = noted(root, f"{quiet}\n{try_it}\nos.dup2(null, 1)\ntold()")
    assert found is not None
    assert [name for name in found[0] if expected in name], found


@pytest.mark.parametrize(
    "code",
    [
        "import platform; platform.processor()",
        "Path('new.txt').exists(); write('new.txt'); Path('new.txt').exists()",
        "os.path.exists('data'); os.makedirs('out/x', exist_ok=True); os.path.isdir('out')",
        "os.path.exists('log.txt'); write('log.txt', 'a')",
        "os.fork() or (write('new.txt'), os._exit(0)); os.wait(); read('new.txt')",
        "os.path.exists('/etc/passwd')",
        "import shutil; write('new.txt'); shutil.copy('new.txt', 'copy.txt'); read('copy.txt')",
    ],
)
def test_looking_at_what_is_made_here_or_elsewhere_is_not_noted(root: Path, code: str) -> None:
    assert files(root, code) == []


def test_other_programs_are_named(root: Path) -> None:
    code = """
        import subprocess
        subprocess.run(["true"])
        os.system("cat a.txt")
    """
    assert [name for name in files(root, code) if name.endswith("//program")] == [
        "cat//program",
        "true//program",
    ]


def test_a_folder_that_is_a_link_counts_as_what_it_leads_to_and_as_a_link(root: Path) -> None:
    (root / "v1").mkdir()
    (root / "v1" / "c.txt").write_text("")
    (root / "current").symlink_to("v1")
    (root.parent / "elsewhere").mkdir()
    (root.parent / "elsewhere" / "c.txt").write_text("")
    (root / "outside").symlink_to(root.parent / "elsewhere")
    assert files(root, "read('current/c.txt')") == ["current//link", "v1/c.txt"]
    assert files(root, "os.listdir('current')") == ["current//link", "v1/"]
    assert files(root, "read('outside/c.txt')") == ["outside/c.txt"]


def test_a_file_that_changed_is_told_again(root: Path) -> None:
    code = "read('a.txt'); told(); read('a.txt'); told(); write('a.txt', 'a'); read('a.txt'); told()"
    assert noted(root, code) == [[["a.txt"], []], None, [["a.txt"], []]]
