"""The code fingerprint of each stage: which edits change which stages' fingerprints, and which change none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from oloproof.identity.fingerprint import CodeIdentity, MemoryCache, PackageFacts, ParseCache, code_identity

NONE: set[str] = set()
RETRIEVE, GENERATE, COUNT = {"retrieve"}, {"generate"}, {"count_tokens"}
BOTH = RETRIEVE | GENERATE
ALL = BOTH | COUNT
EXAMPLES = Path(__file__).parents[2] / "examples"

Files = Mapping[str, str]
Edit = Callable[..., set[str]]


def facts(names: frozenset[str]) -> PackageFacts:
    """Every module comes from a distribution of its name, version 1."""
    return PackageFacts({name: [name] for name in names}, dict.fromkeys(names, "1"), {})


class Project:
    """A folder of source files, of which the app imported some."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._cache = MemoryCache()

    def write(self, files: Files) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(dedent(text).encode("utf-8", "surrogateescape"))

    def identity(
        self,
        target: str = "app:Rag",
        imported: tuple[str, ...] = ("app",),
        packages: Callable[[frozenset[str]], PackageFacts] = facts,
        python: str = "3.11",
        cache: ParseCache | None = None,
        installed: frozenset[str] = frozenset(),
    ) -> CodeIdentity:
        modules = {}
        for name in imported:
            path = self.root / name.replace(".", "/")
            modules[name] = str(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))

        def identity(cache: ParseCache | None) -> CodeIdentity:
            return code_identity(target, modules, [str(self.root)], python, packages, cache, installed)

        if cache is not None:
            return identity(cache)
        found = identity(None)
        # What was kept of any state of the project that the test has seen gives the same.
        for _ in range(2):
            again = identity(self._cache)
            assert again == found
            assert list(again.ingredients) == list(found.ingredients)
        return found


def changed(before: CodeIdentity, after: CodeIdentity) -> set[str]:
    """The stages whose fingerprints differ; their ingredients must say so too."""
    stages = {s for s in ALL if getattr(before.fingerprints, s) != getattr(after.fingerprints, s)}
    assert stages == {s for s in ALL if before.ingredients[s] != after.ingredients[s]}
    return stages


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def edit(project: Project) -> Edit:
    """Write a project, replace a text in one file by another, and tell which fingerprints changed."""

    def edit(
        files: Files | str,
        old: str,
        new: str,
        file: str = "app.py",
        target: str = "app:Rag",
        **options: object,
    ) -> set[str]:
        files = {"app.py": files} if isinstance(files, str) else files
        files = {name: dedent(text) for name, text in files.items()}
        assert old in files[file], f"{old!r} is not in {file}"
        project.write(files)
        before = project.identity(target, **options)  # type: ignore[arg-type]
        project.write({file: files[file].replace(old, new)})
        return changed(before, project.identity(target, **options))  # type: ignore[arg-type]

    return edit


APP = '''
"""A system."""
import json
import os
from oloproof import Passage, Retrieval, rag_system

LIMIT = 3
PROMPT = "Answer: "
UNUSED = 1

def tokens(text):
    """Words."""
    return text.split()

def rank(items):
    # the longest first
    return sorted(items, key=len)[:LIMIT]

def prompt(question):
    return PROMPT + question

def unused():
    return UNUSED

@rag_system(name="x", version="1", depth=5, top_k=2, index_version="i")
class Rag:
    """The system."""

    STYLE = "short"
    FUZZ = 0.5

    def __init__(self):
        self.documents = json.load(open("d.json"))

    def retrieve(self, input, depth):
        """Find."""
        return rank(self._candidates(tokens(input)))[:depth]

    def _candidates(self, words):
        return [w for w in words if len(w) > self.FUZZ]

    def generate(self, input, context):
        return self._write(prompt(input), tokens(input))

    def _write(self, text, words):
        return {"answer": text + self.STYLE}

    def count_tokens(self, passage):
        return len(passage.text)

    def helper(self):
        return 1
'''


# ------------------------------------------------------------------------------------------ what counts


