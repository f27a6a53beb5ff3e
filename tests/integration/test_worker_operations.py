"""What a worker is asked beside the stages: evaluators, the facts behind a fingerprint, the files that were read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from workers import MakeWorkers, Workers, evaluate, generate, retrieve, workers

from oloproof.worker.process import Reply

CHECKS = """
import asyncio, os, sys
import numpy
from oloproof import Passage

def same(input, expected, output, context):
    assert all(type(passage) is Passage for passage in context) and type(context) is tuple
    return [input, expected, output, *(p.text for p in context)] == ["q", {"a": 1}, {"b": [2]}, "blue", "red"]

async def later(input, expected, output, context):
    await asyncio.sleep(0)
    return numpy.float32(0.25)

def given(input, expected, output, context):
    return eval(input)

def raises(input, expected, output, context):
    print("about to raise")
    raise LookupError("no such rule")

def leaves(input, expected, output, context):
    sys.exit(0)

def crashes(input, expected, output, context):
    os._exit(0)

def few(input):
    return True

def process(input, expected, output, context):
    return os.getpid() / 2**32

class Checks:
    @staticmethod
    def strict(input, expected, output, context):
        return False

NUMBER = 1
"""


def names(reply: Reply) -> tuple[str, ...]:
    """The files that count for a reply."""
    return () if reply.reads is None else reply.reads.names


@pytest.fixture(params=[1, 3], ids=["one call at once", "three at once"])
def make_workers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeWorkers]:
    (tmp_path / "checks.py").write_text(CHECKS)
    with ExitStack() as stack:

        def make(**more: Any) -> Workers:
            return stack.enter_context(workers(tmp_path, threads=request.param, **more))

        yield make


def test_a_worker_that_cannot_be_started_is_told_and_leaves_nothing_open(make_workers: MakeWorkers) -> None:
    found = make_workers()
    found.call({"op": "packages", "names": []})  # what all workers share is open from now on
    nowhere = Workers(found.folder, replace(found.checkout, interpreter="/none/python", session="nowhere"))
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        reply = nowhere.call(retrieve("any"))
        assert reply.kind == "crash"
        assert reply.message.startswith(
            "the worker could not be started: [Errno 2] No such file or directory"
        )
    assert os.listdir("/proc/self/fd") == before


# ------------------------------------------------------------------------------------------- evaluators


def test_an_evaluator_gets_input_expected_output_and_the_context_as_passages(
    make_workers: MakeWorkers,
) -> None:
    context = [["d1", None, 1.0, "blue"], ["d2", "c", None, "red"]]
    request = evaluate("checks:same", expected={"a": 1}, output={"b": [2]}, context=context)
    assert make_workers().call(request).value is True


def test_an_evaluator_needs_no_app(make_workers: MakeWorkers) -> None:
    found = make_workers()
    (found.folder / "app.py").write_text("raise OSError('no index')")
    assert found.call(evaluate("checks:Checks.strict")).value is False
    assert found.call(evaluate("checks:later")).value == 0.25


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("True", True),
        ("None", None),
        ("0.5", 0.5),
        ("1", 1.0),
        ("0", 0.0),
        ("numpy.bool_(False)", False),
        ("numpy.float64(1)", 1.0),
        ("numpy.int8(1)", 1.0),
        ("numpy.array(0.5)", 0.5),
    ],
)
def test_what_an_evaluator_may_return(make_workers: MakeWorkers, text: str, value: Any) -> None:
    reply = make_workers().call(evaluate("checks:given", input=text))
    assert (reply.kind, reply.value, type(reply.value)) == (None, value, type(value))


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("'yes'", "an object of type str"),
        ("1.5", "float 1.5"),
        ("-1", "int -1"),
        ("float('nan')", "float nan"),
        ("numpy.float32('inf')", "float inf"),
        ("10**400", "int of 1329 bits"),
        ("numpy.zeros(2)", "an object of type ndarray"),
        ("[True]", "an object of type list"),
        ("1j", "an object of type complex"),
        ("bool", "class bool"),
        ("same", "an object of type function"),
    ],
)
def test_what_an_evaluator_may_not_return(make_workers: MakeWorkers, text: str, got: str) -> None:
    reply = make_workers().call(evaluate("checks:given", input=text))
    assert reply.kind == "invalid_return"
    assert reply.message == f"checks:given must return True, False, a number from 0 to 1, or None, got {got}"


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        ("checks:none_such", "invalid_return", "module checks has no none_such"),
        ("checks:NUMBER", "invalid_return", "checks:NUMBER is no function but int 1"),
        ("missing:check", "invalid_return", "there is no module missing in {folder}"),
        ("checks:few", "exception", "TypeError: few() got an unexpected keyword argument 'expected'"),
        ("checks:raises", "exception", "LookupError: no such rule"),
        ("checks:leaves", "exit", "the code called sys.exit(0)"),
        ("checks:crashes", "crash", "the worker ended with exit status 0"),
    ],
)
def test_an_evaluators_fault_is_told(
    make_workers: MakeWorkers, function: str, kind: str, message: str
) -> None:
    found = make_workers()
    reply = found.call(evaluate(function))
    assert (reply.kind, reply.message) == (kind, message.format(folder=found.folder))
    assert reply.log == ("about to raise\n" if function == "checks:raises" else "")


def test_an_evaluators_faults_cost_the_app_no_worker(make_workers: MakeWorkers) -> None:
    found = make_workers()
    first = found.call(retrieve("a"))
    for function in ("checks:raises", "checks:leaves", "checks:crashes", "checks:raises"):
        found.call(evaluate(function))
    assert found.call(retrieve("b")).value["query"] == first.value["query"]
    assert found.noted == ["a", "b", "construct"]


def test_an_evaluator_that_raises_now_and_then_keeps_its_worker(make_workers: MakeWorkers) -> None:
    found = make_workers()
    before = found.call(evaluate("checks:process")).value
    found.call(evaluate("checks:raises"))
    assert found.call(evaluate("checks:process")).value == before


# --------------------------------------------------------------------------------- facts for the fingerprint


def test_describe_tells_where_the_projects_modules_are_looked_for(make_workers: MakeWorkers) -> None:
    found = make_workers()
    for name in ("src", "more"):
        (found.folder / name).mkdir()
    app = (found.folder / "app.py").read_text()
    (found.folder / "app.py").write_text(f"import sys\nsys.path[1:1] = ['src', 'none', 'src']\n{app}")
    found.checkout.__dict__["environment"] += (("PYTHONPATH", str(found.folder / "more")),)
    reply = found.call({"op": "describe"})
    root = os.path.realpath(found.folder)
    assert reply.value["search"] == [root, f"{root}/src", f"{root}/more"]
    assert reply.value["modules"]["app"] == f"{root}/app.py"


def test_describe_tells_which_names_something_installed_has_too(make_workers: MakeWorkers) -> None:
    """And does not count its own look into the folders as the app's."""
    found = make_workers()
    (found.folder / "src").mkdir()
    for name in ("yaml.py", "src/numpy.py", "statistics.py", "wording.py", "pydantic.txt", "pip.dist-info"):
        (found.folder / name).touch()
    found.checkout.__dict__["environment"] += (("PYTHONPATH", str(found.folder / "src")),)
    reply = found.call({"op": "describe"})
    assert reply.value["installed"] == ["numpy", "yaml"]
    assert not any(name.endswith("./") for group in reply.reads or () for name, _ in group)


