"""What happens when modules are imported, registries, docstrings that somebody reads, and what cannot be resolved."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from test_fingerprint import ALL, BOTH, GENERATE, NONE, RETRIEVE, Edit, Project, app, changed, edit, project

from oloproof.identity.sources import Sources

__all__ = ["edit", "project"]  # fixtures

# ---------------------------------------------------------------------------- statements that act on import


@pytest.mark.parametrize(
    "statement",
    [
        "act(5)",
        "thirdparty.act(5)",
        "thirdparty.deep.act(5)",
        "for x in range(5): pass",
        "while act(5): pass",
        "with thirdparty.lock(5): pass",
        "if act(1):\n    act(5)",
        "try:\n    act(5)\nexcept ValueError:\n    pass",
        "_ = act(5)",
        "assert act(5)",
        "thirdparty.option = 5",
        "thirdparty.options['x'] = 5",
        "os.environ['X'] = '5'",
        "sys.path.insert(5, 'x')",
        "setattr(thirdparty, 'x', 5)",
        "del thirdparty.x5",
        "THING.x = 5",
        "THING.x().y = 5",
        "[act(5) for x in range(3)] and act(1) or print(5)",
    ],
)
def test_statements_that_act_on_import_count_for_every_stage(edit: Edit, statement: str) -> None:
    before = "import os, sys, thirdparty\nTHING = thirdparty.make()\ndef act(n): return 'acted'\n"
    files = app(before=before + statement + "\n", after="    def count_tokens(self, p): return 0\n")
    assert edit(files, "5", "6") == ALL
    if "act(" in statement and "thirdparty" not in statement:
        assert edit(files, "'acted'", "'done'") == ALL


@pytest.mark.parametrize(
    "statement",
    [
        "X = 5",
        "X = act(5)",
        "X = thirdparty.make(5)",
        "X: int = 5",
        "'a text 5'",
        "if __name__ == '__main__':\n    act(5)",
        "if typing.TYPE_CHECKING:\n    import five5",
        "try:\n    import five\nexcept ImportError:\n    five = 5",
        "if sys.version_info > (3, 5):\n    X = 1",
        "def f(): act(5)",
        "class C:\n    x = 5",
        "with open('x5') as f:\n    X = f.read()",
        "X = {}\nX['a'] = 5",
        "X = []\nX.append(5)",
        "X = set()\nX |= {5}",
    ],
)
def test_what_only_defines_counts_for_nobody(edit: Edit, statement: str) -> None:
    before = "import sys, thirdparty, typing\ndef act(n): return 'acted'\n" + statement + "\n"
    assert edit(app(before=before), "5", "6") == NONE


def test_what_modules_do_on_import_counts_wherever_they_are_imported(edit: Edit) -> None:
    files = {
        "app.py": app(generate="import lazy; return 1", before="import pkg.deep\n"),
        "pkg/__init__.py": "print(1)\n",
        "pkg/deep.py": "from . import side\n",
        "pkg/side.py": "print(2)\n",
        "lazy.py": "import lazier\n",
        "lazier.py": "print(3)\n",
        "never.py": "print(4)\n",
    }
    assert edit(files, "print(1)", "print(5)", "pkg/__init__.py") == BOTH
    assert edit(files, "print(2)", "print(5)", "pkg/side.py") == BOTH
    assert edit(files, "print(3)", "print(5)", "lazier.py") == GENERATE
    assert edit(files, "print(4)", "print(5)", "never.py") == NONE
    assert edit(files, "print(4)", "print(5)", "never.py", imported=("app", "never")) == BOTH


def test_the_order_of_what_happens_on_import_counts(edit: Edit) -> None:
    files = {
        "app.py": app(before="import one\nimport two\nimport three\n"),
        "one.py": "print(1)\n",
        "two.py": "print(2)\n",
        "three.py": "X = 1\n",
    }
    assert edit(files, "import one\nimport two\n", "import two\nimport one\n") == BOTH
    assert edit(files, "import two\nimport three\n", "import three\nimport two\n") == NONE


def test_a_value_computed_before_or_after_an_action_counts(edit: Edit) -> None:
    code = "import thirdparty\nX = thirdparty.get()\nthirdparty.change()\n"
    moved = "import thirdparty\nthirdparty.change()\nX = thirdparty.get()\n"
    assert edit(app(retrieve="return X", before=code), code, moved) == RETRIEVE


def test_patching_what_is_imported_brings_the_whole_module(edit: Edit) -> None:
    files = {
        "app.py": app(before="import patch\n"),
        "patch.py": "import thirdparty\nthirdparty.f = lambda: 1\ndef unrelated(): return 5\n",
    }
    assert edit(files, "return 5", "return 6", "patch.py") == BOTH


def test_patching_the_system_from_another_module_counts(edit: Edit) -> None:
    files = {
        "app.py": app(after="import patch\npatch.install(Rag)\n"),
        "patch.py": "def fast(self, i, d): return 'fast'\ndef install(c): c.retrieve = fast\n",
    }
    assert edit(files, "'fast'", "'faster'", "patch.py") == BOTH


def test_a_function_that_patches_a_module_counts_for_those_who_use_it(edit: Edit) -> None:
    files = {
        "app.py": app(
            "return tools.rank(input)", "patch.install(); return 1", before="import tools, patch\n"
        ),
        "patch.py": "import tools\ndef install(): tools.rank = lambda x: 'fast'\n",
        "tools.py": "def rank(x): return 'slow'\n",
    }
    assert edit(files, "'fast'", "'faster'", "patch.py") == BOTH


# --------------------------------------------------------------------------------------------- registries


REGISTRY = """
REGISTRY = {}
def register(name):
    def decorator(f):
        REGISTRY[name] = f
        return f
    return decorator