@pytest.mark.parametrize(
    ("old", "new", "stages"),
    [
        ("[:depth]", "[:depth + 1]", RETRIEVE),
        ("> self.FUZZ", ">= self.FUZZ", RETRIEVE),
        ("key=len", "key=str", RETRIEVE),
        ("LIMIT = 3", "LIMIT = 4", RETRIEVE),
        ("FUZZ = 0.5", "FUZZ = 0.6", RETRIEVE),
        ("PROMPT + question", "question + PROMPT", GENERATE),
        ('PROMPT = "Answer: "', 'PROMPT = "Reply: "', GENERATE),
        ('STYLE = "short"', 'STYLE = "long"', GENERATE),
        ('"answer": text', '"answer": 2 * text', GENERATE),
        ("text.split()", 'text.split(" ")', BOTH),
        ("len(passage.text)", "len(passage.text) + 1", COUNT),
        ('"d.json"', '"e.json"', ALL),
        ("self.documents =", "self.papers =", ALL),
    ],
)
def test_an_edit_counts_for_the_stages_that_reach_it(
    edit: Edit, old: str, new: str, stages: set[str]
) -> None:
    assert edit(APP, old, new) == stages


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# the longest first", "# the shortest first\n    # or not"),
        ('"""A system."""', '"""Another system."""'),
        ('"""Words."""', ""),
        ('"""The system."""', '"""Some system."""'),
        ('"""Find."""', '"""Find\n        them."""'),
        ("return PROMPT + question", "return (PROMPT\n        + question)"),
        ('"Answer: "', "'Answer: '"),
        ('"Answer: "', '"Ans" "wer: "'),
        ("LIMIT = 3", "\n\n\nLIMIT   =   0x3"),
        ("UNUSED = 1", "UNUSED = 2"),
        ("return UNUSED", "return UNUSED + 1"),
        ("def unused():", "def more():\n    return 5\n\ndef unused():"),
        ("return 1", "return 2"),
        ("top_k=2", "top_k=3"),
        ('version="1"', 'version="2"'),
        ("top_k=2", "top_k=LIMIT - UNUSED"),
        ("def tokens(text):", "def tokens(text: str) -> list:"),
        ("def generate(self, input, context):", "def generate(self, input: 'x', context: tuple) -> dict:"),
        ("LIMIT = 3", "LIMIT: int = 3"),
        ("return text.split()", "return text.split()  # type: ignore"),
        ("import json\nimport os\n", "import os\nimport json\n"),
        ("import os\n", ""),
        ("return {", "pass\n        'note'\n        return {"),
    ],
)
def test_what_does_not_matter_changes_nothing(edit: Edit, old: str, new: str) -> None:
    assert edit(APP, old, new) == NONE


def test_moving_definitions_changes_nothing(project: Project) -> None:
    project.write({"app.py": APP})
    before = project.identity()
    head, *rest = dedent(APP).split("\ndef ")
    functions, system = rest[:4], rest[3][rest[3].index("@rag_system") :]
    functions[3] = functions[3].replace(system, "")
    methods = system.split("\n    def ")
    moved = "\n    def ".join([methods[0], *reversed(methods[1:])])
    project.write(
        {"app.py": head + "\n" + moved + "\n" + "".join(f"\ndef {f}\n" for f in reversed(functions))}
    )
    assert changed(before, project.identity()) == NONE


def test_the_path_of_the_checkout_does_not_count(tmp_path: Path) -> None:
    identities = []
    for name in ("one", "two"):
        project = Project(tmp_path / name / "deep")
        project.write({"app.py": APP})
        identities.append(project.identity())
    assert identities[0] == identities[1]


def test_the_minor_version_of_python_counts_for_every_stage(project: Project) -> None:
    project.write({"app.py": APP})
    assert changed(project.identity(python="3.11"), project.identity(python="3.12")) == ALL


def test_a_stage_that_is_not_defined_has_a_fingerprint_of_nothing(project: Project) -> None:
    app = APP.replace("count_tokens", "count")
    project.write({"app.py": app})
    identity = project.identity()
    assert identity.ingredients["count_tokens"] == {"python": "3.11"}
    assert len(identity.fingerprints.count_tokens) == 64