def test_packages_are_told_as_the_module_about_them_tells_here(make_workers: MakeWorkers) -> None:
    from oloproof.identity.packages import package_facts

    names = ["numpy", "json", "none_such"]
    assert make_workers().call({"op": "packages", "names": names}).value == package_facts(names)


def test_a_worker_loads_nothing_of_ours_but_its_own_part(make_workers: MakeWorkers) -> None:
    found = make_workers()
    found.call({"op": "packages", "names": ["numpy"]})
    reply = found.call(
        retrieve("a", "print('loaded', *sorted(m for m in sys.modules if m.startswith('oloproof')))")
    )
    (line,) = [line for line in reply.log.splitlines() if line.startswith("loaded")]
    worker = {name for name in line.split()[1:] if name.startswith("oloproof.worker")}
    assert set(line.split()[1:]) == {"oloproof", "oloproof.contract", "oloproof.jsontext"} | worker
    assert not worker & {f"oloproof.worker.{name}" for name in ("process", "calls", "lending", "shared")}


# ---------------------------------------------------------------------------------------------- files read

READER = """
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

HERE = Path(__file__).parent
SETTINGS = (HERE / "settings.txt").read_text()

@rag_system(name="reader", version="1", depth=3, top_k=2, index_version="1")
class Rag:
    def __init__(self):
        self.corpus = (HERE / "data" / "corpus.txt").read_text()

    def retrieve(self, input, depth):
        for name in input:
            (HERE / name).read_text()
        return Retrieval(query=None, depth=depth, candidates=())

    async def generate(self, input, context):
        for name in input:
            (HERE / name).read_text()
        return {}
"""


@pytest.fixture
def reader(make_workers: MakeWorkers, tmp_path: Path) -> Workers:
    (tmp_path / "data").mkdir()
    for name in ("settings.txt", "data/corpus.txt", "a.txt", "b.txt", "prompt.txt", "rules.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "checks.py").write_text(
        "def read(input, expected, output, context):\n    open(input).read()\n    return True\n"
    )
    return make_workers(app=READER)


