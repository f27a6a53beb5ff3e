"""A system that commits every fault there is: each by the name of a case, with how that case must be reported."""

from __future__ import annotations

from textwrap import indent
from typing import NamedTuple


class Fault(NamedTuple):
    """A fault: the stage it is in, what its code does, and how the case must be reported."""

    stage: str
    code: str
    kind: str
    reason: str


def _invalid(code: str, reason: str, stage: str = "retrieve") -> Fault:
    return Fault(stage, code, "invalid_return", reason)


RETRIEVE = {
    "raises": Fault(
        "retrieve", "raise ValueError('no such index')", "exception", "ValueError: no such index"
    ),
    "raises_without_a_message": Fault("retrieve", "raise KeyError", "exception", "KeyError"),
    "raises_a_base_exception": Fault("retrieve", "raise Odd('stop')", "exception", "Odd: stop"),
    "raises_keyboard_interrupt": Fault(
        "retrieve", "raise KeyboardInterrupt", "exception", "KeyboardInterrupt"
    ),
    "raises_generator_exit": Fault("retrieve", "raise GeneratorExit", "exception", "GeneratorExit"),
    "raises_unprintable": Fault("retrieve", "raise Unprintable", "exception", "Unprintable: (its message"),
    "raises_a_group": Fault(
        "retrieve",
        "raise BaseExceptionGroup('several', [Odd('a'), KeyError('b')])",
        "exception",
        "BaseExceptionGroup: several (2 sub-exceptions)",
    ),
    "raises_from_a_signal_handler": Fault(
        "retrieve",
        "signal.signal(signal.SIGALRM, too_late)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(20)",
        "exception",
        "TimeoutError: at SIGALRM",
    ),
    "is_ended_by_its_own_alarm": Fault(
        "retrieve",
        "signal.signal(signal.SIGALRM, signal.SIG_DFL)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(20)",
        "crash",
        "the worker was ended by SIGALRM",
    ),
    "ends_its_process_group": Fault(
        "retrieve", "os.killpg(0, signal.SIGTERM)", "crash", "the worker was ended by SIGTERM"
    ),
    "interrupts_its_main_thread": Fault(
        "retrieve",
        "threading.Timer(0.05, _thread.interrupt_main).start()\nfor _ in range(2000):\n    time.sleep(0.01)",
        "exception",
        "KeyboardInterrupt",
    ),
    "recurses_in_a_repr": Fault(
        "retrieve", "return repr(Recursive())", "exception", "RecursionError: maximum recursion"
    ),
    "exits_with_an_odd_code": Fault(
        "retrieve", "sys.exit(Unprintable())", "exit", "sys.exit(an object of type Unprintable)"
    ),
    "recurses": Fault("retrieve", "return recurse()", "exception", "RecursionError: maximum recursion"),
    "runs_out_of_memory": Fault("retrieve", "bytearray(1 << 62)", "exception", "MemoryError"),
    "exits_with_0": Fault("retrieve", "sys.exit(0)", "exit", "the code called sys.exit(0)"),
    "exits_with_text": Fault("retrieve", "sys.exit('bye')", "exit", "the code called sys.exit('bye')"),
    "leaves_with_0": Fault("retrieve", "os._exit(0)", "crash", "the worker ended with exit status 0"),
    "leaves_with_9": Fault("retrieve", "os._exit(9)", "crash", "the worker ended with exit status 9"),
    "segfaults": Fault("retrieve", "ctypes.string_at(0)", "crash", "the worker was ended by SIGSEGV"),
    "aborts": Fault("retrieve", "os.abort()", "crash", "the worker was ended by SIGABRT"),
    "kills_itself": Fault(
        "retrieve", "os.kill(os.getpid(), signal.SIGKILL)", "crash", "the worker was ended by SIGKILL"
    ),
    "kills_its_parent": Fault(
        "retrieve", "os.kill(os.getppid(), 9)\nforever()", "crash", "the worker was ended by SIGKILL"
    ),
    "ends_its_parent": Fault(
        "retrieve", "os.kill(os.getppid(), 15)\nforever()", "crash", "the worker was ended by SIGKILL"
    ),
    "leaves_a_fork_behind": Fault(
        "retrieve",
        "if os.fork() == 0:\n    time.sleep(300)\nos._exit(7)",
        "crash",
        "the worker ended with exit status 7",
    ),
    "closes_every_descriptor": Fault(
        "retrieve", "os.closerange(0, 256)", "crash", "the code closed the file descriptors of its worker"
    ),
    "closes_all_but_the_standard_descriptors": Fault(
        "retrieve",
        "os.closerange(3, 256)\nreturn found()",
        "crash",
        "the code closed the file descriptors of its worker",
    ),
    "replaces_the_descriptors": Fault(
        "retrieve",
        "for fd in range(3, 64):\n    os.dup2(1, fd)\nreturn found()",
        "crash",
        "the code closed the file descriptors of its worker",
    ),
    "returns_nothing": _invalid("return None", "retrieve must return a Retrieval, got None"),
    "returns_a_list": _invalid(
        "return [passage()]", "retrieve must return a Retrieval, got an object of type list"
    ),
    "returns_bytes": _invalid("return b'x'", "must return a Retrieval, got an object of type bytes"),
    "returns_its_class": _invalid("return Retrieval", "must return a Retrieval, got class Retrieval"),
    "returns_a_generator": _invalid(
        "return (p for p in ())", "must return a Retrieval, got an object of type generator"
    ),
    "depth_is_text": _invalid(
        "return found(depth='3')", "Retrieval.depth must be a whole number, got an object"
    ),
    "depth_is_true": _invalid(
        "return found(depth=True)", "Retrieval.depth must be a whole number, got bool True"
    ),
    "depth_is_another": _invalid(
        "return found(depth=50)", "Retrieval.depth is 50, but retrieve was asked for 3"
    ),
    "query_is_bytes": _invalid("return found(query=b'x')", "Retrieval.query holds an object of type bytes"),
    "query_is_nan": _invalid(
        "return found(query=float('nan'))", "Retrieval.query is not JSON: it holds NaN or an infinity"
    ),
    "query_is_half_a_character": _invalid(
        "return found(query='\\ud800')", "Retrieval.query is not valid Unicode"
    ),
    "candidates_are_a_generator": _invalid(
        "return found(candidates=(p for p in [passage()]))",
        "Retrieval.candidates must be a tuple of Passage, got an object of type generator",
    ),
    "candidates_are_none": _invalid("return found(candidates=None)", "must be a tuple of Passage, got None"),
    "candidates_are_text": _invalid(
        "return found(candidates='d1')", "must be a tuple of Passage, got an object of"
    ),
    "candidate_is_a_dict": _invalid(
        "return found(candidates=(passage(), {}))",
        "candidate 2 must be a Passage, got an object of type dict",
    ),
    "more_than_depth": _invalid(
        "return found(candidates=[passage(doc_id=str(n)) for n in range(4)])",
        "retrieve returned 4 candidates for a depth of 3",
    ),
    "same_passage_twice": _invalid(
        "return found(candidates=(passage(), passage(text='other')))",
        "candidates 1 and 2 are the same passage, 'd1'",
    ),
    "same_chunk_twice": _invalid(
        "return found(candidates=(passage(chunk_id='a'), passage(chunk_id='b'), passage(chunk_id='a')))",
        "candidates 1 and 3 are the same passage, 'd1#a'",
    ),
    "doc_id_is_a_number": _invalid("return one(doc_id=1)", "candidate 1: doc_id must be a string, got int 1"),
    "doc_id_is_none": _invalid("return one(doc_id=None)", "candidate 1: doc_id must be a string, got None"),
    "doc_id_is_empty": _invalid("return one(doc_id='')", "candidate 1: doc_id must not be empty"),
    "doc_id_is_half_a_character": _invalid(
        "return one(doc_id='\\udfff')", "candidate 1: doc_id is not valid Unicode: it holds a lone surrogate"
    ),
    "chunk_id_is_a_number": _invalid("return one(chunk_id=1.5)", "chunk_id must be a string, got float 1.5"),
    "text_is_bytes": _invalid("return one(text=b'x')", "text must be a string, got an object of type bytes"),
    "text_is_half_a_character": _invalid(
        "return one(text='a\\ud83d')", "candidate 1: text is not valid Unicode"
    ),
    "texts_are_huge": _invalid(
        "return found(candidates=[passage(doc_id=str(n), text='x' * 6_000_000) for n in range(3)])",
        "the candidates together is 18,000,003 characters long; at most 16,000,000 can be recorded",
    ),
    "score_is_nan": _invalid(
        "return one(score=math.nan)", "candidate 1: score must be a finite number, got float nan"
    ),
    "score_is_infinite": _invalid(
        "return one(score=-math.inf)", "score must be a finite number, got float -inf"
    ),
    "score_is_numpy_nan": _invalid(
        "return one(score=numpy.float32('nan'))", "must be a finite number, got float nan"
    ),
    "score_is_text": _invalid(
        "return one(score='1')", "score must be a finite number, got an object of type str"
    ),
    "score_is_true": _invalid("return one(score=True)", "score must be a finite number, got bool True"),
    "score_is_an_array": _invalid(
        "return one(score=numpy.zeros(2))", "must be a finite number, got an object of type"
    ),
    "score_is_of_a_class_that_lies": _invalid(
        "return one(score=LyingNumber(1))", "score must be a finite number, got an object of type LyingNumber"
    ),
    "text_is_half_a_character_of_a_class_that_lies": _invalid(
        "return one(text=Lying('\\ud800'))", "candidate 1: text is not valid Unicode"
    ),
    "candidates_without_end": _invalid(
        "return found(candidates=Endless((passage(),)))", "retrieve returned 4 candidates for a depth of 3"
    ),
    "raises_what_cannot_be_described": Fault(
        "retrieve", "raise Indescribable", "exception", "an error that cannot be described"
    ),
    "stops_its_parent_and_leaves": Fault(
        "retrieve",
        "os.kill(os.getppid(), signal.SIGSTOP)\nos._exit(3)",
        "crash",
        "the worker ended with exit status 3",
    ),
    "score_is_beyond_floats": _invalid(
        "return one(score=10**400)", "must be a finite number, got int of 1329 bits"
    ),
}