def test_ingredients_are_named_after_what_they_are(project: Project) -> None:
    project.write({"app.py": APP})
    found = project.identity().ingredients
    assert [*found["retrieve"]] == sorted(found["retrieve"])
    assert {"app:Rag", "app:Rag.__init__", "app:Rag.retrieve", "app:Rag._candidates", "app:Rag.FUZZ"} <= set(
        found["retrieve"]
    )
    assert {"app:rank", "app:LIMIT", "app:tokens", "python"} <= set(found["retrieve"])
    assert found["retrieve"]["app:json"] == "import json"
    assert not {"app:prompt", "app:PROMPT", "app:Rag.generate", "app:Rag.STYLE"} & set(found["retrieve"])
    assert not any("oloproof" in value for key, value in found["retrieve"].items() if "package" in key)


@pytest.mark.parametrize(
    "decoration",
    [
        "import oloproof\n@oloproof.rag_system({})",
        "import oloproof as o\n@o.rag_system({})",
        "from oloproof import rag_system as system\n@system({})",
        "from oloproof.contract import rag_system\n@rag_system({})",
        "import oloproof.contract\n@oloproof.contract.rag_system({})",
        "try:\n    from oloproof import rag_system\nexcept ImportError:\n    rag_system = None\n@rag_system({})",
    ],
)
def test_the_arguments_of_our_decorator_do_not_count_under_any_name(edit: Edit, decoration: str) -> None:
    body = "\nclass Rag:\n    def retrieve(self, input, depth): return K\n    def generate(self, i, c): return 1\n"
    app = "K = 2\n" + decoration.format("name='x', top_k=K") + body
    assert edit(app, "name='x', top_k=K", "name='y', top_k=5") == NONE
    assert edit(app, "K = 2", "K = 3") == RETRIEVE


def test_a_class_decorated_by_a_plain_call_is_found(edit: Edit) -> None:
    app = """
    from oloproof import rag_system
    class Inner:
        def retrieve(self, input, depth): return 1
        def generate(self, input, context): return 2
    Rag = rag_system(name="x", top_k=2)(Inner)
    """
    assert edit(app, "top_k=2", "top_k=3") == NONE
    assert edit(app, "return 2", "return 3") == ALL  # what is assigned is not followed method by method


def test_a_class_inside_a_class_can_be_the_system(edit: Edit) -> None:
    app = """
    class Outer:
        LIMIT = 1
        class Inner:
            def retrieve(self, input, depth): return 1
            def generate(self, input, context): return 2
        def retrieve(self): return 3
    """
    assert edit(app, "return 1", "return 4", target="app:Outer.Inner") == RETRIEVE
    assert edit(app, "return 2", "return 4", target="app:Outer.Inner") == GENERATE
    assert edit(app, "return 3", "return 4", target="app:Outer.Inner") == NONE


def test_a_system_that_the_module_only_passes_on_is_followed(edit: Edit) -> None:
    files = {
        "app.py": "from impl import System as Rag\n",
        "impl.py": "class System:\n def retrieve(self, i, d): return 1\n def generate(self, i, c): return 2\n",
    }
    assert edit(files, "return 2", "return 3", "impl.py") == GENERATE


# -------------------------------------------------------------------------------------- names and scopes

METHODS = """
class Rag:
    def retrieve(self, input, depth):
        {retrieve}
    def generate(self, input, context):
        {generate}
"""