def test_a_reply_names_the_files_that_were_read_so_far(reader: Workers) -> None:
    start = ("data/corpus.txt", "settings.txt")
    assert names(reader.call({"op": "describe"})) == ("settings.txt",)
    first = reader.call({"op": "retrieve", "input": ["a.txt"], "depth": 3})
    assert names(first) == ("a.txt", *start)
    generated = reader.call({"op": "generate", "input": ["prompt.txt"], "context": []})
    assert names(generated) == ("a.txt", "data/corpus.txt", "prompt.txt", "settings.txt")
    again = reader.call({"op": "retrieve", "input": ["a.txt"], "depth": 3})
    assert again.reads is first.reads
    more = reader.call({"op": "retrieve", "input": ["b.txt", "prompt.txt"], "depth": 3})
    assert names(more) == ("a.txt", "b.txt", "data/corpus.txt", "prompt.txt", "settings.txt")
    assert names(reader.call({"op": "generate", "input": [], "context": []})) == names(more)


def test_what_an_evaluator_reads_is_no_file_of_the_stages(reader: Workers) -> None:
    reader.call({"op": "retrieve", "input": [], "depth": 3})
    judged = reader.call(evaluate("checks:read", input="rules.txt"))
    assert names(judged) == ("rules.txt",)
    assert "rules.txt" not in names(reader.call({"op": "generate", "input": [], "context": []}))


def test_a_retrieval_that_failed_does_not_hide_what_it_read(reader: Workers) -> None:
    """The file stays missing for the worker that comes after it."""
    failed = reader.call({"op": "retrieve", "input": ["a.txt", "none.txt"], "depth": 3})
    assert failed.kind == "exception"
    assert {"a.txt", "none.txt"} <= set(names(failed))
    again = reader.call({"op": "retrieve", "input": ["a.txt"], "depth": 3})
    assert names(again) == ("a.txt", "data/corpus.txt", "settings.txt")


def test_paths_start_at_the_watched_folder(make_workers: MakeWorkers, tmp_path: Path) -> None:
    (tmp_path / "settings.txt").write_text("")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "corpus.txt").write_text("")
    found = make_workers(app=READER, watch=str(tmp_path.parent))
    reply = found.call({"op": "retrieve", "input": [], "depth": 3})
    assert names(reply) == (f"{tmp_path.name}/data/corpus.txt", f"{tmp_path.name}/settings.txt")


def test_reads_of_calls_at_once_are_kept_apart_by_stage(tmp_path: Path) -> None:
    """The prompt is opened while a retrieval is under way, and the retrieval ends after it."""
    for name in ("prompt.txt", "corpus.txt", "thread.txt"):
        (tmp_path / name).write_text(name)
    with workers(tmp_path, threads=2) as found:
        found.call(retrieve("first"))
        reads = "barriers[2].wait(10)\nopen('corpus.txt').close()\nbarriers[2].wait(10)\nbarriers[2].wait(10)"
        later = (
            "await asyncio.to_thread(barriers[2].wait, 10)\nopen('prompt.txt').close()\n"
            "await asyncio.to_thread(barriers[2].wait, 10)\nawait asyncio.to_thread(open, 'prompt.txt')\n"
            "await asyncio.to_thread(barriers[2].wait, 10)"
        )
        retrieved, generated = found.call_all([retrieve("a", reads), generate("b", later)])
        assert "corpus.txt" in names(retrieved)
        assert "prompt.txt" not in names(retrieved)
        assert {"corpus.txt", "prompt.txt"} <= set(names(generated))


def test_a_thread_left_by_the_constructor_reads_for_retrievals(tmp_path: Path) -> None:
    """An index that is loaded in the background is a retrieval's, whatever runs when it is opened."""
    (tmp_path / "index.bin").write_text("")
    (tmp_path / "construct.py").write_text(
        "opened = threading.Event()\n"
        "go = threading.Event()\n"
        "threading.Thread(target=lambda: (go.wait(10), open('index.bin').close(), opened.set())).start()"
    )
    with workers(tmp_path) as found:
        found.call(generate("a", "go.set()\nawait asyncio.to_thread(opened.wait, 10)"))
        assert "index.bin" in names(found.call(retrieve("b")))


def test_a_worker_can_be_started_where_python_is_told_to_be_safe(tmp_path: Path) -> None:
    """PYTHONSAFEPATH keeps the script's folder off the search path; the app's is there all the same."""
    script = (
        "import sys, os\n"
        "from oloproof.worker.calls import perform, release\n"
        "from oloproof.worker.process import Checkout\n"
        "checkout = Checkout(sys.argv[1], 'app:Rag', sys.executable, tuple(os.environ.items()))\n"
        "print(perform(checkout, {'op': 'describe'}, 20).kind)\n"
        "release(checkout)\n"
    )
    (tmp_path / "app.py").write_text(READER.replace("SETTINGS = (HERE", "SETTINGS = ''  # (HERE"))
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "None\n"
