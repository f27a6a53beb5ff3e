"""What counts of classes and instances: method by method where the instance is known, wholly where it is not."""

from __future__ import annotations

import pytest
from test_fingerprint import ALL, BOTH, COUNT, GENERATE, NONE, RETRIEVE, Edit, Project, app, edit, project

__all__ = ["edit", "project"]  # fixtures

# ------------------------------------------------------------------------------------------- the system


@pytest.mark.parametrize(
    "body",
    [
        "return self.helper()",
        "return self.__class__.helper(1)",
        "return type(self).helper(1)",
        "return Rag.helper(self)",
        "return getattr(self, 'helper')()",
        "return getattr(self, 'helper', None)()",
        "return [self.helper for x in input]",
        "return (lambda: self.helper())()",
        "def inner(): return self.helper()\n        return inner()",
        "return map(self.helper, input)",
        "return self.indirect()",
        "return self.prop",
        "return self.alias()",
        "return self.chosen()",
    ],
)
def test_methods_are_reached_through_self(edit: Edit, body: str) -> None:
    more = """
    def helper(self): return 'h'
    def indirect(self): return self.helper()
    @property
    def prop(self): return self.helper()
    alias = helper
    chosen = property(helper)
    def unrelated(self): return 'u'
"""
    files = app(retrieve=body, after=more)
    if "chosen" not in body:
        files = files.replace(
            "    chosen = property(helper)\n", ""
        )  # computed attributes count for every stage
        assert edit(files, "return 'h'", "return 'i'") == RETRIEVE
    else:
        assert edit(files, "return 'h'", "return 'i'") == BOTH
    assert edit(files, "return 'u'", "return 'v'") == NONE
    assert edit(files, "return 2", "return 3") == GENERATE


@pytest.mark.parametrize(
    "body",
    [
        "return use(self)",
        "return self",
        "me = self; return me.generate(1, 2)",
        "return getattr(self, 'help' + input)()",
        "return getattr(self, input)",
        "return vars(self)",
        "return self.__dict__[input]",
        "return self.__class__",
        "return self.__class__.helper(self)",
        "return type(self).helper(self)",
        "return type(self)(1)",
        "return object.__getattribute__(self, input)",
        "x = super(); return x.helper()",
        "return __class__.helper(self)",
        "return [self][0].generate(1, 2)",
        "return use(key=self)",
        "return f'{self}'",
        "return self + 1",
        "return self[input]",
        "with self: return 1",
        "return self.unknown",
        "return input.call(self)",
        "return thirdparty.call(self)",
        "return Rag().helper()",
        "return Rag",
        "def inner(s=self): return s\n        return inner()",
        "setattr(self, input, 1)",
    ],
)
def test_a_system_that_is_passed_on_counts_wholly(edit: Edit, body: str) -> None:
    files = app(
        retrieve=body,
        before="import thirdparty\ndef use(x): pass\n",
        after="    def helper(self): return 'h'\n",
    )
    assert edit(files, "return 'h'", "return 'i'") == RETRIEVE
    assert edit(files, "return 2", "return 3") == BOTH


def test_the_constructor_and_what_it_reaches_count_for_every_stage(edit: Edit) -> None:
    more = "    def __init__(self): self.x = load()\n"
    files = app(before="def load(): return 'l'\n", after=more + "    def count_tokens(self, p): return 1\n")
    assert edit(files, "'l'", "'m'") == ALL


@pytest.mark.parametrize(
    "name", ["__new__", "__post_init__", "__getattr__", "__setattr__", "__del__", "__init_subclass__"]
)
def test_what_python_calls_by_itself_counts_for_every_stage(edit: Edit, name: str) -> None:
    assert edit(app(after=f"    def {name}(self, *a): return 'x'\n"), "'x'", "'y'") == BOTH


def test_static_and_class_methods_are_reached(edit: Edit) -> None:
    more = """
    @staticmethod
    def s(self): return self.generate(1, 2)
    @classmethod
    def c(cls): return cls.d()
    @classmethod
    def d(cls): return 'd'
"""
    files = app(retrieve="return self.c() + self.s(input)", after=more)
    assert edit(files, "'d'", "'e'") == RETRIEVE
    assert edit(files, "return 2", "return 3") == GENERATE


