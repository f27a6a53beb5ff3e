"""Roundabout ways from a stage to the code that decides what it gives, through several modules.

Every project is executed before and after an edit that changes what `retrieve` gives, so it must change the fingerprint
of `retrieve` too.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest
from test_fingerprint import RETRIEVE, Project, changed
from test_fingerprint_oracle import imported_from

#: Files of a project, each after its name, whose `lib.give()` gives something that depends on the first 'old' in it.
WAYS = {
    "a registry filled by a decorator in a module imported for it": """
        --- lib.py
        from registry import KNOWN
        import plugins
        def give(): return KNOWN['a']()
        --- registry.py
        KNOWN = {}
        def register(name):
            def keep(f):
                KNOWN[name] = f
                return f
            return keep
        --- plugins.py
        from registry import register
        @register('a')
        def one(): return 'old'
        """,
    "a registry filled by a class decorator": """
        --- lib.py
        from registry import KNOWN
        import plugins
        def give(): return KNOWN[0]().run()
        --- registry.py
        KNOWN = []
        def register(cls):
            KNOWN.append(cls)
            return cls
        --- plugins.py
        from registry import register
        @register
        class One:
            def run(self): return 'old'
        """,
    "a registry in a class": """
        --- lib.py
        from registry import Registry
        import plugins
        def give(): return Registry.get('a')()
        --- registry.py
        class Registry:
            known = {}
            @classmethod
            def add(cls, name):
                def keep(f):
                    cls.known[name] = f
                    return f
                return keep
            @classmethod
            def get(cls, name): return cls.known[name]
        --- plugins.py
        from registry import Registry
        @Registry.add('a')
        def one(): return 'old'
        """,
    "a registry in an instance": """
        --- lib.py
        from registry import TOOLS
        import plugins
        def give(): return TOOLS.get('a')()
        --- registry.py
        class Tools:
            def __init__(self): self.known = {}
            def add(self, f):
                self.known[f.__name__] = f
                return f
            def get(self, n): return self.known[n]
        TOOLS = Tools()
        --- plugins.py
        from registry import TOOLS
        @TOOLS.add
        def a(): return 'old'
        """,
    "__init_subclass__ in another module": """
        --- lib.py
        from base import Base
        import parts
        def give(): return Base.kinds['Part']().run()
        --- base.py
        class Base:
            kinds = {}
            def __init_subclass__(cls, **more):
                Base.kinds[cls.__name__] = cls
        --- parts.py
        from base import Base
        class Part(Base):
            def run(self): return 'old'
        """,
    "a metaclass in another module": """
        --- lib.py
        from base import Meta
        import parts
        def give(): return Meta.kinds[-1]().run()
        --- base.py
        class Meta(type):
            kinds = []
            def __init__(cls, *more):
                Meta.kinds.append(cls)
        --- parts.py
        from base import Meta
        class Part(metaclass=Meta):
            def run(self): return 'old'
        """,
    "a metaclass that is inherited": """
        --- lib.py
        from parts import Part
        def give(): return Part.extra
        --- base.py
        class Meta(type):
            def __new__(m, n, b, d):
                d['extra'] = 'old'
                return super().__new__(m, n, b, d)
        class Base(metaclass=Meta): pass
        --- parts.py
        from base import Base
        class Part(Base): pass
        """,
    "a descriptor that is set by name": """
        --- lib.py
        from parts import Part
        def give(): return Part().value
        --- parts.py
        class Field:
            def __set_name__(self, owner, name): self.name = name
            def __get__(self, o, t): return self.name + 'old'
        class Part:
            value = Field()
        """,
    "__getattr__ of a module": """
        --- lib.py
        import lazy
        def give(): return lazy.anything
        --- lazy.py
        def __getattr__(name): return 'old'
        """,
    "__getattr__ of a module that imports": """
        --- lib.py
        import lazy
        def give(): return lazy.word()
        --- lazy/__init__.py
        import importlib
        _WHERE = {'word': 'deep'}
        def __getattr__(name):
            return getattr(importlib.import_module('.' + _WHERE[name], __name__), name)
        --- lazy/deep.py
        def word(): return 'old'
        """,
    "__getattr__ of a module from which a name is imported": """
        --- lib.py
        from lazy import word
        def give(): return word
        --- lazy.py
        def __getattr__(name):
            if name == '__path__': raise AttributeError
            return 'old'
        """,
    "__class__ of a module": """
        --- lib.py
        import strange
        def give(): return strange.word
        --- strange.py
        import sys, types
        class Strange(types.ModuleType):
            @property
            def word(self): return 'old'
        sys.modules[__name__].__class__ = Strange
        """,
    "a module that puts another in its place": """
        --- lib.py
        import strange
        def give(): return strange.word
        --- strange.py
        import sys
        class Strange:
            word = 'old'
        sys.modules[__name__] = Strange()
        """,
    "a conditional import": """
        --- lib.py
        try:
            from fast_that_is_not_there import word
        except ImportError:
            from slow import word
        def give(): return word()
        --- slow.py
        def word(): return 'old'
        """,
    "an import that depends on a constant": """
        --- lib.py
        from flags import FAST
        if FAST:
            from fast import word
        else:
            from slow import word
        def give(): return word()
        --- flags.py
        FAST = 'old' == 'old'
        --- fast.py
        def word(): return 'fast'
        --- slow.py
        def word(): return 'slow'
        """,
    "a star import from a package": """
        --- lib.py
        from pkg import *
        def give(): return word()
        --- pkg/__init__.py
        from .one import *
        from .two import word
        --- pkg/one.py
        def word(): return 'hidden'
        --- pkg/two.py
        def word(): return 'old'
        """,
    "a star import with __all__": """
        --- lib.py
        from pkg import *
        def word(): return 'own'
        from pkg import *
        def give(): return word()
        --- pkg/__init__.py
        from .one import word, other
        __all__ = ['word' if 'old' == 'old' else 'other']
        --- pkg/one.py
        def word(): return 'one'
        def other(): return 'two'
        """,
    "a relative import": """
        --- lib.py
        from pkg.deep.one import give
        --- pkg/__init__.py
        --- pkg/deep/__init__.py
        --- pkg/deep/one.py
        from ..two import word
        from . import three
        def give(): return word() + three.word()
        --- pkg/two.py
        def word(): return 'two'
        --- pkg/deep/three.py
        def word(): return 'old'
        """,
    "a namespace package": """
        --- lib.py
        from space.inner import part
        def give(): return part.word()
        --- space/inner/part.py
        def word(): return 'old'
        """,
    "code in the __init__ of a package that is passed": """
        --- lib.py
        import pkg.deep
        import shared
        def give(): return shared.KEPT
        --- shared.py
        KEPT = 'x'
        --- pkg/__init__.py
        import shared
        shared.KEPT = 'old'
        --- pkg/deep.py
        """,
    "functools.partial": """
        --- lib.py
        from functools import partial
        from parts import join
        WORD = partial(join, end='!')
        def give(): return WORD('a')
        --- parts.py
        def join(text, end): return text + end + 'old'
        """,
    "a table of functions in a class": """
        --- lib.py
        from parts import Steps
        def give(): return Steps().run('a')
        --- parts.py
        def one(): return 'old'
        class Steps:
            table = {'a': one}
            def run(self, key): return self.table[key]()
        """,
    "a table of methods by name": """
        --- lib.py
        from parts import Steps
        def give(): return Steps().run('a')
        --- parts.py
        class Steps:
            def run(self, key): return getattr(self, f'do_{key}')()
            def do_a(self): return 'old'
        """,
    "a patch in the __init__ of a package": """
        --- lib.py
        import pkg
        from target import Target
        def give(): return Target().run()
        --- target.py
        class Target:
            def run(self): return 'x'
        --- pkg/__init__.py
        import target
        target.Target.run = lambda self: 'old'
        """,
    "a patch of a builtin": """
        --- lib.py
        import patch
        def give(): return len('abc')
        --- patch.py
        import builtins
        kept = builtins.len
        builtins.len = lambda x: kept(x) + kept('old')
        """,
    "a patch of the standard library": """
        --- lib.py
        import patch, json
        def give(): return json.dumps({'a': 1})
        --- patch.py
        import json
        real = json.dumps
        json.dumps = lambda x: real(x) + 'old'
        """,
    "a patch by a function called on import": """
        --- lib.py
        import patch
        from target import word
        import target
        def give(): return target.word()
        --- target.py
        def word(): return 'x'
        --- patch.py
        import target
        def apply():
            target.word = lambda: 'old'
        apply()
        """,
    "defaults of a dataclass": """
        --- lib.py
        from parts import Settings
        def give(): return Settings().word
        --- parts.py
        from dataclasses import dataclass, field
        def made(): return 'old'
        @dataclass
        class Settings:
            word: str = field(default_factory=made)
        """,
    "a dataclass that is inherited": """
        --- lib.py
        from parts import Settings
        def give(): return repr(Settings())
        --- parts.py
        from dataclasses import dataclass
        @dataclass
        class Base:
            word: str = 'old'
        @dataclass
        class Settings(Base):
            other: int = 1
        """,
    "the order of fields": """
        --- lib.py
        from parts import Settings
        def give(): return Settings('a', 'b').one
        --- parts.py
        import dataclasses
        Settings = dataclasses.make_dataclass('S', ['one', 'two'] if 'old' == 'old' else ['two', 'one'])
        """,
    "type hints that are read": """
        --- lib.py
        import typing
        from parts import f
        def give(): return str(sorted(typing.get_type_hints(f)))
        --- parts.py
        def f(old: 'int'): return 1
        # 'old'
        """,
    "a forward reference": """
        --- lib.py
        import typing
        from parts import f
        def give(): return typing.get_type_hints(f)['x'].word
        --- parts.py
        def f(x: 'Later'): return 1
        class Later:
            word = 'old'
        """,
    "annotations that make something": """
        --- lib.py
        from parts import Model
        def give(): return Model.made
        --- parts.py
        class Meta(type):
            def __init__(c, n, b, d): c.made = str(d['__annotations__'])
        class Model(metaclass=Meta):
            x: 'old' = 1
        """,
    "found by pkgutil": """
        --- lib.py
        import importlib, pkgutil
        import plugins
        def give():
            return [importlib.import_module(f'plugins.{m.name}').word() for m in pkgutil.iter_modules(plugins.__path__)]
        --- plugins/__init__.py
        --- plugins/one.py
        def word(): return 'old'
        """,
    "a closure over another module": """
        --- lib.py
        from parts import make
        WORD = make('a')
        def give(): return WORD()
        --- parts.py
        from deep import end
        def make(text):
            def inner(): return text + end()
            return inner
        --- deep.py
        def end(): return 'old'
        """,
    "a class in a function": """
        --- lib.py
        from parts import make
        def give(): return make()().run()
        --- parts.py
        def make():
            class Inner:
                def run(self): return 'old'
            return Inner
        """,
    "a class in a class": """
        --- lib.py
        from parts import Outer
        def give(): return Outer.Inner.Deep().run()
        --- parts.py
        class Outer:
            class Inner:
                class Deep:
                    def run(self): return 'old'
        """,
    "an object that was pickled": """
        --- lib.py
        import pickle
        from parts import Part
        KEPT = pickle.dumps(Part())
        def give(): return pickle.loads(KEPT).run()
        --- parts.py
        class Part:
            def run(self): return 'old'
        """,
    "__setstate__": """
        --- lib.py
        import copy
        from parts import Part
        def give(): return copy.copy(Part()).word
        --- parts.py
        class Part:
            word = 'x'
            def __getstate__(self): return {'a': 1}
            def __setstate__(self, s): self.word = 'old'
        """,
    "code executed for its effect": """
        --- lib.py
        import effect
        import os
        def give(): return os.environ['ROUNDABOUT']
        --- effect.py
        import os
        os.environ['ROUNDABOUT'] = 'old'
        """,
    "code executed for its effect by a call": """
        --- lib.py
        import effect
        import os
        def give(): return os.environ['ROUNDABOUT']
        --- effect.py
        import os
        def set_it(value): os.environ.update(ROUNDABOUT=value)
        set_it('old')
        """,
    "an effect on another module": """
        --- lib.py
        import effect
        import kept
        def give(): return kept.VALUES[-1]
        --- kept.py
        VALUES = []
        --- effect.py
        from kept import VALUES as v
        v.append('old')
        """,
    "an effect by an alias of another module": """
        --- lib.py
        import effect
        import kept
        def give(): return kept.VALUES[-1]
        --- kept.py
        VALUES = []
        --- effect.py
        import kept as k
        v = k.VALUES
        v += ['old']
        """,
    "an effect by a loop": """
        --- lib.py
        import effect
        import kept
        def give(): return kept.VALUES[-1]
        --- kept.py
        VALUES = []
        --- effect.py
        import kept
        for word in ['old']:
            kept.VALUES.append(word)
        """,
    "an effect by a comprehension": """
        --- lib.py
        import effect
        import kept
        def give(): return kept.VALUES[-1]
        --- kept.py
        VALUES = []
        --- effect.py
        from kept import VALUES
        _ = [VALUES.append(w) for w in ['old']]
        """,
    "an effect by a class body": """
        --- lib.py
        import effect
        import kept
        def give(): return kept.VALUES[-1]
        --- kept.py
        VALUES = []
        --- effect.py
        import kept
        class Effect:
            kept.VALUES.append('old')
        """,
    "an effect by a with statement": """
        --- lib.py
        import effect
        import kept
        def give(): return kept.VALUES[-1]
        --- kept.py
        import contextlib
        VALUES = []
        @contextlib.contextmanager
        def adding(word):
            VALUES.append(word)
            yield
        --- effect.py
        from kept import adding
        with adding('old'):
            pass
        """,
    "an effect by a default": """
        --- lib.py
        import effect
        import kept
        def give(): return kept.VALUES[-1]
        --- kept.py
        VALUES = []
        def add(word): VALUES.append(word)
        --- effect.py
        from kept import add
        def unused(x=add('old')): pass
        """,
    "an effect by an assert": """
        --- lib.py
        import effect
        import kept
        def give(): return kept.VALUES[-1]
        --- kept.py
        VALUES = []
        def add(word): VALUES.append(word); return True
        --- effect.py
        from kept import add
        assert add('old')
        """,
    "an effect of an instance that is made": """
        --- lib.py
        import effect
        import kept
        def give(): return kept.VALUES[-1]
        --- kept.py
        VALUES = []
        class Adder:
            def __init__(self, word): VALUES.append(word)
        --- effect.py
        from kept import Adder
        Adder('old')
        """,
    "circular imports": """
        --- lib.py
        import left
        def give(): return left.word()
        --- left.py
        import right
        def word(): return right.other()
        END = 'old'
        --- right.py
        import left
        def other(): return left.END
        """,
    "circular imports from functions": """
        --- lib.py
        from left import word as give
        --- left.py
        def word():
            from right import other
            return other()
        END = 'old'
        --- right.py
        from left import END
        def other(): return END
        """,
    "a name that two modules bind": """
        --- lib.py
        from one import word
        from two import word
        def give(): return word()
        --- one.py
        def word(): return 'hidden'
        --- two.py
        def word(): return 'old'
        """,
    "a function that is bound twice": """
        --- lib.py
        def word(): return 'x'
        first = word
        def word(): return first() + 'old'
        def give(): return word()
        """,
    "a name found in builtins": """
        --- lib.py
        import setting
        def give(): return shared_word
        --- setting.py
        import builtins
        builtins.shared_word = 'old'
        """,
    "a hook of the import system": """
        --- lib.py
        import hook
        import made_up_by_hook
        def give(): return made_up_by_hook.word
        --- hook.py
        import sys, types
        sys.modules['made_up_by_hook'] = types.SimpleNamespace(word='old')
        """,
    "an exception's class": """
        --- lib.py
        from parts import go, Stop
        def give():
            try:
                go()
            except Stop as stop:
                return str(stop)
        --- parts.py
        class Stop(Exception):
            def __str__(self): return 'old'
        def go(): raise Stop
        """,
    "an operator of a base class": """
        --- lib.py
        from parts import Word
        def give(): return Word('a') + Word('b')
        --- parts.py
        class Base(str):
            def __add__(self, o): return str(o) + 'old'
        class Word(Base): pass
        """,
    "sorted by an operator": """
        --- lib.py
        from parts import Word
        def give(): return sorted([Word(2), Word(1)])[0].n
        --- parts.py
        class Word:
            def __init__(self, n): self.n = n
            def __lt__(self, o): return (self.n < o.n) == ('old' == 'old')
        """,
    "a context variable": """
        --- lib.py
        import setting
        from kept import WORD
        def give(): return WORD.get()
        --- kept.py
        import contextvars
        WORD = contextvars.ContextVar('word', default='x')
        --- setting.py
        from kept import WORD
        WORD.set('old')
        """,
    "a method that is set from outside": """
        --- lib.py
        from parts import Part
        import more
        def give(): return Part().run()
        --- parts.py
        class Part:
            pass
        --- more.py
        from parts import Part
        def run(self): return 'old'
        setattr(Part, 'run', run)
        """,
    "a named tuple's default": """
        --- lib.py
        from parts import Part
        def give(): return Part().word
        --- parts.py
        from collections import namedtuple
        Part = namedtuple('Part', 'word', defaults=['old'])
        """,
    "an enumeration by its value": """
        --- lib.py
        from parts import Kind
        def give(): return Kind('a').label
        --- parts.py
        import enum
        class Kind(enum.Enum):
            A = 'a'
            @property
            def label(self): return 'old'
        """,
    "a generic class": """
        --- lib.py
        from parts import Box
        def give(): return Box[int]().run()
        --- parts.py
        from typing import Generic, TypeVar
        T = TypeVar('T')
        class Box(Generic[T]):
            def run(self): return 'old'
        """,
    "a protocol's method": """
        --- lib.py
        from parts import Part
        def give(): return Part().run()
        --- parts.py
        from typing import Protocol
        class Runs(Protocol):
            def run(self): return 'old'
        class Part(Runs): pass
        """,
    "an abstract method's body by super": """
        --- lib.py
        from parts import Part
        def give(): return Part().run()
        --- parts.py
        import abc
        class Base(abc.ABC):
            @abc.abstractmethod
            def run(self): return 'old'
        class Part(Base):
            def run(self): return super().run()
        """,
    "a string that is formatted by a class": """
        --- lib.py
        from parts import Part
        def give(): return f'{Part():x}'
        --- parts.py
        class Part:
            def __format__(self, how): return how + 'old'
        """,
    "a template in a constant": """
        --- lib.py
        from string import Template
        from texts import PROMPT
        def give(): return Template(PROMPT).substitute(a=1)
        --- texts.py
        PROMPT = '$a old' + 'old'
        """,
    "a weak reference's call": """
        --- lib.py
        import gc, weakref
        from parts import on_end, NOTES
        def give():
            class A: pass
            a = A()
            weakref.finalize(a, on_end)
            del a
            return NOTES[-1]
        --- parts.py
        NOTES = ['x']
        def on_end(): NOTES.append('old')
        """,
    "an atexit of a context": """
        --- lib.py
        import contextlib
        from parts import on_end, NOTES
        def give():
            with contextlib.ExitStack() as stack:
                stack.callback(on_end)
            return NOTES[-1]
        --- parts.py
        NOTES = ['x']
        def on_end(): NOTES.append('old')
        """,
    "a subclass of a mapping": """
        --- lib.py
        from parts import Words
        def give(): return Words()['any']
        --- parts.py
        class Words(dict):
            def __missing__(self, key): return 'old'
        """,
    "a chain of imports that hands on": """
        --- lib.py
        from a import word
        def give(): return word()
        --- a.py
        from b import other as word
        --- b.py
        from c import third as other
        --- c.py
        def third(): return 'old'
        """,
    "a module passed as a value": """
        --- lib.py
        import parts
        def call(m): return m.word()
        def give(): return call(parts)
        --- parts.py
        def word(): return 'old'
        """,
    "a module in a table": """
        --- lib.py
        import parts
        TABLE = {'k': parts}
        def give(): return TABLE['k'].word()
        --- parts.py
        def word(): return 'old'
        """,
    "vars of a module": """
        --- lib.py
        import parts
        def give(): return vars(parts)['wo' + 'rd']()
        --- parts.py
        def word(): return 'old'
        """,
    "a class made by type()": """
        --- lib.py
        from parts import Part
        def give(): return Part().run()
        --- parts.py
        def run(self): return 'old'
        Part = type('Part', (), dict(run=run))
        """,
    "inspect reads the source": """
        --- lib.py
        import inspect
        import parts
        def give(): return inspect.getsource(parts)
        --- parts.py
        # 'old'
        def word(): return 1
        """,
    "a doctest as an example": """
        --- lib.py
        from parts import word
        def give(): return word.__doc__
        --- parts.py
        def word():
            'old'
        """,
}

APP = """
import lib
class Rag:
    def retrieve(self, input, depth): return lib.give()
    def generate(self, input, context): return {'answer': 1}