def app(retrieve: str = "return 1", generate: str = "return 2", before: str = "", after: str = "") -> str:
    """An app with these two method bodies."""
    return before + METHODS.format(retrieve=retrieve, generate=generate) + after


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("X = 1", "return X"),
        ("X = [1]\nX += [2]", "return X"),
        ("X: int = 1", "return X"),
        ("(X := 1)", "return X"),
        ("X, Y = 1, 2", "return Y"),
        ("[X, *Y] = 1, 2", "return Y"),
        ("X = Y = 1", "return X"),
        ("if True:\n    X = 1\nelse:\n    X = 5", "return X"),
        ("try:\n    X = 1\nexcept ValueError:\n    X = 5", "return X"),
        ("for X in [1]:\n    pass", "return X"),
        ("with open('f') as f:\n    X = f.read(1)", "return X"),
        ("X = {}\nX['a'] = 1", "return X"),
        ("X = []\nX.append(1)", "return X"),
        ("X = {'a': 1}\ndel X['a']", "return X"),
        ("X = 0\ndef set_x():\n    global X\n    X = 1\n", "return X"),
        ("X = {}\ndef fill():\n    X['a'] = 1\n", "return X"),
        ("X = []\ndef fill():\n    X.append(1)\n", "return X"),
        ("def f(a=1): return a", "return f()"),
        ("def f(*, a=1): return a", "return f()"),
        ("def g(): return 1\ndef f(a=g): return a", "return f()"),
        ("def f():\n    def g():\n        return 1\n    return g\n", "return f()()"),
        ("f = lambda: 1", "return f()"),
        ("def g(): return 1\nf = lambda: g()", "return f()"),
        ("def g(): return 1\nf = [lambda: g()]", "return f[0]()"),
        ("def g(x): return 1\ndef f(): return [g(x) for x in input]", "return f()"),
        ("def g(x): return 1\ndef f(): return {g(x) for g in input for x in g}\nh = g", "return h"),
        ("def g(): return 1\nclass C:\n    x = g()", "return C.x"),
        ("class C:\n    def m(self): return 1", "return C().m()"),
        ("class C:\n    class D:\n        y = 1", "return C.D().y"),
        ("class B:\n    def m(self): return 1\nclass C(B): pass", "return C().m()"),
        ("class M(type):\n    y = 1\nclass C(metaclass=M): pass", "return C.y"),
        ("def deco(f): return lambda *a: 1\n@deco\ndef f(): pass", "return f()"),
        ("def deco(c):\n    c.y = 1\n    return c\n@deco\nclass C: pass", "return C.y"),
        ("async def f(): return 1", "return f()"),
        ("def f():\n    yield 1", "return list(f())"),
        ("def f(x):\n    match x:\n        case 1: return 5", "return f(input)"),
        ("def g(): return 1\ndef f(): return f'{g()}'", "return f()"),
        ("E = 1\ndef f():\n    try: pass\n    except E: pass", "return f()"),
        ("D = 1\nclass C:\n    D = D", "return C.D"),
        (
            "N = 1\ndef f():\n    n = N\n    def g():\n        nonlocal n\n        n += 1\n    g()",
            "return f()",
        ),
        ("import functools\n@functools.lru_cache(maxsize=1)\ndef f(): return 2", "return f()"),
    ],
)
def test_what_a_name_stands_for_counts(edit: Edit, code: str, body: str) -> None:
    files = app(retrieve=body, before=code + "\n")
    position = code.index("1")
    assert edit(files, code, code[:position] + "7" + code[position + 1 :]) >= RETRIEVE
    assert "generate" not in edit(files, body, body + " or 5")


@pytest.mark.parametrize(
    "body",
    [
        "helper = 5; return helper",
        "return [helper for helper in input]",
        "return (lambda helper: helper)(1)",
        "for helper in input: return helper",
        "import helper; return 3",
        "match input:\n            case [helper, *_]: return helper",
        "with input as helper: return helper",
        "return input.helper",
        "return input.get(helper=1)",
        "return 'helper'",
        "def helper(): return 3\n        return helper()",
        "x: helper = 1; return x",
    ],
)
def test_names_that_are_local_or_only_look_alike_do_not_count(edit: Edit, body: str) -> None:
    assert (
        edit(app(retrieve=body, before="def helper(): return 1\n"), "return 1\n", "return 9\n") - COUNT
        == NONE
    )


def test_a_parameter_hides_a_global_but_its_default_does_not(edit: Edit) -> None:
    code = "helper = 1\nother = 2\ndef f(helper, x=other): return helper\n"
    files = app(retrieve="return f(3)", before=code)
    assert edit(files, "helper = 1", "helper = 5") == NONE
    assert edit(files, "other = 2", "other = 5") == RETRIEVE


def test_a_comprehension_reads_its_first_iterable_outside(edit: Edit) -> None:
    assert (
        edit(app(retrieve="return [xs for xs in xs]", before="xs = [1]\n"), "xs = [1]", "xs = [2]")
        == RETRIEVE
    )