def test_a_property_counts_with_its_setter(edit: Edit) -> None:
    more = """
    @property
    def p(self): return self._p
    @p.setter
    def p(self, value): self._p = value + 'x'
"""
    assert edit(app(retrieve="return self.p", after=more), "value + 'x'", "value + 'y'") == RETRIEVE


def test_class_attributes_count_for_those_that_read_them(edit: Edit) -> None:
    files = app(
        retrieve="return self.A, Rag.C",
        generate="return self.B",
        after="    A = 'a'\n    B = 'b'\n    C = 'c'\n",
    )
    assert edit(files, "'a'", "'x'") == RETRIEVE
    assert edit(files, "'b'", "'x'") == GENERATE
    assert edit(files, "'c'", "'x'") == RETRIEVE


def test_what_a_class_body_computes_counts_for_every_stage(edit: Edit) -> None:
    files = app(before="def make(): return 'm'\n", after="    A = make()\n")
    assert edit(files, "'m'", "'n'") == BOTH


def test_attributes_of_a_dataclass_count_for_every_stage(edit: Edit) -> None:
    files = app(
        before="from dataclasses import dataclass\n@dataclass", after="    a: int = 5\n    b: int = 6\n"
    )
    assert edit(files, "a: int = 5", "a: int = 7") == BOTH
    assert edit(files, "a: int = 5", "a: str = 5") == BOTH
    assert edit(files, "    a: int = 5\n    b: int = 6", "    b: int = 6\n    a: int = 5") == BOTH


def test_what_another_stage_leaves_in_an_attribute_counts(edit: Edit) -> None:
    files = app(retrieve="self.last = input; return 1", generate="return self.last")
    assert edit(files, "self.last = input", "self.last = 'x'") == BOTH
    files = app(retrieve="self.seen.append(input)", generate="return self.seen", after="    seen = []\n")
    assert edit(files, "append(input)", "append(1)") == BOTH
    files = app(retrieve="self.calls += 1", generate="self.calls += 2", after="    calls = 0\n")
    assert edit(files, "calls += 1", "calls += 3") == RETRIEVE


def test_a_lazily_built_index_counts_with_what_builds_it(edit: Edit) -> None:
    more = "    def _load(self): self.index = 'i'\n"
    assert edit(app(retrieve="return self.index", after=more), "'i'", "'j'") == RETRIEVE


# ------------------------------------------------------------------------------------------------- bases


BASES = {
    "app.py": """
from base import Base
class Rag(Base):
    K = 1
    def retrieve(self, input, depth):
        return self.rank(input)
    def rank(self, x):
        return 'own' + super().rank(x)
""",
    "base.py": """
class Root:
    def __init__(self): self.x = 'x'
    def rank(self, x): return 'root'
    def generate(self, input, context): return self.K, self.style()
    def style(self): return 'style'
    def never(self): return 'never'
class Base(Root):
    K = 2
    def rank(self, x): return 'base' + super().rank(x)
""",
}


@pytest.mark.parametrize(
    ("file", "old", "stages"),
    [
        ("app.py", "'own'", RETRIEVE),
        ("base.py", "'base'", RETRIEVE),
        ("base.py", "'root'", RETRIEVE),
        ("base.py", "'style'", GENERATE),
        ("base.py", "'x'", BOTH),
        ("base.py", "'never'", NONE),
        ("app.py", "K = 1", GENERATE),
        ("base.py", "K = 2", NONE),
    ],
)
def test_inherited_methods_are_followed_as_python_would(
    edit: Edit, file: str, old: str, stages: set[str]
) -> None:
    assert edit(BASES, old, old[:-1] + "z" + old[-1] if "'" in old else old + "0", file) == stages


def test_an_overridden_method_does_not_count(edit: Edit) -> None:
    files = {**BASES, "app.py": BASES["app.py"].replace(" + super().rank(x)", "")}
    assert edit(files, "'base'", "'b'", "base.py") == NONE


def test_the_bases_themselves_count(edit: Edit) -> None:
    assert edit(BASES, "class Base(Root)", "class Base(Root, object)", "base.py") == BOTH


def test_diamonds_are_linearised(edit: Edit) -> None:
    code = """
class A:
    def f(self): return 'a'
class B(A):
    pass
class C(A):
    def f(self): return 'c'
class Both(B, C):
    pass
"""
    files = app(retrieve="return self.f()", before=code).replace("Rag:", "Rag(Both):")
    assert edit(files, "'c'", "'d'") == RETRIEVE
    assert edit(files, "'a'", "'d'") == NONE


