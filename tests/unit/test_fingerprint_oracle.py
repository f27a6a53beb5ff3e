"""Fingerprints against what really runs: made-up projects are executed, and whatever changes the result of a stage
must change its fingerprint.

Every definition of such a project contributes a token of its own to the result of those who call it, by one of many
ways in which Python code can reach other code. A token that shows in the result of a stage has been reached; so an
edit of that token must change the stage's fingerprint.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_fingerprint import Project, changed

#: Ways to define something: code, and how it is called. NAME is its name, TOKEN its own set of tokens, CALLS the
#: tokens of those it calls, CALL how the thing that REF stands for is called.
WAYS = {
    "function": ("def NAME(): return TOKEN | CALLS", "REF()"),
    "lambda": ("NAME = lambda: TOKEN | CALLS", "REF()"),
    "method": ("class NAME:\n    def run(self): return TOKEN | CALLS", "REF().run()"),
    "static method": ("class NAME:\n    @staticmethod\n    def run(): return TOKEN | CALLS", "REF.run()"),
    "class method": (
        "class NAME:\n    K = TOKEN\n    @classmethod\n    def run(cls): return cls.K | CALLS",
        "REF.run()",
    ),
    "callable": ("class NAME:\n    def __call__(self): return TOKEN | CALLS", "REF()()"),
    "inherited": (
        "class Base_NAME:\n    def run(self): return TOKEN | CALLS\nclass NAME(Base_NAME): pass",
        "REF().run()",
    ),
    "hook": (
        "class Base_NAME:\n    def run(self): return self.hook()\n"
        "class NAME(Base_NAME):\n    def hook(self): return TOKEN | CALLS",
        "REF().run()",
    ),
    "super": (
        "class Base_NAME:\n    def run(self): return TOKEN\n"
        "class NAME(Base_NAME):\n    def run(self): return super().run() | CALLS",
        "REF().run()",
    ),
    "table": ("def f_NAME(): return TOKEN | CALLS\nNAME = {'k': f_NAME}", "REF['k']()"),
    "registry": (
        "NAME = {}\ndef register_NAME(key):\n    def decorator(f):\n        NAME[key] = f\n        return f\n"
        "    return decorator\n@register_NAME('k')\ndef f_NAME(): return TOKEN | CALLS",
        "REF['k']()",
    ),
    "put by a call": (
        "NAME = {}\ndef put_NAME(f):\n    NAME['k'] = f\n    return f\ndef f_NAME(): return TOKEN | CALLS\n"
        "other_NAME = put_NAME(f_NAME)",
        "REF['k']()",
    ),
    "append": ("NAME = []\ndef f_NAME(): return TOKEN | CALLS\nNAME.append(f_NAME)", "REF[0]()"),
    "subclasses": (
        "class NAME:\n    ALL = []\n    def __init_subclass__(cls): NAME.ALL.append(cls)\n"
        "class Sub_NAME(NAME):\n    def run(self): return TOKEN | CALLS",
        "REF.ALL[0]().run()",
    ),
    "asked subclasses": (
        "class NAME: pass\nclass Sub_NAME(NAME):\n    def run(self): return TOKEN | CALLS",
        "REF.__subclasses__()[0]().run()",
    ),
    "closure": ("def NAME():\n    def inner(): return TOKEN | CALLS\n    return inner", "REF()()"),
    "generator": ("def NAME():\n    yield TOKEN | CALLS", "next(REF())"),
    "property": ("class NAME:\n    @property\n    def value(self): return TOKEN | CALLS", "REF().value"),
    "partial": (
        "import functools\ndef f_NAME(x): return x | CALLS\nNAME = functools.partial(f_NAME, TOKEN)",
        "REF()",
    ),
    "named": ("class NAME:\n    def run(self): return TOKEN | CALLS", "getattr(REF(), 'run')()"),
    "made-up name": ("class NAME:\n    def run(self): return TOKEN | CALLS", "getattr(REF(), 'ru' + 'n')()"),
    "constant": ("K_NAME = TOKEN\ndef NAME(): return K_NAME | CALLS", "REF()"),
    "late global": (
        "def set_NAME():\n    global G_NAME\n    G_NAME = TOKEN\nset_NAME()\ndef NAME(): return G_NAME | CALLS",
        "REF()",
    ),
    "class attribute": ("class NAME:\n    K = TOKEN", "REF.K"),
    "default": ("def NAME(x=TOKEN): return x | CALLS", "REF()"),
    "factory": (
        "import dataclasses\n@dataclasses.dataclass\nclass NAME:\n"
        "    x: frozenset = dataclasses.field(default_factory=lambda: TOKEN | CALLS)",
        "REF().x",
    ),
    "wrapper": (
        "def wrap_NAME(f):\n    def inner(): return f() | TOKEN\n    return inner\n"
        "@wrap_NAME\ndef NAME(): return frozenset() | CALLS",
        "REF()",
    ),
    "context manager": (
        "import contextlib\n@contextlib.contextmanager\ndef manage_NAME(): yield TOKEN\n"
        "def NAME():\n    with manage_NAME() as found: return found | CALLS",
        "REF()",
    ),
    "metaclass": (
        "class M_NAME(type):\n    def run(cls): return TOKEN | CALLS\nclass NAME(metaclass=M_NAME): pass",
        "REF.run()",
    ),
    "descriptor": (
        "class D_NAME:\n    def __get__(self, o, t): return TOKEN | CALLS\nclass NAME:\n    x = D_NAME()",
        "REF().x",
    ),
    "any attribute": ("class NAME:\n    def __getattr__(self, n): return TOKEN | CALLS", "REF().anything"),
    "operator": ("class NAME:\n    def __getitem__(self, i): return TOKEN | CALLS", "REF()[0]"),
    "evaluated": ("def f_NAME(): return TOKEN | CALLS\ndef NAME(): return eval('f_' + 'NAME')()", "REF()"),
    "globals": ("def f_NAME(): return TOKEN | CALLS\ndef NAME(): return globals()['f_' + 'NAME']()", "REF()"),
    "dispatch": (
        "import functools\n@functools.singledispatch\ndef NAME(x=0): return frozenset()\n"
        "@NAME.register(int)\ndef _(x): return TOKEN | CALLS",
        "REF(0)",
    ),
    "enumeration": (
        "import enum\nclass NAME(enum.Enum):\n    A = 1\n    def run(self): return TOKEN | CALLS",
        "REF.A.run()",
    ),
    "held": (
        "def f_NAME(): return TOKEN | CALLS\nclass NAME:\n    def __init__(self): self.f = f_NAME\n"
        "    def run(self): return self.f()",
        "REF().run()",
    ),
    "conditional": (
        "try:\n    import nonsense_NAME\nexcept ImportError:\n    def NAME(): return TOKEN | CALLS",
        "REF()",
    ),
    "replaced": (
        "def NAME(): return frozenset()\ndef f_NAME(): return TOKEN | CALLS\n"
        "import sys\nsetattr(sys.modules[__name__], 'NAME', f_NAME)",
        "REF()",
    ),
    "patched class": (
        "class NAME:\n    pass\ndef f_NAME(self): return TOKEN | CALLS\nNAME.run = f_NAME",
        "REF().run()",
    ),
    "loop": (
        "NAME = {}\ndef f_NAME(): return TOKEN | CALLS\nfor key in 'k':\n    NAME[key] = f_NAME",
        "REF['k']()",
    ),
    "match": (
        "def f_NAME(): return TOKEN | CALLS\ndef NAME(x=1):\n    match x:\n        case 1 if (f := f_NAME): return f()",
        "REF()",
    ),
    "comprehension": (
        "def f_NAME(): return TOKEN | CALLS\ndef NAME(): return [f() for f in [f_NAME]][0]",
        "REF()",
    ),
    "stack": (
        "def f_NAME(): return TOKEN | CALLS\nclass NAME:\n    def __init__(self):\n        self.todo = []\n"
        "        self.todo.append(f_NAME)\n    def run(self): return self.todo.pop()()",
        "REF().run()",
    ),
    "nested class": (
        "class NAME:\n    class Inner:\n        def run(self): return TOKEN | CALLS",
        "REF.Inner().run()",
    ),
    "slot": (
        "class P_NAME:\n    def run(self): return TOKEN | CALLS\nclass NAME:\n    def __init__(self):\n"
        "        self.part = P_NAME()\n    def run(self): return self.part.run()",
        "REF().run()",
    ),
    "lazy": (
        "class P_NAME:\n    def run(self): return TOKEN | CALLS\nclass NAME:\n    part = None\n"
        "    def load(self):\n        if self.part is None: self.part = P_NAME()\n        return self.part\n"
        "    def run(self): return self.load().run()",
        "REF().run()",
    ),
    "mutual": (
        "def NAME(n=1): return g_NAME(n) | CALLS\ndef g_NAME(n): return TOKEN if not n else NAME(n - 1)",
        "REF()",
    ),
    "function attribute": ("def NAME(): return NAME.extra | CALLS\nNAME.extra = TOKEN", "REF()"),
    "star": ("def NAME(*fs, **ks): return TOKEN | CALLS", "(lambda f: f(*[], **{}))(REF)"),
    "sorted": ("def f_NAME(x): return TOKEN | CALLS\ndef NAME(): return list(map(f_NAME, [1]))[0]", "REF()"),
    "copied": (
        "import copy\nclass NAME:\n    def run(self): return TOKEN | CALLS",
        "__import__('copy').copy(REF()).run()",
    ),
    "named tuple": (
        "import typing\nclass NAME(typing.NamedTuple):\n    x: int = 1\n    def run(self): return TOKEN | CALLS",
        "REF().run()",
    ),
    "formatted": (
        "class NAME:\n    @property\n    def x(self):\n        self.found = TOKEN | CALLS\n        return 'x'",
        "(lambda o: ('{0.x}'.format(o), o.found)[1])(REF())",
    ),
    "iterated": ("class NAME:\n    def __iter__(self): yield TOKEN | CALLS", "[*REF()][0]"),
    "with": (
        "class NAME:\n    def __enter__(self): return TOKEN | CALLS\n    def __exit__(self, *a): pass\n"
        "def run_NAME(c):\n    with c() as found: return found\n",
        "(lambda c: c().__enter__())(REF)",
    ),
    "awaited": (
        "import asyncio\nasync def f_NAME(): return TOKEN | CALLS\nclass NAME:\n    def run(self):\n"
        "        try: f_NAME().send(None)\n        except StopIteration as done: return done.value",
        "REF().run()",
    ),
    "raised": (
        "class E_NAME(Exception):\n    def run(self): return TOKEN | CALLS\n"
        "def NAME():\n    try: raise E_NAME()\n    except Exception as error: return error.run()",
        "REF()",
    ),
    "added": ("class NAME:\n    def __add__(self, o): return TOKEN | CALLS", "(REF() + 1)"),
    "in a thread": (
        "from concurrent.futures import ThreadPoolExecutor as P_NAME\ndef f_NAME(): return TOKEN | CALLS\n"
        "def NAME():\n    with P_NAME(1) as pool: return pool.submit(f_NAME).result()",
        "REF()",
    ),
    "cached property": (
        "import functools\nclass NAME:\n    @functools.cached_property\n    def x(self): return TOKEN | CALLS",
        "REF().x",
    ),
    "other constructor": (
        "class NAME:\n    @classmethod\n    def make(cls): return cls()\n    def run(self): return TOKEN | CALLS",
        "REF.make().run()",
    ),
    "mixin": (
        "class Mix_NAME:\n    def hook(self): return TOKEN | CALLS\nclass Base_NAME:\n"
        "    def run(self): return self.hook()\nclass NAME(Base_NAME, Mix_NAME): pass",
        "REF().run()",
    ),
    "partial method": (
        "import functools\nclass NAME:\n    def f(self, x): return x | TOKEN | CALLS\n"
        "    run = functools.partialmethod(f, frozenset())",
        "REF().run()",
    ),
    "method dispatch": (
        "import functools\nclass NAME:\n    @functools.singledispatchmethod\n    def run(self, x): return frozenset()\n"
        "    @run.register\n    def _(self, x: int): return TOKEN | CALLS",
        "REF().run(1)",
    ),
    "named descriptor": (
        "class D_NAME:\n    def __set_name__(self, owner, name): owner.extra = TOKEN\n"
        "class NAME:\n    x = D_NAME()",
        "REF.extra",
    ),
    "class as decorator": (
        "class D_NAME:\n    def __init__(self, f): self.f = f\n    def __call__(self): return self.f() | TOKEN\n"
        "@D_NAME\ndef NAME(): return frozenset() | CALLS",
        "REF()",
    ),
    "chosen": ("def f_NAME(): return TOKEN | CALLS\nNAME = f_NAME if str(1) else None", "REF()"),
    "walrus": ("print if (NAME := (lambda: TOKEN | CALLS)) else None", "REF()"),
    "made class": ("NAME = type('NAME', (), {'run': lambda self: TOKEN | CALLS})", "REF().run()"),
    "set on a class": (
        "class NAME: pass\nfor key in ['run']:\n    setattr(NAME, key, lambda self: TOKEN | CALLS)",
        "REF().run()",
    ),
    "set on an instance": (
        "class NAME:\n    def __init__(self): setattr(self, 'ru' + 'n', lambda: TOKEN | CALLS)",
        "REF().run()",
    ),
    "sent": (
        "def g_NAME():\n    x = yield\n    yield x | TOKEN | CALLS\n"
        "def NAME():\n    g = g_NAME()\n    next(g)\n    return g.send(frozenset())",
        "REF()",
    ),
    "setter": (
        "class NAME:\n    @property\n    def x(self): return self._x\n    @x.setter\n"
        "    def x(self, v): self._x = v | TOKEN | CALLS\n    def run(self):\n        self.x = frozenset()\n"
        "        return self.x",
        "REF().run()",
    ),
    "metaclass registry": (
        "class M_NAME(type):\n    ALL = []\n    def __new__(m, *a):\n        c = super().__new__(m, *a)\n"
        "        m.ALL.append(c)\n        return c\nclass Sub_NAME(metaclass=M_NAME):\n"
        "    def run(self): return TOKEN | CALLS\nNAME = M_NAME",
        "REF.ALL[0]().run()",
    ),
    "subscripted class": ("class NAME:\n    def __class_getitem__(cls, i): return TOKEN | CALLS", "REF[0]"),
    "filled by a function": (
        "NAME = {}\ndef f_NAME(): return TOKEN | CALLS\ndef fill_NAME(t): t['k'] = f_NAME\no_NAME = fill_NAME(NAME)",
        "REF['k']()",
    ),
    "kept by a constructor": (
        "def f_NAME(): return TOKEN | CALLS\nclass NAME:\n    ALL = []\n    def __init__(self, f): self.ALL.append(f)\n"
        "one_NAME = NAME(f_NAME)",
        "REF.ALL[0]()",
    ),
    "shared state": (
        "class S_NAME: pass\nNAME = S_NAME()\ndef f_NAME(): return TOKEN | CALLS\nNAME.run = f_NAME",
        "REF.run()",
    ),
    "default of a function": ("def f_NAME(): return TOKEN | CALLS\ndef NAME(f=f_NAME): return f()", "REF()"),
    "keyword default": ("def f_NAME(): return TOKEN | CALLS\ndef NAME(*, f=f_NAME): return f()", "REF()"),
    "recursive data": ("NAME = [lambda: TOKEN | CALLS]\nNAME.append(NAME)", "REF[1][0]()"),
    "wrapped twice": (
        "import functools\ndef w_NAME(g):\n    def outer(f):\n        @functools.wraps(f)\n"
        "        def inner(): return f() | g()\n        return inner\n    return outer\n"
        "def f_NAME(): return TOKEN | CALLS\n@w_NAME(f_NAME)\ndef NAME(): return frozenset()",
        "REF()",
    ),
    "in a string": (
        "def f_NAME(): return TOKEN | CALLS\ndef NAME(): return eval(f'f_{\"NAME\"}()')",
        "REF()",
    ),
    "reduced": (
        "class NAME:\n    def __reduce__(self): return (f_NAME, ())\ndef f_NAME(): return TOKEN | CALLS",
        "__import__('copy').copy(REF())",
    ),
}

#: Ways to refer to NAME in MODULE: a statement for the top of the file or of the function, and an expression.
IMPORTS = [
    ("import MODULE", "MODULE.NAME"),
    ("import MODULE as m_NAME", "m_NAME.NAME"),
    ("from MODULE import NAME", "NAME"),
    ("from MODULE import NAME as x_NAME", "x_NAME"),
    ("from MODULE import *", "NAME"),
    ("import MODULE", "getattr(MODULE, 'NAME')"),
    ("import importlib", "importlib.import_module('MODULE').NAME"),
    ("import importlib", "importlib.import_module('MOD' + 'ULE'[3:]).NAME"),
    ("import pkg", "pkg.NAME"),
    ("from pkg import NAME", "NAME"),
]

#: Ways in which a method of the system asks for a definition: what the constructor does, what other methods there
#: are, and the expression in the stage. REF is the definition, CALL(x) how x is called.
USES = [
    ("", "", "CALL(REF)"),
    ("self.a_NAME = REF", "", "CALL(self.a_NAME)"),
    ("self.a_NAME = lambda: CALL(REF)", "", "self.a_NAME()"),
    ("", "    def h_NAME(self): return CALL(REF)\n", "self.h_NAME()"),
    ("", "    def h_NAME(self): return CALL(REF)\n", "getattr(self, 'h_' + 'NAME')()"),
    ("", "    h_NAME = lambda self: CALL(REF)\n", "self.h_NAME()"),
    ("", "    def h_NAME(self): self.v_NAME = CALL(REF)\n", "(self.h_NAME(), self.v_NAME)[1]"),
    (
        "self.table = {'NAME': self.h_NAME}",
        "    def h_NAME(self): return CALL(REF)\n",
        "self.table['NAME']()",
    ),
    ("", "    @property\n    def h_NAME(self): return CALL(REF)\n", "self.h_NAME"),
    ("", "    @classmethod\n    def h_NAME(cls): return CALL(REF)\n", "self.h_NAME()"),
    ("", "    def h_NAME(self): return CALL(REF)\n", "(lambda s: s.h_NAME())(self)"),
    ("", "    def h_NAME(self): return CALL(REF)\n", "Rag.h_NAME(self)"),
    (
        "",
        "    @given_self\n    def h_NAME(self): return frozenset()\n    def asked(self): return CALL(REF)\n",
        "self.h_NAME()",
    ),
]


CALL = re.compile(r"CALL\(([\w.]+)\)")


class Made:
    """A made-up project: its files, with the tokens t0, t1, ... in them."""

    def __init__(self, data: st.DataObject) -> None:
        self._draw = data.draw
        self._modules = ["app", "one", "two", "pkg.deep"]
        self._places: dict[str, str] = {}
        self._ways: dict[str, str] = {}
        self.tops: dict[str, list[str]] = {name: [] for name in self._modules}
        self.bodies: dict[str, list[str]] = {name: [] for name in self._modules}
        count = self._draw(st.integers(2, 7))
        for number in range(count):
            self._define(number)
        stages = {stage: self._stage(stage) for stage in ("retrieve", "generate")}
        self.tokens = [f"t{number}" for number in range(count)]
        self._write_system(stages)

    def _define(self, number: int) -> None:
        name = f"n{number}"
        module = self._draw(st.sampled_from(self._modules[1:]))
        code, call = WAYS[self._draw(st.sampled_from(sorted(WAYS)))]
        calls = "frozenset()"
        if number and self._draw(st.booleans()):
            other = f"n{self._draw(st.integers(0, number - 1))}"
            calls = f"({self._call(other, self._refer(module, other))})"
        code = (
            code.replace("NAME", name).replace("TOKEN", f"frozenset({{'t{number}'}})").replace("CALLS", calls)
        )
        self.bodies[module].append(code)
        self._places[name], self._ways[name] = module, call

    def _call(self, name: str, reference: str) -> str:
        return self._ways[name].replace("REF", reference)

    def _refer(self, module: str, name: str) -> str:
        """An expression for a name in another module; the import goes to the top."""
        place = self._places[name]
        if place == module:
            return name
        statement, expression = self._draw(st.sampled_from(IMPORTS))
        made_up = "'MOD' + 'ULE'[3:]"
        expression = expression.replace(made_up, f"'{place[:2]}' + '{place[2:]}'")
        if "pkg" in (statement + expression) and (place != "pkg.deep" or module == "pkg.deep"):
            statement, expression = IMPORTS[2]
        line = statement.replace("MODULE", place).replace("NAME", name)
        if self._reaches(place, module):
            self.tops[module].append("import importlib")  # a cycle: import it when it is needed
            return f"importlib.import_module('{place}').{name}"
        self.tops[module].append(line)
        return expression.replace("MODULE", place).replace("NAME", name)

    def _reaches(self, start: str, end: str) -> bool:
        """Whether importing a module may import another."""
        order = self._modules[1:]
        return end != "app" and order.index(start) >= order.index(end)

    def _stage(self, stage: str) -> tuple[str, str, str]:
        constructor, methods, results = [], [], ["frozenset()"]
        for name in self._draw(st.lists(st.sampled_from(sorted(self._places)), max_size=3, unique=True)):
            use = self._draw(st.sampled_from(USES))
            if self._ways[name].startswith("REF().") and self._draw(st.booleans()):
                use = ("self.p_NAME = REF()", "", self._ways[name].replace("REF()", "self.p_NAME"))
            reference = self._refer("app", name)
            parts = [
                part.replace("NAME", f"{name}_{stage}").replace("asked", f"asked_{name}_{stage}")
                for part in use
            ]
            filled = [CALL.sub(partial(self._called, name), part).replace("REF", reference) for part in parts]
            if "given_self" in filled[1]:
                filled[1] = filled[1].replace("given_self", f"given_self_{name}_{stage}")
                self.bodies["app"].append(
                    f"def given_self_{name}_{stage}(f):\n"
                    f"    def inner(this): return f(this) | this.asked_{name}_{stage}()\n    return inner"
                )
            constructor += [filled[0]] if filled[0] else []
            methods.append(filled[1])
            results.append(filled[2])
        return "\n        ".join(constructor), "".join(methods), " | ".join(results)

    def _called(self, name: str, match: re.Match[str]) -> str:
        return self._call(name, match.group(1))

    def _write_system(self, stages: dict[str, tuple[str, str, str]]) -> None:
        lines = ["class Base:", "    def __init__(self):", "        self.table = {}"]
        own = ["class Rag(Base):", "    def __init__(self):", "        super().__init__()"]
        for constructor, _, _ in stages.values():
            if constructor:
                own.append("        " + constructor.replace("self.table = {", "self.table |= {"))
        for stage, (_, methods, result) in stages.items():
            inherited = self._draw(st.sampled_from(["here", "above", "both"]))
            (own if inherited == "here" else lines).append(methods)
            code = f"    def {stage}(self, input, x):\n        return {result}"
            (own if inherited == "here" else lines).append(code)
            if inherited == "both":
                own.append(
                    f"    def {stage}(self, input, x):\n        return super().{stage}(input, x) | frozenset()"
                )
        self.bodies["app"].append("\n".join([*lines, *own]))

    def files(self) -> dict[str, str]:
        files = {
            name.replace(".", "/") + ".py": "\n".join(
                [*dict.fromkeys(self.tops[name]), *self.bodies[name], ""]
            )
            for name in self._modules
        }
        return {**files, "pkg/__init__.py": "from .deep import *\n"}


@contextmanager
def imported_from(root: Path) -> Iterator[None]:
    before = set(sys.modules)
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(root))
        for name in set(sys.modules) - before:
            del sys.modules[name]


def result_of(root: Path, stage: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The tokens that a stage gives in a new process, as it were, and the modules imported with the app."""
    with imported_from(root):
        app = importlib.import_module("app")
        modules = tuple(
            sorted(name for name in ("app", "one", "two", "pkg", "pkg.deep") if name in sys.modules)
        )
        return getattr(app.Rag(), stage)(None, None), modules


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(st.data())
def test_what_shows_in_the_result_of_a_stage_is_in_its_fingerprint(data: st.DataObject) -> None:
    made = Made(data)
    files = made.files()
    with TemporaryDirectory() as folder:
        root = Path(folder)
        sys.dont_write_bytecode = True
        project = Project(root)
        project.write(files)
        shown = {}
        for stage in ("retrieve", "generate"):
            shown[stage], modules = result_of(root, stage)
        before = project.identity(imported=modules)
        for token in made.tokens:
            edited = {name: text.replace(f"'{token}'", f"'{token}x'") for name, text in files.items()}
            project.write(edited)
            stages = changed(before, project.identity(imported=modules))
            for stage, tokens in shown.items():
                assert token not in tokens or stage in stages, (token, stage, files)
        project.write(files)


@pytest.mark.parametrize("way", sorted(WAYS))
def test_every_way_works_and_is_followed_alone(tmp_path: Path, way: str) -> None:
    """The way gives the token, an edit of the token changes `retrieve`, and what is next to it stays apart."""
    code, call = WAYS[way]
    code = code.replace("NAME", "n0").replace("TOKEN", "frozenset({'t0'})").replace("CALLS", "frozenset()")
    project = Project(tmp_path)
    system = "from one import n0\nclass Rag:\n    def retrieve(self, i, d): return CALL\n"
    project.write({"one.py": code + "\n", "app.py": system.replace("CALL", call.replace("REF", "n0"))})
    assert result_of(tmp_path, "retrieve")[0] == {"t0"}
    before = project.identity(imported=("app", "one"))
    project.write({"one.py": code.replace("'t0'", "'t1'") + "\n"})
    assert changed(before, project.identity(imported=("app", "one"))) >= {"retrieve"}