COUNT = {
    "count_raises": Fault("count_tokens", "raise OSError('no model')", "exception", "OSError: no model"),
    "count_exits": Fault("count_tokens", "sys.exit(0)", "exit", "the code called sys.exit(0)"),
    "count_crashes": Fault("count_tokens", "os._exit(0)", "crash", "the worker ended with exit status 0"),
    "count_is_none": _invalid(
        "return None", "count_tokens must return a whole number of at least 0, got None", "c"
    ),
    "count_is_a_float": _invalid("return 3.0", "whole number of at least 0, got float 3.0", "c"),
    "count_is_negative": _invalid("return -1", "whole number of at least 0, got int -1", "c"),
    "count_is_true": _invalid("return True", "whole number of at least 0, got bool True", "c"),
    "count_is_text": _invalid("return '3'", "whole number of at least 0, got an object of type str", "c"),
    "count_is_nan": _invalid("return math.nan", "whole number of at least 0, got float nan", "c"),
    "count_is_astronomic": _invalid("return 10**30", "whole number of at least 0, got int 1000000", "c"),
}

GENERATE = {
    "answer_raises": Fault("generate", "raise ValueError('\\x1b[2J\\nred')", "exception", "ValueError: "),
    "answer_exits": Fault("generate", "sys.exit(0)", "exit", "the code called sys.exit(0)"),
    "answer_crashes": Fault("generate", "os._exit(0)", "crash", "the worker ended with exit status 0"),
    "answer_is_text": _invalid(
        "return 'blue'", "generate must return a dict, got an object of type str", "g"
    ),
    "answer_is_none": _invalid("return None", "generate must return a dict, got None", "g"),
    "answer_is_a_list": _invalid(
        "return [1]", "generate must return a dict, got an object of type list", "g"
    ),
    "answer_is_a_coroutine_of_text": _invalid(
        "return late('x')", "generate must return a dict, got an object", "g"
    ),
    "answer_yields": _invalid(
        "return (x for x in 'ab')", "must return a dict, got an object of type generator", "g"
    ),
    "answer_holds_bytes": _invalid(
        "return {'a': b'x'}", "the answer of generate holds an object of type bytes", "g"
    ),
    "answer_holds_a_set": _invalid(
        "return {'a': {1}}", "holds an object of type set, which is not JSON", "g"
    ),
    "answer_holds_a_passage": _invalid(
        "return {'a': context}", "holds an object of type Passage, which is", "g"
    ),
    "answer_holds_nan": _invalid("return {'a': [math.nan]}", "is not JSON: it holds NaN or an infinity", "g"),
    "answer_holds_numpy_nan": _invalid(
        "return {'a': numpy.float64('inf')}", "it holds NaN or an infinity", "g"
    ),
    "answer_holds_an_array": _invalid("return {'a': numpy.zeros(2)}", "holds an object of type ndarray", "g"),
    "answer_holds_half_a_character": _invalid("return {'a': '\\udc00'}", "it holds a lone surrogate", "g"),
    "answer_has_an_odd_key": _invalid(
        "return {(1, 2): 3}", "is not JSON: keys must be str, int, float, bool", "g"
    ),
    "answer_holds_itself": _invalid("x = {}\nx['x'] = [x]\nreturn x", "is not JSON: it contains itself", "g"),
    "answer_is_deep": _invalid("return {'a': nest(120)}", "is nested more than 100 levels deep", "g"),
    "answer_is_very_deep": _invalid(
        "return {'a': nest(100_000)}", "is nested more than 100 levels deep", "g"
    ),
    "answer_is_huge": _invalid(
        "return {'a': 'x' * 17_000_000}",
        "is 17,000,009 characters long; at most 16,000,000 can be recorded",
        "g",
    ),
    "answer_holds_a_huge_number": _invalid(
        "return {'a': 10**5000}", "is not JSON: it holds a whole number with too many digits", "g"
    ),
}