def test_class_names_are_invisible_to_methods(edit: Edit) -> None:
    files = (
        app(retrieve="return helper()", before="def helper(): return 'global'\n")
        + "    helper = staticmethod(int)\n"
    )
    assert edit(files, "'global'", "'other'") == RETRIEVE


def test_the_order_of_bindings_of_one_name_counts(edit: Edit) -> None:
    code = "X = 1\nX = 2\n"
    assert edit(app(retrieve="return X", before=code), code, "X = 2\nX = 1\n") == RETRIEVE


def test_where_a_rebound_name_is_read_on_import_counts(edit: Edit) -> None:
    code = "X = 1\nY = X\nX = 2\n"
    assert edit(app(retrieve="return Y, X", before=code), code, "X = 1\nX = 2\nY = X\n") == RETRIEVE


def test_a_new_definition_that_hides_a_builtin_counts(edit: Edit) -> None:
    assert (
        edit(app(retrieve="return len(input)", before="Z = 1\n"), "Z = 1", "def len(x): return 3") == RETRIEVE
    )


def test_what_an_import_name_stands_for_counts(edit: Edit) -> None:
    files = {
        "app.py": app(retrieve="return f() - g()", before="from a import x as f\nfrom b import x as g\n"),
        "a.py": "def x(): return 1",
        "b.py": "def x(): return 2",
    }
    swapped = "from b import x as f\nfrom a import x as g\n"
    assert edit(files, "from a import x as f\nfrom b import x as g\n", swapped) == RETRIEVE


# ---------------------------------------------------------------------------------------------- modules


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("import tools.text", "tools.text.clean(input)"),
        ("import tools.text as t", "t.clean(input)"),
        ("import tools", "tools.text.clean(input)"),
        ("from tools import text", "text.clean(input)"),
        ("from tools import text as t", "t.clean(input)"),
        ("from tools.text import clean", "clean(input)"),
        ("from tools.text import clean as c", "c(input)"),
        ("from tools import tidy", "tidy(input)"),
        ("import tools", "tools.tidy(input)"),
        ("import tools as t", "t.text.clean(input)"),
        ("from tools import *", "tidy(input)"),
        ("import tools.more", "tools.more.again(input)"),
        ("from tools.more import again", "again(input)"),
        ("try:\n    from tools.text import clean\nexcept ImportError:\n    clean = None", "clean(input)"),
        ("import tools.text\nclean = tools.text.clean", "clean(input)"),
        ("import tools.text\nTABLE = {'a': tools.text.clean}", "TABLE['a'](input)"),
    ],
)
def test_imports_are_followed_to_the_definition(edit: Edit, line: str, call: str) -> None:
    files = {
        "app.py": app(retrieve=f"return {call}", before=line + "\n"),
        "tools/__init__.py": "from .text import clean as tidy\n",
        "tools/text.py": "SIGN = '-'\ndef clean(text): return text + SIGN\ndef other(): return 1\n",
        "tools/more.py": "from . import text\nfrom .text import clean\ndef again(x): return text.clean(x)\n",
    }
    assert edit(files, "text + SIGN", "SIGN + text", "tools/text.py") == RETRIEVE
    assert edit(files, "SIGN = '-'", "SIGN = '+'", "tools/text.py") == RETRIEVE
    assert edit(files, "return 2", "return 3") == GENERATE
    if "*" not in line and call != "tools.text":
        assert edit(files, "return 1", "return 7", "tools/text.py") == NONE


@pytest.mark.parametrize(
    "body",
    [
        "import tools.text\n        return tools.text.clean(input)",
        "import tools.text as t\n        return t.clean(input)",
        "from tools import text\n        return text.clean(input)",
        "from tools.text import clean\n        return clean(input)",
        "import importlib\n        return importlib.import_module('tools.text').clean(input)",
        "from importlib import import_module as im\n        return im('tools.text').clean(input)",
        "return __import__('tools.text').text.clean(input)",
        "def inner():\n            from tools.text import clean\n            return clean(1)\n        return inner()",
    ],
)
def test_modules_imported_inside_a_function_are_found(edit: Edit, body: str) -> None:
    files = {
        "app.py": app(retrieve=body),
        "tools/__init__.py": "",
        "tools/text.py": "import third\ndef clean(text): return text + '-'\n",
    }
    assert edit(files, "'-'", "'+'", "tools/text.py") == RETRIEVE
    project_files = {**files}
    assert edit(project_files, "import third", "import fourth", "tools/text.py") == RETRIEVE