def test_old_style_parent_calls_do_not_let_the_system_escape(edit: Edit) -> None:
    files = {
        "app.py": app(
            after="    def __init__(self): Base.__init__(self)\n", before="from base import Base\n"
        ).replace("Rag:", "Rag(Base):"),
        "base.py": "class Base:\n    def __init__(self): self.x = 'x'\n    def other(self): return 'o'\n",
    }
    assert edit(files, "'x'", "'y'", "base.py") == BOTH
    assert edit(files, "'o'", "'p'", "base.py") == NONE
    assert edit(files, "return 2", "return 3") == GENERATE


@pytest.mark.parametrize("base", ["thirdparty.Base", "make()", "dict", "mystery.Base[int]"])
def test_helpers_under_a_base_outside_the_project_count_for_every_stage(edit: Edit, base: str) -> None:
    code = "import thirdparty, mystery\ndef make(): return object\n"
    files = app(before=code, after="    def hook(self): return 'h'\n    A = 'a'\n").replace(
        "Rag:", f"Rag({base}):"
    )
    assert edit(files, "'h'", "'i'") == ALL  # the base may have a count_tokens
    assert edit(files, "'a'", "'b'") == ALL
    assert edit(files, "return 2", "return 3") - COUNT == GENERATE


@pytest.mark.parametrize("base", ["object", "abc.ABC", "typing.Generic[T]", "typing.Protocol"])
def test_harmless_bases_change_nothing(edit: Edit, base: str) -> None:
    code = "import abc, typing\nT = typing.TypeVar('T')\n"
    files = app(before=code, after="    def hook(self): return 'h'\n").replace("Rag:", f"Rag({base}):")
    assert edit(files, "'h'", "'i'") == NONE


def test_unknown_decorators_of_the_class_open_it(edit: Edit) -> None:
    files = app(before="import thirdparty\n@thirdparty.wrap\n", after="    def hook(self): return 'h'\n")
    assert edit(files.replace("wrap\n\n", "wrap\n"), "'h'", "'i'") == ALL


def test_an_unknown_decorator_of_a_stage_leaves_the_stages_apart(edit: Edit) -> None:
    files = """
import thirdparty
class Rag:
    @thirdparty.observe("r")
    def retrieve(self, input, depth): return 1
    @thirdparty.observe("g")
    def generate(self, input, context): return 2
    @thirdparty.hook
    def hook(self): return 3
"""
    assert edit(files, "return 1", "return 9") == RETRIEVE
    assert edit(files, '"g"', '"h"') == GENERATE
    assert edit(files, "return 3", "return 9") == BOTH


def test_a_decorator_of_a_stage_counts_with_it(edit: Edit) -> None:
    code = "def timed(f):\n    def inner(*a): return f(*a), 'timed'\n    return inner\n"
    files = code + app().replace("    def retrieve", "    @timed\n    def retrieve")
    assert edit(files, "'timed'", "'t'") == RETRIEVE


# ---------------------------------------------------------------------------------- other instances


PARTS = """
from parts import Retriever, Generator
class Rag:
    def __init__(self):
        self.retriever = Retriever("index")
        self.generator = Generator(model="m")
    def retrieve(self, input, depth):
        return self.retriever.search(input)
    def generate(self, input, context):
        return self.generator.answer(input)
"""
PARTS_FILE = """
LIMIT = 'limit'
class Retriever:
    def __init__(self, path): self.path = 'path'
    def search(self, q): return self._rank(q), LIMIT
    def _rank(self, q): return 'rank'
    def _stale(self): return 'stale'
class LLM:
    def __init__(self): self.key = 'key'
    def complete(self, q): return 'complete'
    def chat(self, q): return 'chat'
class Generator:
    def __init__(self, model):
        self.llm = LLM()
    def answer(self, q): return self.llm.complete('prompt' + q)
"""