STAGES = {"c": "count_tokens", "g": "generate"}
FAULTS = {
    name: fault._replace(stage=STAGES.get(fault.stage, fault.stage))
    for name, fault in (RETRIEVE | COUNT | GENERATE).items()
}

#: What is unusual, and yet no fault: the case passes.
HARMLESS = {
    "numpy_scalars": (
        "return found(depth=numpy.int64(depth), candidates=[passage(score=numpy.float32(0.5)), "
        "passage(doc_id='d2', score=numpy.float64(1)), "
        "passage(doc_id=numpy.str_('d3'), text='numpy_scalars', score=numpy.int8(3))])"
    ),
    "no_scores": "return one(score=None)",
    "same_document_in_chunks": "return found(candidates=(passage(chunk_id='a'), passage(chunk_id='b')))",
    "astral_text": "return one(text='blue \\U0001f6d1 \\x00 \\u2028')",
    "prints_100_mb": "print('y' * 100_000_000)\nprint('the end of 100 MB')\nreturn found()",
    "writes_100_mb": "for _ in range(100):\n    os.write(1, b'w' * 1_000_000)\nreturn found()",
    "has_a_child_print_100_mb": "subprocess.run(['head', '-c', '100000000', '/dev/zero'])\nreturn found()",
    "prints_bytes": "os.write(2, b'\\xff\\xfe')\nreturn found()",
    "prints_half_a_character": "print('\\ud800')\nreturn found()",
    "closes_standard_output": "os.close(1)\nos.close(2)\nreturn found()",
    "closes_the_streams": "sys.stdout.close()\nsys.stderr.close()\nreturn found()",
    "replaces_the_streams": "sys.stdout = sys.stderr = None\nreturn found()",
    "changes_folder": "os.chdir('/')\nreturn found()",
    "starts_a_thread_without_end": "threading.Thread(target=forever).start()\nreturn found()",
    "hangs_at_exit": "atexit.register(forever)\nreturn found()",
    "ignores_signals": "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nreturn found()",
    "leaves_an_alarm_behind": (
        "signal.signal(signal.SIGALRM, too_late)\nsignal.setitimer(signal.ITIMER_REAL, 60, 60)\nreturn found()"
    ),
    "leaves_an_alarm_that_would_end_it": (
        "signal.signal(signal.SIGALRM, signal.SIG_DFL)\nsignal.setitimer(signal.ITIMER_REAL, 60)\nreturn found()"
    ),
    "has_twenty_children_print_at_once": (
        "shouts = [subprocess.Popen('yes | head -c 3000000', shell=True) for _ in range(20)]\n"
        "[shout.wait() for shout in shouts]\nreturn found()"
    ),
    "has_fifty_threads_print_without_end": (
        "def shout():\n    while True:\n        print('on and on')\n        time.sleep(1)\n"
        "[threading.Thread(target=shout, daemon=True).start() for _ in range(50)]\nreturn found()"
    ),
    "a_thread_of_it_raises": "threading.Thread(target=recurse).start()\nreturn found()",
    "a_thread_of_it_exits": "threading.Thread(target=sys.exit).start()\nreturn found()",
    "forgets_its_environment": "os.environ.clear()\nreturn found()",
    "starts_a_child": "subprocess.Popen(['sleep', '300'])\nreturn found()",
    "starts_a_detached_child": "subprocess.Popen(['sleep', '300'], start_new_session=True)\nreturn found()",
    "starts_a_daemon": (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(300)\n    os._exit(0)\n"
        "os.wait()\nreturn found()"
    ),
    "starts_a_daemon_without_an_environment": (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        os.execve('/bin/sleep', ['sleep', '300'], {})\n    os._exit(0)\nos.wait()\nreturn found()"
    ),
    "comes_back_twice": "os.fork()\nreturn found()",
    "has_every_pipe_not_wait": "[os.set_blocking(fd, False) for fd in open_descriptors()]\nreturn found()",
    "answers_at_length_though_no_pipe_waits": (
        "[os.set_blocking(fd, False) for fd in open_descriptors()]\nreturn one(text='blue ' + 'x' * 9_000_000)"
    ),
    "stops_its_parent": "os.kill(os.getppid(), signal.SIGSTOP)\nreturn found()",
    "leaves_a_thread_that_ends_the_process": (
        "next_call.clear()\nthreading.Thread(target=end_under_the_next_call, daemon=True).start()\nreturn found()"
    ),
    "puts_a_stream_that_cannot_be_flushed": (
        "class Stream:\n    closed = False\n    flush = lambda self: sys.exit(0)\n"
        "    write = lambda self, text: os.write(1, text.encode())\n"
        "sys.stdout = Stream()\nreturn found()"
    ),
    "has_later_replies_lie": (
        "import oloproof.worker.app as app\n"
        "app.App.answer = lambda *_: {'value': {'query': 5, 'candidates': [[1, 2, 3, 4]]}, 'seconds': 0}\n"
        "return found()"
    ),
    "has_later_errors_lie": (
        "import oloproof.worker.app as app\n"
        "app.App.answer = lambda *_: {'error': {'kind': [], 'message': 5, 'traceback': {}}, 'seconds': 0}\n"
        "return found()"
    ),
    "has_json_fail": "import json\njson.dumps = json.loads = None\nreturn found()",
    "text_of_a_class_that_lies": "return one(text=Lying('blue'))",
}