def test_relative_imports_climb(edit: Edit) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/rag/__init__.py": "",
        "pkg/rag/app.py": app(
            retrieve="return f()", before="from ..common.tools import f\nfrom . import other\n"
        ),
        "pkg/rag/other.py": "Z = 1\n",
        "pkg/common/tools.py": "def f(): return 5\n",
    }
    options = {"target": "pkg.rag.app:Rag", "imported": ("pkg.rag.app",)}
    assert edit(files, "return 5", "return 6", "pkg/common/tools.py", **options) == RETRIEVE
    assert edit(files, "Z = 1", "Z = 2", "pkg/rag/other.py", **options) == NONE


def test_folders_without_init_are_packages(edit: Edit) -> None:
    files = {
        "src/app.py": app(retrieve="return f()", before="from src.tools import f\n"),
        "src/tools.py": "def f(): return 5\n",
    }
    options = {"target": "src.app:Rag", "imported": ("src.app",)}
    assert edit(files, "return 5", "return 6", "src/tools.py", **options) == RETRIEVE


def test_a_module_and_a_name_of_one_package_may_share_a_name(edit: Edit) -> None:
    files = {
        "app.py": app(retrieve="return tool(input)", before="from tools import tool\n"),
        "tools/__init__.py": "from tools.tool import tool\n",
        "tools/tool.py": "def tool(x): return 1\n",
    }
    assert edit(files, "return 1", "return 5", "tools/tool.py") >= RETRIEVE


def test_the_constructor_of_an_unknown_thing_in_a_package_is_no_module(project: Project) -> None:
    project.write({"app.py": app(retrieve="return tools.x.__init__()", before="import tools\n")})
    project.write({"tools/__init__.py": "import tools\ndef f(): return tools.__init__.__init__\n"})
    names = project.identity().ingredients["retrieve"]
    assert not any("__init__" in name for name in names)


def test_import_cycles_end(edit: Edit) -> None:
    files = {
        "app.py": app(retrieve="return f()", before="from a import f\n"),
        "a.py": "from b import g, h\nfrom b import *\ndef f(): return g()\n",
        "b.py": "from a import f\nfrom a import *\nfrom a import h\ndef g(): return f\n",
    }
    assert edit(files, "return f\n", "return f, 1\n", "b.py") == RETRIEVE


def test_classes_that_derive_from_themselves_end(project: Project) -> None:
    project.write(
        {"app.py": "class A(B): pass\nclass B(A): pass\n" + app(before="").replace("Rag", "Rag(A)")}
    )
    assert project.identity().fingerprints.retrieve


def test_a_module_that_appears_and_hides_another_counts(project: Project) -> None:
    project.write({"app.py": app(retrieve="return words.split(input)", before="import words\n")})
    before = project.identity()
    project.write({"words.py": "def split(x): return x\n"})
    assert changed(before, project.identity()) == RETRIEVE | GENERATE


def test_the_name_of_a_module_counts(project: Project) -> None:
    project.write({"app.py": APP, "other.py": APP})
    one, two = project.identity(), project.identity("other:Rag", ("other",))
    assert changed(one, two) == ALL


def test_only_modules_of_the_project_are_followed_never_ours(project: Project) -> None:
    project.write({"app.py": "import oloproof.contract\n" + APP})
    found = project.identity().ingredients["retrieve"]
    assert not any("oloproof" in name for name in found)


# ------------------------------------------------------------------------------------------ the examples


def example(root: Path, name: str) -> Project:
    project = Project(root)
    for path in (EXAMPLES / name).glob("*.py"):
        project.write({path.name: path.read_text()})
    return project


