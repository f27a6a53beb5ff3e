"""`execution.memory_mb`: what needs more is errored with that reason, and the others are scored."""

from __future__ import annotations

from pathlib import Path

import pytest
from projects import MakeProject, Oloproof, case
from workers import generate, retrieve, workers

from oloproof.worker import process

LIMIT = 400
NEEDED = f"needed more than memory_mb: {LIMIT}"


@pytest.mark.parametrize(
    ("code", "begins"),
    [
        ("bytearray(1 << 30)", "MemoryError"),
        ("held = []\nwhile True: held.append(bytearray(1 << 20))", "MemoryError"),
        ("held = []\nwhile True: held.append(str(len(held)))", "MemoryError"),
        ("held = 'x'\nwhile True: held += held", "MemoryError"),
        ("import numpy\nnumpy.ones(1 << 28)", "MemoryError: Unable to allocate 2.00 GiB"),
        ("import mmap\nmmap.mmap(-1, 1 << 30)", "OSError: [Errno 12] Cannot allocate memory"),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_call_that_needs_more_is_told_so(tmp_path: Path, code: str, begins: str, threads: int) -> None:
    with workers(tmp_path, memory_mb=LIMIT, threads=threads) as found:
        reply = found.call(retrieve("large", code))
        assert reply.kind == "exception"
        assert reply.message.startswith(begins)
        assert reply.message.endswith(NEEDED)
        assert found.call(generate("small")).kind is None


def test_code_in_c_that_gives_up_for_want_of_memory_is_told_so(tmp_path: Path) -> None:
    code = "os.write(2, b\"terminate called after throwing an instance of 'std::bad_alloc'\")\nos.abort()"
    with workers(tmp_path, memory_mb=LIMIT) as found:
        reply = found.call(retrieve("large", code))
    assert (reply.kind, reply.message) == ("crash", f"the worker was ended by SIGABRT: it {NEEDED}")


def test_the_limit_holds_at_import_and_in_the_constructor(tmp_path: Path) -> None:
    (tmp_path / "construct.py").write_text("bytearray(1 << 30)")
    with workers(tmp_path, memory_mb=LIMIT) as found:
        reply = found.call(retrieve("any"))
        assert reply.message == f"app:Rag() failed: MemoryError: {NEEDED}"
        (tmp_path / "app.py").write_text("bytearray(1 << 30)")
        assert found.call({"op": "describe"}).message == f"MemoryError: {NEEDED}"


def test_the_app_cannot_raise_its_limit(tmp_path: Path) -> None:
    code = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))"
    with workers(tmp_path, memory_mb=LIMIT) as found:
        assert found.call(retrieve("greedy", code)).kind == "exception"


def test_without_a_limit_the_message_is_pythons_own(tmp_path: Path) -> None:
    with workers(tmp_path) as found:
        assert found.call(retrieve("large", "bytearray(1 << 62)")).message == "MemoryError"


def test_threads_leave_the_memory_that_they_do_not_use_to_the_others(tmp_path: Path) -> None:
    code = "held = [b'x' * 1000 for _ in range(1000)]\nbarriers[4].wait(10)\nif name == '0': bytearray(150 << 20)"
    with workers(tmp_path, memory_mb=LIMIT, threads=4) as found:
        replies = found.call_all([retrieve(str(n), code) for n in range(4)])
    assert [reply.kind for reply in replies] == [None] * 4


def test_a_kill_by_the_kernel_for_want_of_memory_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel counts such kills; here it is made to seem to have counted one while the worker ran."""
    with workers(tmp_path) as found:
        counts = iter((3, 4))
        monkeypatch.setattr(process, "oom_kills", lambda: next(counts))
        reply = found.call(retrieve("large", "os.kill(os.getpid(), signal.SIGKILL)"))
    assert reply.message == "the worker was ended by SIGKILL: the machine ran out of memory"


def test_the_setting_reaches_the_workers(make_project: MakeProject, oloproof: Oloproof) -> None:
    app = """
    from oloproof import Passage, Retrieval, rag_system

    @rag_system(name="large", version="1", depth=3, top_k=2, index_version="1")
    class Rag:
        def retrieve(self, input, depth):
            held = bytearray(input["mb"] << 20)
            return Retrieval(query=None, depth=depth, candidates=(Passage(doc_id="d1", text="blue"),))

        def generate(self, input, context):
            return {"answer": context[0].text}
    """
    cases = [case(f"of {mb} MB", input={"mb": mb}) for mb in (1, 300, 2, 3000, 3)]
    folder = make_project(app, cases=cases, execution={"memory_mb": 256})
    run = oloproof("run", "--json", cwd=folder).record["run"]
    assert (run["attempted"], run["errored"]) == (5, 2)
    listed = oloproof("inspect", "latest", "--json", cwd=folder).record["cases"]
    messages = {row["case_id"]: row["error"]["message"] for row in listed if row["error"]}
    told = "MemoryError: needed more than memory_mb: 256"
    assert messages == {"of 300 MB": told, "of 3000 MB": told}