@pytest.mark.parametrize(
    ("old", "stages"),
    [
        ("'rank'", RETRIEVE),
        ("'limit'", RETRIEVE),
        ("'prompt'", GENERATE),
        ("'complete'", GENERATE),
        ("'path'", BOTH),
        ("'key'", BOTH),
        ("'stale'", NONE),
        ("'chat'", NONE),
    ],
)
def test_what_the_system_keeps_in_attributes_is_followed_method_by_method(
    edit: Edit, old: str, stages: set[str]
) -> None:
    assert edit({"app.py": PARTS, "parts.py": PARTS_FILE}, old, "'new'", "parts.py") == stages


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return self.retriever.search(input)", "r = self.retriever; return r.search(input)"),
        ("return self.retriever.search(input)", "return use(self.retriever)"),
        ("return self.retriever.search(input)", "return self.retriever(input)"),
        ("return self.retriever.search(input)", "return self.retriever.unknown(input)"),
        ("return self.retriever.search(input)", "return getattr(self.retriever, input)"),
        ("return self.retriever.search(input)", "return self.retriever[input]"),
        ("return self.retriever.search(input)", "self.retriever.x = 1; return self.retriever.search(input)"),
        ("return self.retriever.search(input)", "for self.retriever in input: pass"),
        ("return self.retriever.search(input)", "return self"),
    ],
)
def test_an_attribute_that_is_passed_on_counts_wholly(edit: Edit, old: str, new: str) -> None:
    files = {"app.py": "def use(x): pass\n" + PARTS.replace(old, new), "parts.py": PARTS_FILE}
    expected = NONE if "for self" in new else RETRIEVE
    assert edit(files, "'stale'", "'new'", "parts.py") == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('self.retriever = Retriever("index")', 'r = Retriever("index"); self.retriever = r'),
        ('self.retriever = Retriever("index")', 'self.retriever = Retriever("index") if 1 else None'),
        ('self.retriever = Retriever("index")', 'self.retriever = wrap(Retriever("index"))'),
        ('self.retriever = Retriever("index")', 'self.retriever = self.other = Retriever("index")'),
        ('self.retriever = Retriever("index")', 'self.retriever = Retriever("index"); wrap(self)'),
        ('self.retriever = Retriever("index")', 'self.retriever = Retriever("index"); wrap(self.retriever)'),
        ('self.retriever = Retriever("index")', 'self.retriever = Retriever("index"); Retriever(2)'),
    ],
)
def test_an_instance_made_in_another_way_counts_wholly(edit: Edit, old: str, new: str) -> None:
    files = {"app.py": "def wrap(x): return x\n" + PARTS.replace(old, new), "parts.py": PARTS_FILE}
    assert edit(files, "'stale'", "'new'", "parts.py") == BOTH


def test_an_instance_that_passes_itself_on_counts_wholly(edit: Edit) -> None:
    parts = PARTS_FILE.replace("self.path = 'path'", "register(self)")
    assert edit({"app.py": PARTS, "parts.py": parts}, "'stale'", "'new'", "parts.py") == BOTH


def test_an_instance_with_a_base_outside_the_project_counts_wholly(edit: Edit) -> None:
    parts = "import thirdparty\n" + PARTS_FILE.replace(
        "class Retriever:", "class Retriever(thirdparty.Base):"
    )
    assert edit({"app.py": PARTS, "parts.py": parts}, "'stale'", "'new'", "parts.py") == BOTH


def test_a_class_that_is_referred_to_counts_wholly(edit: Edit) -> None:
    code = "class Index:\n    def search(self): return 's'\n    def never(self): return 'n'\n"
    assert edit(app(retrieve="return Index", before=code), "'n'", "'o'") == RETRIEVE


def test_an_object_made_by_a_function_brings_its_class(edit: Edit) -> None:
    code = "class Index:\n    def search(self): return 's'\ndef make(): return Index()\n"
    files = app(
        before=code,
        retrieve="return self.index.search(input)",
        after="    def __init__(self): self.index = make()\n",
    )
    assert edit(files, "'s'", "'t'") == BOTH


def test_singletons_of_the_module_keep_the_stages_apart(edit: Edit) -> None:
    files = {
        "app.py": app("return R.search(input)", "return G.answer(input)", "from parts import *\n").replace(
            "*", "R, G"
        ),
        "parts.py": PARTS_FILE + "R = Retriever(1)\nG = Generator(2)\n",
    }
    assert edit(files, "'stale'", "'new'", "parts.py") == RETRIEVE
    assert edit(files, "'chat'", "'new'", "parts.py") == GENERATE


def test_ingredients_of_a_class_are_its_methods(project: Project) -> None:
    project.write({"app.py": PARTS, "parts.py": PARTS_FILE})
    found = project.identity().ingredients["generate"]
    assert {"parts:Generator.answer", "parts:LLM.complete", "parts:Retriever.__init__"} <= set(found)
    assert "parts:Retriever.search" not in found