def edited(
    project: Project, target: str, imported: tuple[str, ...], file: str, old: str, new: str
) -> set[str]:
    before = project.identity(target, imported)
    text = (project.root / file).read_text()
    assert old in text
    project.write({file: text.replace(old, new)})
    after = project.identity(target, imported)
    project.write({file: text})
    return changed(before, after)


@pytest.mark.parametrize(
    ("old", "new", "stages"),
    [
        ("key=shared)\n        return", "key=len)\n        return", GENERATE),
        ("NOT_FOUND =", "NOT_FOUND = 'x' +", GENERATE),
        ('r"(?<=[.!?])\\s+"', 'r"(?<=[.!?;])\\s+"', GENERATE),
        ("passages[:depth]", "passages[: depth + 1]", RETRIEVE),
        ('removesuffix("s")', 'removesuffix("es")', ALL),  # the constructor indexes with the same tokenizer
        ('"a", "an"', '"an"', ALL),
        ("top_k=2", "top_k=3", NONE),
        ("depth=6", "depth=7", NONE),
        ("The distinct words", "The words", NONE),
        ("# The sort is stable", "# The sort of Python is stable", NONE),
    ],
)
def test_support_rag(tmp_path: Path, old: str, new: str, stages: set[str]) -> None:
    project = example(tmp_path, "support_rag")
    assert edited(project, "app:SupportRag", ("app",), "app.py", old, new) == stages


@pytest.mark.parametrize(
    ("file", "old", "new", "stages"),
    [
        ("sentences.py", "_SHORTEST = 4", "_SHORTEST = 3", GENERATE),
        ("sentences.py", '" " + sentence', '"  " + sentence', GENERATE),
        ("sentences.py", '"""The sentences of', '"""Sentences of', NONE),
        ("app.py", "QUOTED_SENTENCES = 2", "QUOTED_SENTENCES = 3", GENERATE),
        ("app.py", "round(4)", "round(5)", RETRIEVE),
        ("app.py", "len(ending) + 3", "len(ending) + 2", ALL),
        ("app.py", "B = 0.75", "B = 0.4", ALL),
        ("app.py", "top_k=3", "top_k=4", NONE),
        ("app.py", "The words without their English endings", "Stems", NONE),
        ("convert.py", "import", "import sys\nimport", NONE),
    ],
)
def test_building_faq(tmp_path: Path, file: str, old: str, new: str, stages: set[str]) -> None:
    project = example(tmp_path, "building_faq")
    assert edited(project, "app:BuildingFaq", ("app", "sentences"), file, old, new) == stages


# ------------------------------------------------------------------------------------------------ cache


def test_a_cache_gives_the_same_identity_and_saves_the_parsing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write({"app.py": "import tool\n" + APP, "tool.py": "X = [1]\n"})
    cache = MemoryCache()
    plain, first = project.identity(), project.identity(cache=cache)

    def refuse(data: bytes, text: str, *, program: bool = False) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr("oloproof.identity.sources.summarise", refuse)
    assert plain == first == project.identity(cache=cache)
    project.write({"app.py": APP + "\n# more\n"})
    with pytest.raises(AssertionError, match="parsed again"):
        project.identity(cache=cache)


def test_a_damaged_cache_entry_is_replaced(project: Project) -> None:
    class Damaged(MemoryCache):
        def read(self, key: str) -> str | None:
            return "[1,2" if super().read(key) is None else super().read(key)

    project.write({"app.py": APP})
    cache = Damaged()
    assert project.identity() == project.identity(cache=cache) == project.identity(cache=cache)


def test_a_file_that_is_gone_is_an_error_with_its_name(project: Project) -> None:
    with pytest.raises(OSError) as caught:
        project.identity()
    assert str(caught.value.filename).endswith("app.py")


def test_the_engine_keeps_its_own_modules_out_of_the_worker() -> None:
    """The worker runs `packages.py` by path: it must load the standard library alone."""
    import subprocess

    path = Path(__file__).parents[2] / "oloproof" / "identity" / "packages.py"
    done = subprocess.run(
        [sys.executable, "-S", "-I", path, "numpy"], capture_output=True, text=True, check=True
    )
    assert '"providers": {"numpy": []}' in done.stdout
