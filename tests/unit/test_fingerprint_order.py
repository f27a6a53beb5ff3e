"""Where the order of definitions and imports matters, and ways of losing track of self or of a module."""

from __future__ import annotations

import pytest
from test_fingerprint import BOTH, GENERATE, NONE, RETRIEVE, Edit, app, edit, project

__all__ = ["edit", "project"]  # fixtures


@pytest.mark.parametrize(
    ("code", "moved"),
    [
        ("X = 1\nclass C:\n    k = X\nX = 2\n", "X = 1\nX = 2\nclass C:\n    k = X\n"),
        ("X = 1\ndef C(a=X): return a\nX = 2\n", "X = 1\nX = 2\ndef C(a=X): return a\n"),
        ("from tools import *\ndef C(): return 1\n", "def C(): return 1\nfrom tools import *\n"),
        ("C = len('a')\ndef len(x): return 5\n", "def len(x): return 5\nC = len('a')\n"),
        (
            "C = []\ndef add(f):\n    C.append(f)\n    return f\nA\nB\n",
            "C = []\ndef add(f):\n    C.append(f)\n    return f\nB\nA\n",
        ),
        ("C = []\nC.append(1)\nC.append(2)\n", "C = []\nC.append(2)\nC.append(1)\n"),
        ("class C:\n    a: int = 1\n    b: int = 2\n", "class C:\n    b: int = 2\n    a: int = 1\n"),
    ],
)
def test_moves_that_change_what_is_found_count(edit: Edit, code: str, moved: str) -> None:
    for old, new in (("A\n", "@add\ndef first(): return 1\n"), ("B\n", "@add\ndef second(): return 2\n")):
        code, moved = (
            code.replace(f"return f\n{old}", f"return f\n{new}"),
            moved.replace(f"return f\n{old}", f"return f\n{new}"),
        )
        code, moved = code.replace(f"\n{old}", f"\n{new}"), moved.replace(f"\n{old}", f"\n{new}")
    files = {"app.py": app(retrieve="return C", before=code), "tools.py": "def C(): return 3\n"}
    assert edit(files, code, moved) >= RETRIEVE


def test_the_order_in_which_modules_register_counts(edit: Edit) -> None:
    files = {
        "app.py": app(
            retrieve="return [f() for f in registry.ALL]", before="import registry\nimport one\nimport two\n"
        ),
        "registry.py": "ALL = []\ndef add(f):\n    ALL.append(f)\n    return f\n",
        "one.py": "from registry import add\n@add\ndef f(): return 1\n",
        "two.py": "from registry import add\n@add\ndef f(): return 2\n",
    }
    assert edit(files, "import one\nimport two\n", "import two\nimport one\n") >= RETRIEVE


@pytest.mark.parametrize(
    "methods",
    [
        "    def retrieve(*a): return a[0].helper()\n",
        "    def retrieve(*a, **k):\n        self = a[0]\n        return self.helper()\n",
        "    def retrieve(this, i, d): return this.helper()\n",
        "    async def retrieve(self, i, d): return await self.helper()\n",
        "    def retrieve(self, i, d):\n        def inner(): return self.helper()\n        return inner()\n",
        "    def retrieve(self, i, d):\n        class C:\n            me = self\n        return C.me.helper()\n",
        "    def retrieve(self, i, d): return [s.helper() for s in [self]]\n",
        "    def retrieve(self, i, d):\n        match self:\n            case Rag() as s: return s.helper()\n",
        "    def retrieve(self, i, d):\n        global me\n        me = self\n        return me.helper()\n",
        "    def retrieve(self, i, d): return (yield self)\n",
        "    def retrieve(self, i, d): raise ValueError(self)\n",
        "    def retrieve(self, i, d): return (lambda *s: s[0].helper())(self)\n",
        "    def retrieve(self, i, d, *, me=None):\n        me = me or self\n        return me.helper()\n",
        "    def retrieve(self, i, d): return super().__getattribute__('helper')()\n",
        "    def retrieve(self, i, d): return super(Rag, self).__getattribute__('helper')()\n",
        "    @classmethod\n    def new(c): return c()\n    def retrieve(self, i, d): return self.new().helper()\n",
        "    @staticmethod\n    def make(): return Rag()\n    def retrieve(self, i, d): return self.make().helper()\n",
        "    def retrieve(self, i, d): return self.__getattribute__('helper')()\n",
        "    def retrieve(self, i, d): return self.g()()\n    def g(s): return object.__getattribute__(s, 'helper')\n",
        "    def retrieve(self, i, d): return self._get()()\n    _get = lambda self: self.helper\n",
        "    def retrieve(self, i, d): return self.x.helper()\n    def __init__(self): self.x = self\n",
        "    def retrieve(self, i, d): return self.f()\n    def __init__(self): self.f = self.helper\n",
        "    def retrieve(self, i, d): return self.f()\n    def __init__(self): self.f = lambda: self.helper()\n",
        "    def retrieve(self, i, d): return self.f()\n    def __init__(self): setattr(self, 'f', self.helper)\n",
        "    def retrieve(self, i, d): return self.f()\n    def __init__(self): self.__dict__['f'] = self.helper\n",
        "    def retrieve(self, i, d): return self['x']\n    def __getitem__(self, n): return self.helper()\n",
        "    def retrieve(self, i, d): return self(1)\n    def __call__(self, n): return self.helper()\n",
        "    def retrieve(self, i, d): return len(self)\n    def __len__(self): return self.helper()\n",
        "    def retrieve(self, i, d): return f'{self}'\n    def __str__(self): return self.helper()\n",
        "    def retrieve(self, i, d):\n        with self: pass\n    def __enter__(self): return self.helper()\n",
        "    def retrieve(self, i, d): return self.anything\n    def __getattr__(self, n): return self.helper()\n",
        "    def retrieve(self, i, d): return self._Rag__x()\n    def __x(self): return self.helper()\n",
        "    def retrieve(self, i, d): return self.__x()\n    def __x(self): return self.helper()\n",
    ],
)
def test_self_is_not_lost(edit: Edit, methods: str) -> None:
    code = f"class Rag:\n{methods}    def generate(self, i, c): return 2\n    def helper(self): return 'h'\n"
    assert "retrieve" in edit(code, "'h'", "'i'")