# ------------------------------------------------------------------- code that is given self unseen


@pytest.mark.parametrize(
    ("before", "decorator", "after"),
    [
        (
            "def deco(f):\n    def inner(self, *a): return f(self, *a), self.helper()\n    return inner\n",
            "@deco",
            "",
        ),
        ("def deco(f):\n    def inner(*a): return f(*a), a[0].helper()\n    return inner\n", "@deco", ""),
        (
            "def deco(f):\n    def inner(*a): return use(a[0])\n    return inner\ndef use(x): x.helper()\n",
            "@deco",
            "",
        ),
        ("def deco(f):\n    def inner(o, *a): return getattr(o, a[0])()\n    return inner\n", "@deco", ""),
        ("def deco(f):\n    def inner(o, *a): return o.__dict__\n    return inner\n", "@deco", ""),
        (
            "class deco:\n    def __init__(self, f): pass\n    def __get__(self, o, t): return o.helper\n",
            "@deco",
            "",
        ),
        ("import thirdparty\n", "@thirdparty.deco", ""),
        (
            "import operator\ndef deco(f):\n    return lambda o, *a: operator.methodcaller(a[0])(o)\n",
            "@deco",
            "",
        ),
    ],
)
def test_a_decorator_may_ask_anything_of_the_instance_that_its_wrapper_is_given(
    edit: Edit, before: str, decorator: str, after: str
) -> None:
    files = before + app(after=f"    def helper(self): return 'h'\n{after}").replace(
        "    def retrieve", f"    {decorator}\n    def retrieve"
    )
    assert "retrieve" in edit(files, "'h'", "'i'")


@pytest.mark.parametrize(
    "attribute",
    [
        "retrieve = lambda self, i, d: self.helper()",
        "retrieve = impl",
        "retrieve = staticmethod(impl)",
        "retrieve = property(lambda self: self.helper)",
        "retrieve = property(impl)",
        "retrieve = Descriptor()",
        "if True:\n        def retrieve(self, i, d): return self.helper()",
        "try:\n        def retrieve(self, i, d): return self.helper()\n    except ValueError: pass",
        "@cached(lambda self: self.helper())\n    def retrieve(self, i, d): return 1",
        "def retrieve(self, i, d): return run(**locals())",
        "def retrieve(self, i, d): return eval('self.helper()')",
        "def retrieve(self, i, d): return (lambda: vars())()",
        "retrieve = table['x']",
        "retrieve = other.impl",
    ],
)
def test_methods_that_are_no_plain_definitions_reach_helpers_too(edit: Edit, attribute: str) -> None:
    code = """
from functools import lru_cache as cached
import other
def impl(self, i=0, d=0): return self.helper()
table = {"x": lambda self, i, d: self.helper()}
class Descriptor:
    def __get__(self, instance, owner): return instance.helper
class Rag:
    ATTRIBUTE
    def generate(self, input, context): return 2
    def helper(self): return 'h'
"""
    files = {
        "app.py": code.replace("ATTRIBUTE", attribute),
        "other.py": "def impl(s, i, d): return s.helper()\n",
    }
    assert "retrieve" in edit(files, "'h'", "'i'")


def test_a_method_put_into_the_class_by_a_function_may_call_anything(edit: Edit) -> None:
    code = "def fast(self, i, d): return self.helper()\ndef install(): Rag.retrieve = fast\n"
    files = app(before=code, after="    def helper(self): return 'h'\n    def __init__(self): install()\n")
    assert edit(files, "'h'", "'i'") == BOTH


def test_a_decorated_stage_stays_apart_from_the_other(edit: Edit) -> None:
    code = """
import functools, logging
log = logging.getLogger(__name__)
def timed(label):
    def outer(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            log.info("%s %s", label, f.__name__)
            return f(*args, **kwargs)
        return inner
    return outer
"""
    files = code + app(after="    def helper(self): return 'h'\n").replace(
        "    def retrieve", "    @timed('r')\n    def retrieve"
    ).replace("    def generate", "    @timed('g')\n    def generate")
    assert edit(files, "return 1", "return 9") == RETRIEVE
    assert edit(files, "return 2", "return 9") == GENERATE
    assert edit(files, "'h'", "'i'") == NONE
    assert edit(files, '"%s %s"', '"%s"') == BOTH