HEAD = """
import _thread, atexit, asyncio, ctypes, math, os, signal, subprocess, sys, threading, time
from oloproof import Passage, Retrieval, rag_system

class Numpy:
    # numpy, imported only by the cases that need it: there are some hundred workers
    def __getattr__(self, name):
        import numpy
        return getattr(numpy, name)

numpy = Numpy()

class Odd(BaseException):
    pass

class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError
    __repr__ = __str__

class Recursive:
    def __repr__(self):
        return repr(self)

class Endless(tuple):
    def __iter__(self):
        while True:
            yield passage()

class Lying(str):
    def __str__(self):
        return 5
    def isascii(self):
        return True
    def encode(self, *_):
        raise Odd

class LyingNumber(int):
    def __float__(self):
        return math.nan

class Meta(type):
    __name__ = property(lambda self: sys.exit(0))

class Indescribable(Exception, metaclass=Meta):
    pass

def open_descriptors():
    return [int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd)]

def too_late(number, frame):
    raise TimeoutError(f"at {signal.Signals(number).name}")

next_call = threading.Event()

def end_under_the_next_call():
    next_call.wait()
    os._exit(0)

def recurse():
    return recurse()

def forever():
    while True:
        time.sleep(3600)

def nest(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value

async def late(value):
    return value

def passage(**changes):
    return Passage(**{"doc_id": "d1", "score": 1.0, "text": "blue", **changes})

def one(**changes):
    return found(candidates=(passage(**changes),))

def found(**changes):
    return Retrieval(**{"query": "q", "depth": 3, "candidates": (passage(),), **changes})

"""