@pytest.mark.parametrize(
    "body",
    [
        "import tools\n        t = tools\n        return t.f()",
        "import tools\n        return (lambda m: m.f())(tools)",
        "import tools\n        return vars(tools)['f']()",
        "import tools\n        self.t = tools\n        return self.t.f()",
        "global tools\n        import tools\n        return other()",
        "global f\n        from tools import f\n        return third()",
        "import importlib as i\n        load = i.import_module\n        return load('tools').f()",
        "import importlib as i\n        j = i\n        return j.import_module('tools').f()",
        "load = __import__\n        return load('tools').f()",
        "import builtins\n        b = builtins\n        return b.__import__('tools').f()",
        "return __import__('pkg', fromlist=['inner']).inner.f()",
        "import importlib\n        return importlib.import_module('.inner', 'pkg').f()",
        "import importlib\n        return getattr(importlib, 'import_module')('tools').f()",
        "import importlib\n        return getattr(importlib, input)('tools').f()",
        "return dispatch['x']()",
        "import sys\n        s = sys\n        return s.modules['tools'].f()",
        "from sys import modules\n        return modules['tools'].f()",
        "import pydoc\n        return pydoc.locate('tools.f')()",
        "import tools.sub as s\n        return s.f()",
    ],
)
def test_a_module_is_not_lost(edit: Edit, body: str) -> None:
    before = "def other(): return tools.f()\ndef third(): return f()\n"
    before += "dispatch = {'x': lambda: __import__('tools').f()}\n"
    inner = "def f(): return 'f'\n"
    files = {
        "app.py": app(retrieve=body, before=before),
        "tools/__init__.py": inner,
        "tools/sub.py": inner,
        "pkg/__init__.py": "",
        "pkg/inner.py": inner,
    }
    file = "pkg/inner.py" if "pkg" in body else "tools/sub.py" if "sub" in body else "tools/__init__.py"
    assert "retrieve" in edit(files, "'f'", "'g'", file)


def test_asking_whether_a_part_is_there_does_not_pass_it_on(edit: Edit) -> None:
    more = """
    def __init__(self): self.part = None
    def _load(self):
        if self.part is None:
            self.part = Part()
"""
    code = "class Part:\n    def used(self): return 'u'\n    def unused(self): return 'n'\n"
    files = app(retrieve="self._load(); return self.part.used()", before=code, after=more)
    assert edit(files, "'u'", "'v'") == RETRIEVE
    assert edit(files, "'n'", "'o'") == NONE
    assert edit(files.replace("is None", "== None"), "'n'", "'o'") == RETRIEVE


def test_state_left_in_a_class_or_module_by_another_stage_counts(edit: Edit) -> None:
    files = app("STATE['x'] = 'r'", "return STATE", "STATE = {}\n")
    assert edit(files, "'r'", "'s'") == BOTH
    files = app("Box.x = 'r'", "return Box.x", "class Box: x = 0\n")
    assert edit(files, "'r'", "'s'") == BOTH
    files = app("tools.x = 'r'", "return tools.x", "import tools\n")
    assert edit({"app.py": files, "tools.py": "x = 1\n"}, "'r'", "'s'") == BOTH
    assert edit(app("x = {}; x['y'] = 'r'", "return STATE", "STATE = {}\n"), "'r'", "'s'") == RETRIEVE
    assert edit(app("return 1", "return STATE", "STATE = {}\n"), "return STATE", "return 5") == GENERATE
