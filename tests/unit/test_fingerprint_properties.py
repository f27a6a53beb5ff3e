"""Properties of fingerprints over many programs: what never changes them, how summaries are kept, how long it takes."""

from __future__ import annotations

import ast
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_fingerprint import EXAMPLES, NONE, Project, changed
from test_fingerprint_oracle import Made

from oloproof.identity.fingerprint import MemoryCache
from oloproof.identity.sources import summarise
from oloproof.identity.summary import SUMMARY_VERSION, Summary

EXAMPLE_FILES = [
    {path.name: path.read_text() for path in (EXAMPLES / name).glob("*.py")}
    for name in ("support_rag", "building_faq")
]
TARGETS = ["app:SupportRag", "app:BuildingFaq"]


def documented(tree: ast.Module) -> ast.Module:
    """Every function and class, and the module, with another docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            if ast.get_docstring(node) is not None:
                del node.body[0]
            node.body.insert(0, ast.Expr(ast.Constant("Something else.")))
    return tree


def is_movable(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and not node.decorator_list and not node.args.defaults


def reformatted(text: str, draw: st.DrawFn, docstrings: bool) -> str:
    """The same program in another form: formatting, comments, docstrings, order of functions side by side."""
    tree = ast.parse(text)
    if docstrings and draw(st.booleans()):
        documented(tree)
    for body in [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]:
        for position in range(len(body) - 1):
            first, second = body[position : position + 2]
            different = getattr(first, "name", 1) != getattr(second, "name", 2)
            if is_movable(first) and is_movable(second) and different and draw(st.booleans()):
                body[position : position + 2] = [second, first]
    lines = ast.unparse(ast.fix_missing_locations(tree)).split("\n")
    for _ in range(draw(st.integers(0, 5))):
        position = draw(st.integers(0, len(lines)))
        lines.insert(position, draw(st.sampled_from(["", "# a comment", "        # 'another", "\t"])))
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n# the end"]))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_another_form_of_the_same_program_has_the_same_fingerprints(data: st.DataObject) -> None:
    number = data.draw(st.integers(0, 3))
    files = Made(data).files() if number > 1 else EXAMPLE_FILES[number]
    target = "app:Rag" if number > 1 else TARGETS[number]
    with TemporaryDirectory() as folder:
        project = Project(Path(folder))
        project.write(files)
        before = project.identity(target)
        # A package that nobody knows might read docstrings.
        names = [name for found in before.ingredients.values() for name in found]
        quiet = not any(name.startswith(("all of", "package")) for name in names)
        project.write({name: reformatted(text, data.draw, quiet) for name, text in files.items()})
        assert changed(before, project.identity(target)) == NONE


def test_the_same_files_have_the_same_fingerprints_whatever_was_imported_first(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write({"app.py": "import one, two\nclass Rag:\n    def retrieve(self, i, d): return one.f()\n"})
    project.write({"one.py": "def f(): return 1\n", "two.py": "print(1)\n"})
    forward = project.identity(imported=("app", "one", "two"))
    assert forward == project.identity(imported=("two", "one", "app")) == project.identity()


# ------------------------------------------------------------------------------------------- summaries

SAMPLE = '''
"""A module."""
import os.path as p, json
from .near import thing as other
from far import *
try:
    import numpy
except ImportError:
    numpy = None
LIMIT: int = 3
TABLE = {"a": [1, 2.5, b"x", None, ...]}
TABLE["b"] = LIMIT
print("acting")
@other.register("x")
async def f(a, /, b=LIMIT, *c, d: int = 1, **e) -> str:
    """Doc."""
    global LIMIT
    LIMIT += 1
    async with a as x, b: pass
    for i, *j in c:
        if i: continue
        elif not j: break
        else: del i
    while True:
        try: return await f"{a!r:>{b}} {x=}"
        except (ValueError, OSError) as error: raise TypeError from error
        finally: assert a, "message"
    match a:
        case {"k": [1, *rest], **more} | {"k": None, "m": rest} if more: yield rest
        case json.JSONDecoder(strict=True) as found: yield from found
    return [y for x in a if x for y in (lambda z=x: z)(x)] or {k: v for k, v in e.items()} or (n := 1)
class C(numpy.ndarray, metaclass=other.Meta):
    """Doc of C."""
    x: int = 5
    y = property(lambda self: self.x)
    z = other.make()
    @property
    def q(self): return super().q + self.part.go(self.x)
    def __init__(self, k):
        self.part = other.Part(k)
        nested = 1
        def inner():
            nonlocal nested
            nested = eval("1")
        getattr(self, k)(vars(), k[1:2, ::3], -k ** 2 if k else ~k, k @ k, k is not None)
'''


def test_summaries_survive_being_kept() -> None:
    summary = summarise(SAMPLE.encode(), "digest")
    assert not summary.opaque
    kept = Summary.from_json(summary.to_json())
    assert kept.to_json() == summary.to_json()
    assert kept == Summary.from_json(kept.to_json())


def test_a_change_of_summaries_needs_a_new_version() -> None:
    """Summaries are kept under SUMMARY_VERSION: when this fails, raise it and put the new digest here."""
    import hashlib

    text = summarise(SAMPLE.encode(), "digest").to_json()
    assert (SUMMARY_VERSION, hashlib.sha256(text.encode()).hexdigest()[:16]) == ("6", "c205ed683a8ed992")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("f(a, b)", "f((a, b))"),
        ("f(a=b)", "f(a, b)"),
        ("f(*a)", "f(a)"),
        ("f(**a)", "f(*a)"),
        ("{**a}", "{None: a}"),
        ("{a, b}", "(a, b)"),
        ("a.b", "a[b]"),
        ("a.b.c", "a.b(c)"),
        ("1", "True"),
        ("1", "1.0"),
        ("'a'", "b'a'"),
        ("'1'", "1"),
        ("None", "'None'"),
        ("f'{a}'", "f'{a!r}'"),
        ("f'{a:b}'", "f'{a}b'"),
        ("a if b else c", "b if a else c"),
        ("a and b or c", "a and (b or c)"),
        ("a < b < c", "(a < b) < c"),
        ("a - (b - c)", "a - b - c"),
        ("-a", "+a"),
        ("not a", "a"),
        ("a is b", "a == b"),
        ("a[1:2]", "a[1, 2]"),
        ("a[:1]", "a[1:]"),
        ("[a for a in b for c in d]", "[a for c in d for a in b]"),
        ("[a for a in b if c]", "[a for a in b]"),
        ("(a for a in b)", "[a for a in b]"),
        ("{a: b for a in b}", "{a for a in b}"),
        ("lambda a: a", "lambda a, b: a"),
        ("lambda *a: a", "lambda **a: a"),
        ("lambda a, /: a", "lambda a: a"),
        ("lambda *, a: a", "lambda a: a"),
        ("lambda a=1: a", "lambda a: a"),
        ("await a", "a"),
        ("getattr(a, 'b')", "getattr(a, 'c')"),
        ("getattr(a, 'b', None)", "getattr(a, 'b')"),
        ("super().a", "super(Rag, self).a"),
        ("type(self).a", "self.a"),
        ("Rag.a(self, b)", "Rag.a(b)"),
        ("(a := b)", "b"),
    ],
)
def test_expressions_that_differ_have_different_fingerprints(tmp_path: Path, one: str, two: str) -> None:
    project = Project(tmp_path)
    identities = []
    for expression in (one, two):
        project.write(
            {"app.py": f"class Rag:\n    async def retrieve(self, a, b):\n        return {expression}\n"}
        )
        identities.append(project.identity())
    assert changed(*identities) == {"retrieve"}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("if a: b()", "while a: b()"),
        ("if a: b()\nelse: c()", "if a: b()\nc()"),
        ("if a:\n    b()\n    c()", "if a:\n    b()\nc()"),
        ("for a in b: c()", "for b in a: c()"),
        ("for a in b: c()\nelse: d()", "for a in b: c()\nd()"),
        ("for a in b: break", "for a in b: continue"),
        ("for a in b: c()", "async for a in b: c()"),
        ("with a as b: c()", "with a: c()"),
        ("with a, b: c()", "with (a, b) as d: c()"),
        ("try: a()\nexcept b: c()", "try: a()\nexcept d: c()"),
        ("try: a()\nexcept b as d: c()", "try: a()\nexcept b: c()"),
        ("try: a()\nexcept b: c()", "try: a()\nexcept* b: c()"),
        ("try: a()\nexcept: c()\nelse: d()", "try: a()\nexcept: c()\nfinally: d()"),
        ("raise a", "raise a from b"),
        ("return a", "return"),
        ("return a", "yield a"),
        ("a = b", "a += b"),
        ("a += b", "a -= b"),
        ("a.x += b", "a.x = b"),
        ("a[0] += b", "a[0] = b"),
        ("a = b = c", "a = c\nb = c"),
        ("a, b = c", "a = b = c"),
        ("a: int", "pass"),
        ("a: int = 1", "a: int"),
        ("del a", "a"),
        ("del a.b", "del a[b]"),
        ("assert a", "assert a, b"),
        ("global a\na = 1", "a = 1"),
        ("import a", "import b as a"),
        ("from a import b", "from a.b import b"),
        ("from . import b", "from .. import b"),
        ("def f(): return 1", "async def f(): return 1"),
        ("def f(x): return 1", "def f(y): return 1"),
        ("def f(x=1): return 1", "def f(x=2): return 1"),
        ("@a\ndef f(): pass", "def f(): pass"),
        ("class C(a): pass", "class C: pass"),
        ("class C(x=a): pass", "class C(y=a): pass"),
        ("match a:\n    case b: c()", "match a:\n    case d: c()"),
        ("match a:\n    case [b]: c()", "match a:\n    case [*b]: c()"),
        ("match a:\n    case {'x': 1}: c()", "match a:\n    case {'x': 1, **b}: c()"),
        ("match a:\n    case 1: c()", "match a:\n    case 1 if b: c()"),
        ("match a:\n    case int(b): c()", "match a:\n    case int(x=b): c()"),
        ("match a:\n    case None: c()", "match a:\n    case _: c()"),
        ("match a:\n    case 1 as b: c()", "match a:\n    case b: c()"),
        ("a()\nb()", "b()\na()"),
    ],
)
def test_statements_that_differ_have_different_fingerprints(tmp_path: Path, one: str, two: str) -> None:
    project = Project(tmp_path)
    identities = []
    for code in (one, two):
        lines = "".join(f"        {line}\n" for line in code.split("\n"))
        project.write({"app.py": f"class Rag:\n    async def retrieve(self, x, y):\n{lines}        x()\n"})
        identities.append(project.identity())
    assert "retrieve" in changed(*identities)


# ----------------------------------------------------------------------------------------------- speed


def typical_module(number: int) -> str:
    """Some 300 lines with 2.6 nodes of syntax tree each, as in the standard library and in pip."""
    lines = ['"""A module."""', "import json", "import re", "import numpy as np", ""]
    lines += [f"from pkg.m{other} import f0 as other{other}" for other in range(max(0, number - 3), number)]
    lines += ["TABLE = {", *(f'    "key{i}": ("value {i}", {i}),' for i in range(20)), "}", ""]
    for i in range(7):
        call = f"other{number - 1}(text)" if number and i == 0 else "text"
        lines += [f"def f{i}(text: str, limit: int = {i}) -> list[str]:", '    """Do something.', ""]
        lines += ["    More about it, and what it raises, and when."] * 4 + ['    """', "    found = []", ""]
        lines += ["    for word in text.lower().split():", "        # words that are long enough"]
        lines += ["        if len(word) > limit:", "            found.append(word)", ""]
        lines += [f"    return found or f{(i + 1) % 7}({call})", "", ""]
    for i in range(3):
        lines += [f"class C{i}:", '    """A class."""', "", "    def __init__(self, path):"]
        lines += ["        self.path = path", ""]
        for j in range(3):
            lines += [f"    def m{j}(self, query, depth=5):", f'        """Method {j}.', ""]
            lines += ["        More about it."] * 3 + ['        """', "        # the best first"]
            lines += ["        scores = np.asarray(self.path)", "        best = sorted(scores)[:depth]"]
            lines += [f"        return json.dumps(self.m{(j + 1) % 3}(best))", ""]
    return "\n".join(lines)


def test_two_hundred_modules_are_fingerprinted_in_no_time(tmp_path: Path) -> None:
    """Half a second on a machine of its own, less than a tenth when it was done before; this one may be busy."""
    count = 200
    files = {f"pkg/m{number}.py": typical_module(number) for number in range(count)}
    last = f"m{count - 1}"
    app = f"from pkg.{last} import f0, C0\nclass Rag:\n    def __init__(self): self.c = C0(1)\n"
    app += "    def retrieve(self, i, d): return f0(i)\n    def generate(self, i, c): return self.c.m0(i)\n"
    project = Project(tmp_path)
    project.write({"app.py": app, "pkg/__init__.py": "", **files})
    imported = ("app", "pkg", *(f"pkg.m{number}" for number in range(count)))
    cache = MemoryCache()
    seconds = []
    for _ in range(2):
        started = time.perf_counter()
        identity = project.identity(imported=imported, cache=cache)
        seconds.append(time.perf_counter() - started)
    assert len(identity.ingredients["retrieve"]) > 1000
    assert seconds[0] < 10, seconds
    assert seconds[1] < 5, seconds