SYSTEM = """
@rag_system(name="faulty", version="1", depth=3, top_k=2, token_budget=1000, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        name = input["case"]
        next_call.set()
        # In one piece: threads of an earlier case may be printing too.
        print(f"printed by {name}\\n", end="")
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0, "an earlier case left an alarm behind"
        assert open("note.txt").read() == "here"
        if name in RETRIEVE:
            return RETRIEVE[name](input, depth, None)
        return one(doc_id="d1", text="blue " + name)

    def count_tokens(self, passage):
        name = passage.text.split()[-1]
        next_call.set()
        if name in COUNT:
            return COUNT[name](None, None, None)
        return numpy.int64(3) if name == "numpy_scalars" else 3

    def generate(self, input, context):
        name = input["case"]
        next_call.set()
        if name in GENERATE:
            return GENERATE[name](input, None, context)
        if name == "numpy_scalars":
            return {"answer": numpy.str_("blue"), "n": numpy.int64(7), "x": numpy.float32(0.5), "b": numpy.bool_(1)}
        return {"answer": context[0].text, "deep": nest(80)}
"""


def _table(name: str, codes: dict[str, str]) -> str:
    functions = [
        f"def {each}(input, depth, context):\n{indent(code, '    ')}\n\n" for each, code in codes.items()
    ]
    return "".join(functions) + f"{name} = {{{', '.join(f'{each!r}: {each}' for each in codes)}}}\n\n"


def faulty_app() -> str:
    def codes(stage: str) -> dict[str, str]:
        return {name: fault.code for name, fault in FAULTS.items() if fault.stage == stage}

    tables = _table("RETRIEVE", codes("retrieve") | HARMLESS)
    tables += _table("COUNT", codes("count_tokens")) + _table("GENERATE", codes("generate"))
    return HEAD + tables + SYSTEM