"""


@pytest.mark.parametrize(
    ("registry", "use", "read"),
    [
        (REGISTRY, "@register('a')\ndef f(): return 'f'", "REGISTRY['a']()"),
        (REGISTRY, "@register('a')\nclass C:\n    def m(self): return 'f'", "REGISTRY['a']()"),
        (REGISTRY, "def f(): return 'f'\nx = register('a')(f)", "REGISTRY['a']()"),
        (REGISTRY, "def f(): return 'f'\nREGISTRY['a'] = f", "REGISTRY['a']()"),
        (REGISTRY, "def f(): return 'f'\nREGISTRY.update(a=f)", "REGISTRY['a']()"),
        (
            "import contextvars\nV = contextvars.ContextVar('V')",
            "def f(): return 'f'\nx = V.set(f)",
            "V.get()()",
        ),
        ("ALL = []\ndef add(f):\n    ALL.append(f)\n    return f", "@add\ndef f(): return 'f'", "ALL[0]()"),
        (
            "class R:\n    def __init__(self): self.d = {}\n    def add(self, f): self.d[1] = f\nR1 = R()",
            "@R1.add\ndef f(): return 'f'",
            "R1.d[1]()",
        ),
        (
            "class Base:\n    ALL = {}\n    def __init_subclass__(cls, **k):\n        super().__init_subclass__(**k)\n"
            "        Base.ALL[cls.__name__] = cls",
            "class C(Base):\n    def m(self): return 'f'",
            "Base.ALL['C']().m()",
        ),
        (
            "T = {}\ndef fill(t, f):\n    t['a'] = f\n    return t",
            "def f(): return 'f'\ny = fill({}, 1)\nx = fill(T, f)",
            "T['a']()",
        ),
        (
            "class Tool:\n    ALL = []\n    def __init__(self, f):\n        self.f = f\n        self.ALL.append(self)",
            "def f(): return 'f'\nx = Tool(f)",
            "Tool.ALL[0].f()",
        ),
        (
            "import functools\n@functools.singledispatch\ndef show(x): return 1",
            "@show.register\ndef _(x: int): return 'f'",
            "show(5)",
        ),
    ],
)
def test_what_is_registered_counts_with_the_registry(edit: Edit, registry: str, use: str, read: str) -> None:
    files = app(retrieve=f"return {read}", before=f"{registry}\n{use}\n")
    assert edit(files, "'f'", "'g'") == RETRIEVE
    files = app(before=f"{registry}\n{use}\n")
    assert edit(files, "'f'", "'g'") == NONE


def test_a_registry_is_found_across_modules(edit: Edit) -> None:
    files = {
        "app.py": app(retrieve="return registry.REGISTRY['a']()", before="import registry, rankers\n"),
        "registry.py": REGISTRY,
        "rankers.py": "from registry import register\n@register('a')\ndef f(): return 'f'\ndef g(): return 'g'\n",
    }
    assert edit(files, "'f'", "'x'", "rankers.py") == RETRIEVE
    assert edit(files, "'g'", "'x'", "rankers.py") == NONE


@pytest.mark.parametrize(
    "code",
    [
        "@thirdparty.register('x')\ndef f(): return 'f'",
        "@thirdparty\ndef f(): return 'f'",
        "@(lambda f: f)\ndef f(): return 'f'",
        "THING = thirdparty.make()\n@THING.register('x')\ndef f(): return 'f'",
        "def mine(f):\n    thirdparty.register(f)\n    return f\n@mine\ndef f(): return 'f'",
        "def mine(x):\n    return lambda f: thirdparty.register(f)\n@mine(1)\ndef f(): return 'f'",
        "def mine(x):\n    return thirdparty.register(x)\n@mine(1)\ndef f(): return 'f'",
        "def mine(f):\n    thirdparty.f = f\n    return f\n@mine\ndef f(): return 'f'",
        "class C:\n    @thirdparty.register('x')\n    def f(self): return 'f'",
        "class C(thirdparty.Base):\n    def f(self): return 'f'",
        "class C(metaclass=thirdparty.Meta):\n    def f(self): return 'f'",
        "class C:\n    thirdparty.register('x')\n    def f(self): return 'f'",
        "class B:\n    def __init_subclass__(cls): thirdparty.register(cls)\nclass C(B):\n    def f(self): return 'f'",
        "if 1:\n    @thirdparty.register('x')\n    def f(): return 'f'",
        "def mine(f):\n    REG.add(f)\n    return f\nREG = thirdparty.make()\n@mine\ndef f(): return 'f'",
        "class R:\n    def add(self, f): OTHER.add(f)\nREG = R()\nOTHER = R()\n@REG.add\ndef f(): return 'f'",
        "class R:\n    def add(self, f): thirdparty.register(f)\nREG = R()\n@REG.add\ndef f(): return 'f'",
        "class R:\n    def add(self, f): thirdparty.register(f)\nREG = R()\n"
        "def mine(f):\n    REG.add(f)\n    return f\n@mine\ndef f(): return 'f'",
        "def setup(x):\n    thirdparty.configure(1)\n    return x\nX = setup('f')",
        "class S:\n    def __init__(self, x): thirdparty.option = x\nX = S('f')",
        "def setup(x):\n    import os\n    os.environ['A'] = x\nX = setup('f')",
        "if 1:\n    class C(thirdparty.Base):\n        def f(self): return 'f'",
    ],
)
def test_what_is_handed_to_somebody_unknown_counts_for_every_stage(edit: Edit, code: str) -> None:
    assert edit(app(before=f"import thirdparty\n{code}\n"), "'f'", "'g'") == BOTH


@pytest.mark.parametrize(
    "code",
    [
        "import functools\n@functools.cache\ndef f(): return 'f'",
        "from tenacity import retry\n@retry(stop=1)\ndef f(): return 'f'",
        "from langsmith import traceable as t\n@t(name='x')\ndef f(): return 'f'",
        "import functools\ndef timed(f):\n    @functools.wraps(f)\n    def inner(*a):\n        print(1)\n"
        "        return f(*a)\n    return inner\n@timed\ndef f(): return 'f'",
        "def timed(label):\n    def outer(f):\n        def inner(*a): return log(label)\n        return inner\n"
        "    return outer\n@timed('x')\ndef f(): return 'f'",
        "from pydantic import BaseModel\nclass C(BaseModel):\n    def f(self): return 'f'",
        "class E(ValueError):\n    def f(self): return 'f'",
        "from dataclasses import dataclass\n@dataclass\nclass C:\n    x: int = 1\n    def f(self): return 'f'",
        "from enum import Enum\nclass C(Enum):\n    A = 'f'",
    ],
)
def test_harmless_decorators_and_bases_leave_definitions_alone(edit: Edit, code: str) -> None:
    assert edit(app(before=f"{code}\n"), "'f'", "'g'") == NONE


def test_a_project_module_with_the_name_of_a_known_package_is_not_trusted(edit: Edit) -> None:
    files = {
        "app.py": app(before="from tenacity import retry\n@retry\ndef f(): return 'f'\n"),
        "tenacity.py": "import thirdparty\ndef retry(f):\n    thirdparty.register(f)\n    return f\n",
    }
    assert edit(files, "'f'", "'g'") == BOTH


# -------------------------------------------------------------------------------------------- docstrings


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("def tool(x): 'DOC'\n", "return agent.run(tools=[tool])"),
        ("def tool(x: DOC): pass\n", "return agent.run(tool)"),
        ("def tool(x): 'DOC'\nTOOLS = {'a': tool}\n", "return agent.run(TOOLS)"),
        ("@agent.tool\ndef tool(x): 'DOC'\n", "return tool(1)"),
        ("class C(agent.Signature):\n    'DOC'\n", "return C(1)"),
        ("class C(agent.Signature):\n    def m(self): 'DOC'\n", "return C(1)"),
        ("class C:\n    'DOC'\n", "return agent.parse(C)"),
        ("class D:\n    'DOC'\ndef tool(x: D): pass\n", "return agent.run(tool)"),
        ("", "def tool(x): 'DOC'\n        return agent.run(tool)"),
        ("", "@agent.tool\n        def tool(x): 'DOC'\n        return 1"),
        ("def tool(x): 'DOC'\n", "return tool.__doc__"),
        ("'DOC'\n", "return __doc__"),
        ("def tool(x): 'DOC'\n", "return getattr(tool, '__doc__')"),
        ("from pydantic import BaseModel\nclass C(BaseModel):\n    'DOC'\n", "return C(x=1)"),
    ],
)
def test_docstrings_and_annotations_count_where_somebody_may_read_them(
    edit: Edit, code: str, body: str
) -> None:
    files = app(retrieve=body, before=code + ("import agent\n" if "agent" in code + body else ""))
    assert edit(files, "DOC", "COD") >= RETRIEVE


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("def tool(x): 'DOC'\n", "return tool(1)"),
        ("def tool(x: DOC) -> DOC: pass\n", "return tool(1)"),
        ("class C:\n    'DOC'\n    def m(self): 'DOC'\n", "return C().m()"),
        ("class C(ValueError):\n    'DOC'\n", "raise C(1)"),
        ("class C:\n    'DOC'\n", "return isinstance(input, C)"),
        ("def key(x): 'DOC'\n", "return sorted(input, key=key)"),
        ("import functools\n@functools.cache\ndef f(x): 'DOC'\n", "return f(1)"),
        ("", "def key(x): 'DOC'\n        return key(1)"),
        ("import numpy\ndef f(x): 'DOC'\n", "return numpy.vectorize(f)"),
        ("'DOC'\n", "return 1"),
    ],
)
def test_docstrings_and_annotations_that_nobody_reads_do_not_count(edit: Edit, code: str, body: str) -> None:
    assert edit(app(retrieve=body, before=code), "DOC", "COD") == NONE


def test_a_method_passed_on_shows_its_docstring(edit: Edit) -> None:
    more = "    def search(self, q):\n        'DOC'\n"
    assert (
        edit(app("return agent.run(self.search)", before="import agent\n", after=more), "DOC", "COD")
        == RETRIEVE
    )
    assert edit(app("return self.search(1)", before="import agent\n", after=more), "DOC", "COD") == NONE


# ------------------------------------------------------------------------------- what cannot be resolved


@pytest.mark.parametrize(
    "body",
    [
        "return eval('help' + 'er')()",
        "exec(input)",
        "return globals()[input]()",
        "return compile(input, 'f', 'eval')",
        "return __builtins__.eval(input)",
        "import builtins\n        return builtins.eval(input)",
    ],
)
def test_code_from_text_brings_the_whole_module(edit: Edit, body: str) -> None:
    files = {
        "app.py": app(retrieve=body, before="import tools\ndef helper(): return 'h'\n"),
        "tools.py": "def tool(): return 't'\n",
        "other.py": "def other(): return 'o'\n",
    }
    assert edit(files, "'h'", "'i'") == RETRIEVE
    assert edit(files, "'t'", "'u'", "tools.py") == RETRIEVE  # the text may say tools.tool()
    assert edit(files, "return 2", "return 3") == BOTH
    assert edit(files, "'o'", "'p'", "other.py") == NONE


@pytest.mark.parametrize(
    "body",
    [
        "import importlib\n        return importlib.import_module(input)",
        "from importlib import import_module\n        return import_module('tools' + input)",
        "return __import__(input)",
        "import sys\n        return sys.modules[input]",
        "import pickle\n        return pickle.load(input)",
        "import joblib\n        return joblib.load(input)",
        "import numpy\n        return numpy.load(input, allow_pickle=True)",
        "import pkgutil\n        return [m for m in pkgutil.iter_modules()]",
        "import runpy\n        return runpy.run_path(input)",
        "import importlib.util\n        return importlib.util.spec_from_file_location('x', input)",
        "from importlib.metadata import entry_points\n        return entry_points()",
        "import sys\n        return sys._getframe(1).f_globals",
        "return input.f_globals",
        "return input.__globals__",
        "return [c for c in Base.__subclasses__()]",
        "return input.__subclasses__()",
        "import gc\n        return gc.get_objects()",
        "import hydra\n        return hydra.utils.instantiate(input)",
    ],
)
def test_imports_by_made_up_names_bring_every_module_and_package(
    edit: Edit, project: Project, body: str
) -> None:
    files = {
        "app.py": app(retrieve=body, before="class Base: pass\n"),
        "tools.py": "def tool(): return 't'\n",
        "plugins/one.py": "def one(): return 'p'\n",
        "tests/test_x.py": "def test(): return 'x'\n",
        ".venv/lib/site-packages/lib.py": "X = 'l'\n",
        "env/pyvenv.cfg": "",
        "env/lib/lib.py": "X = 'e'\n",
    }
    assert edit(files, "'t'", "'u'", "tools.py") == RETRIEVE
    assert edit(files, "'p'", "'q'", "plugins/one.py") == RETRIEVE
    assert edit(files, "return 2", "return 3") == BOTH
    assert edit(files, "'x'", "'y'", "tests/test_x.py") == NONE
    assert edit(files, "'l'", "'m'", ".venv/lib/site-packages/lib.py") == NONE
    assert edit(files, "'e'", "'f'", "env/lib/lib.py") == NONE
    asked: list[frozenset[str]] = []
    project.identity(
        packages=lambda names: asked.append(names) or __import__("test_fingerprint").facts(names)
    )  # type: ignore[func-returns-value]
    assert "*" in asked[0]


def test_reading_source_text_makes_the_text_count(edit: Edit) -> None:
    files = app(
        retrieve="import inspect\n        return inspect.getsource(tool)", before="def tool(): pass  # note\n"
    )
    assert edit(files, "# note", "# remark") == RETRIEVE


@pytest.mark.parametrize(
    "body",
    [
        "return getattr(tools, 'to' + 'ol')()",
        "return getattr(tools, input)",
        "return tools.__dict__[input]",
        "return vars(tools)[input]",
        "return [tools][0].tool()",
        "m = tools; return m.tool()",
        "return tools.made_at_run_time()",
        "import tools as t\n        return getattr(t, input)",
    ],
)
def test_a_module_looked_at_by_name_counts_wholly(edit: Edit, body: str) -> None:
    files = {"app.py": app(retrieve=body, before="import tools\n"), "tools.py": "def tool(): return 't'\n"}
    assert edit(files, "'t'", "'u'", "tools.py") == RETRIEVE
    assert edit(files, "return 2", "return 3") == GENERATE


def test_a_module_with_getattr_answers_for_any_name(edit: Edit) -> None:
    files = {
        "app.py": app(retrieve="return tools.whatever()", before="import tools\n"),
        "tools.py": "def tool(): return 't'\ndef __getattr__(name): return tool\n",
    }
    assert edit(files, "'t'", "'u'", "tools.py") == RETRIEVE


def test_names_from_a_star_bring_the_whole_module(edit: Edit) -> None:
    files = {
        "app.py": app(retrieve="return tool()", generate="return 5", before="from tools import *\n"),
        "tools.py": "from deeper import *\ndef tool(): return deep()\ndef never(): return 'n'\n",
        "deeper.py": "def deep(): return 'd'\n",
    }
    assert edit(files, "'n'", "'o'", "tools.py") == RETRIEVE
    assert edit(files, "'d'", "'e'", "deeper.py") == RETRIEVE


def test_a_star_can_hide_a_name_of_its_own_and_a_builtin(edit: Edit) -> None:
    files = {
        "app.py": app(
            retrieve="return len(input)",
            generate="return tool()",
            before="def tool(): pass\nfrom tools import *\n",
        ),
        "tools.py": "def tool(): return 't'\n",
    }
    assert edit(files, "'t'", "'u'", "tools.py") == GENERATE
    assert edit(files, "def tool():", "def len(x):", "tools.py") == BOTH


def test_strings_that_name_code_are_followed(edit: Edit) -> None:
    files = {
        "app.py": app(
            retrieve="return load('plugins.one:Ranker')",
            generate="return run('scripts/write.py')",
            before="from thirdparty import load, run\n",
        ),
        "plugins/one.py": "class Ranker: x = 'r'\nclass Other: x = 'o'\n",
        "scripts/write.py": "print('w')\n",
    }
    assert edit(files, "'r'", "'s'", "plugins/one.py") == RETRIEVE
    assert edit(files, "'o'", "'p'", "plugins/one.py") == NONE
    assert edit(files, "'w'", "'v'", "scripts/write.py") == GENERATE


@pytest.mark.parametrize(
    "text",
    [
        "def broken(:\n",
        "x = 'unfinished\n",
        "# -*- coding: nonsense -*-\nX = 1\n",
        "X = '\udcff'\n",
        "X = 1\0\n",
        "X = " + "(" * 300 + ")" * 300 + "\n",
        "X = " + "+".join(["1"] * 20_000) + "\n",
    ],
)
def test_a_file_that_cannot_be_parsed_counts_by_its_bytes(edit: Edit, text: str) -> None:
    files = {
        "app.py": app(retrieve="return tools.x", before="import tools\ndef helper(): return 'h'\n"),
        "tools.py": text + "# note\n",
    }
    assert edit(files, "# note", "# remark", "tools.py") == BOTH
    assert edit(files, "'h'", "'i'") == BOTH  # nobody knows what it imports


def test_other_encodings_are_read(edit: Edit) -> None:
    text = "# -*- coding: latin-1 -*-\nX = 'caf\udce9'\n# note \udce9\n"
    files = {"app.py": app(retrieve="return tools.X", before="import tools\n"), "tools.py": text}
    assert edit(files, "# note", "# remark", "tools.py") == NONE
    assert edit(files, "caf", "kaf", "tools.py") == RETRIEVE


def test_a_system_that_cannot_be_found_counts_wholly(edit: Edit) -> None:
    code = "import thirdparty\nclass A:\n    def retrieve(self, i, d): return 1\nRag = thirdparty.make(A)\n"
    assert edit(code, "return 1", "return 2") == ALL
    assert edit(app() + app(), "return 2", "return 3") == ALL
    assert (
        edit("if 1:\n" + "".join(f" {line}\n" for line in app().splitlines()), "return 2", "return 3") == ALL
    )
    assert edit(app(), "return 2", "return 3", target="app:Missing") == ALL


def test_a_compiled_module_counts_by_its_bytes(project: Project) -> None:
    project.write(
        {"app.py": app(retrieve="return fast.f()", before="import fast\n"), "fast.cpython-311.so": "binary"}
    )
    before = project.identity()
    project.write({"fast.cpython-311.so": "binary2"})
    assert changed(before, project.identity()) == BOTH


def test_a_global_that_only_a_function_sets_counts_with_the_function(edit: Edit) -> None:
    code = "def init():\n    global MODEL\n    MODEL = 'm'\n"
    assert edit(app(retrieve="return MODEL", before=code), "'m'", "'n'") == RETRIEVE
    files = {"app.py": app(retrieve="return state.MODEL", before="import state\n"), "state.py": code}
    assert edit(files, "'m'", "'n'", "state.py") == RETRIEVE


def test_a_star_brings_submodules_too(edit: Edit) -> None:
    files = {
        "app.py": app(retrieve="return text.clean()", before="from tools import *\n"),
        "tools/__init__.py": "__all__ = ['text']\n",
        "tools/text.py": "def clean(): return 't'\n",
    }
    assert edit(files, "'t'", "'u'", "tools/text.py") == RETRIEVE


def test_a_search_path_changed_at_run_time_brings_every_module(edit: Edit) -> None:
    body = "import sys\n        sys.path.insert(0, 'lib')\n        import helper\n        return helper.f()"
    files = {"app.py": app(retrieve=body), "lib/helper.py": "def f(): return 'h'\n"}
    assert edit(files, "'h'", "'i'", "lib/helper.py") == RETRIEVE


@pytest.mark.parametrize(
    ("guard", "counts"),
    [
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:", False),
        ("import typing\nif typing.TYPE_CHECKING:", False),
        ("import typing as tt\nif tt.TYPE_CHECKING:", False),
        ("TYPE_CHECKING = False\nif TYPE_CHECKING:", False),
        ("if __name__ == '__main__':", False),
        ("from settings import TYPE_CHECKING\nif TYPE_CHECKING:", True),
        ("import settings\nif settings.TYPE_CHECKING:", True),
        ("TYPE_CHECKING = True\nif TYPE_CHECKING:", True),
        ("if __name__ != '__main__':", True),
        ("if True:", True),
    ],
)
def test_branches_that_a_worker_never_executes_do_not_count(edit: Edit, guard: str, counts: bool) -> None:
    files = {"app.py": app(before=f"{guard}\n    print('x')\n"), "settings.py": "TYPE_CHECKING = True\n"}
    assert edit(files, "'x'", "'y'") == (BOTH if counts else NONE)


def test_a_module_that_turns_up_late_changes_names_too(edit: Edit) -> None:
    """`plugins.late` is imported by nobody that can be seen, but it is there, and it fills a registry."""
    files = {
        "app.py": app(retrieve="return (plugins.late, registry.ALL)", before="import plugins, registry\n"),
        "registry.py": "ALL = []\ndef add(f):\n    ALL.append(f)\n    return f\n",
        "plugins/__init__.py": "",
        "plugins/late.py": "import plugins.later\n",
        "plugins/later.py": "from registry import add\n@add\ndef f(): return 'f'\n",
    }
    assert edit(files, "'f'", "'g'", "plugins/later.py") == RETRIEVE


def test_a_folder_that_contains_itself_is_searched_once(project: Project) -> None:
    project.write({"app.py": app(retrieve="return __import__(input)"), "one/two.py": "X = 1\n"})
    (project.root / "one" / "again").symlink_to(project.root)
    names = project.identity().ingredients["retrieve"]
    assert "one.two:X" in names
    assert not any("again" in name for name in names)


def test_a_docstring_of_a_module_or_of_the_system_can_be_a_prompt(edit: Edit) -> None:
    files = {
        "app.py": app(retrieve="return prompts.__doc__", before="import prompts\n"),
        "prompts.py": "'DOC'\n",
    }
    assert edit(files, "DOC", "COD", "prompts.py") == RETRIEVE
    files["app.py"] = app(
        retrieve="import inspect; return inspect.getdoc(prompts)", before="import prompts\n"
    )
    assert edit(files, "DOC", "COD", "prompts.py") == RETRIEVE
    for body in (
        "return self.__doc__",
        "return type(self).__doc__",
        "return Rag.__doc__",
        "return agent.run(self)",
    ):
        system = app(retrieve=body, before="import agent\n").replace("class Rag:", "class Rag:\n    'DOC'")
        assert edit(system, "DOC", "COD") == RETRIEVE
    code = "class Tools:\n    def run(self): return agent.run(self)\n    def search(self): 'DOC'\n"
    files = {"app.py": app(retrieve="return [Tools()][0].run()", before=f"import agent\n{code}")}
    assert edit(files, "DOC", "COD") == RETRIEVE


def test_a_module_in_an_archive_counts_with_the_archives_bytes(tmp_path: Path) -> None:
    def text(answer: str) -> str:
        with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
            archive.writestr("inside.py", f"ANSWER = {answer!r}\n")
        module = Sources({"inside": str(tmp_path / "lib.zip" / "inside.py")}, []).module("inside")
        assert module is not None
        assert module.summary.opaque
        return module.summary.text

    assert text("blue") == text("blue") != text("red")