"""


def given(root: Path) -> tuple[str, tuple[str, ...]]:
    """What `retrieve` gives, and the modules of the project that are imported with the app."""
    import builtins
    import json
    import sys

    kept = builtins.len, json.dumps
    try:
        with imported_from(root):
            before = set(sys.modules)
            app = importlib.import_module("app")
            found = [name for name in sys.modules if name not in before]
            own = [
                name
                for name in found
                if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(root))
            ]
            return str(app.Rag().retrieve(None, None)), tuple(sorted(own))
    finally:
        builtins.len, json.dumps = kept
        if hasattr(builtins, "shared_word"):
            del builtins.shared_word


def files_in(text: str) -> dict[str, str]:
    """The files that a text holds."""
    parts = dedent(text).split("--- ")[1:]
    return {name: body for name, _, body in (part.partition("\n") for part in parts)}


def written(project: Project, files: Mapping[str, str]) -> None:
    project.write({"app.py": APP, **files})


@pytest.mark.parametrize("way", sorted(WAYS))
def test_what_decides_the_result_is_in_the_fingerprint(tmp_path: Path, way: str) -> None:
    project, files = Project(tmp_path), files_in(WAYS[way])
    written(project, files)
    gave, imported = given(tmp_path)
    before = project.identity(imported=imported)
    place = next(name for name, text in files.items() if "old" in text)
    edited = files[place].replace("old", "newer", 1)
    written(project, {**files, place: edited})
    assert given(tmp_path)[0] != gave
    assert changed(before, project.identity(imported=imported)) >= RETRIEVE
