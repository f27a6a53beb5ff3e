"""State that stages share by another name than the one it is read under: what changes it counts for who reads it.

Every project here is executed before and after an edit: the edit changes what the stage gives after the other has run,
so it must change the stage's fingerprint too.
"""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest
from test_fingerprint import GENERATE, RETRIEVE, Project, changed
from test_fingerprint_oracle import imported_from

from oloproof.identity.bindings import Bindings

#: In each, `retrieve` calls `touch` with the edit in it, and `generate` gives `look()`. 'old' becomes 'new'.
SHARED = {
    "an alias of a module": """
        G = ["x"]
        g = G
        def touch(): g[0] = "old"
        def look(): return G[0]
        """,
    "an alias of an alias": """
        G = ["x"]
        h = G
        g = h
        def touch(): g.append("old")
        def look(): return G[-1]
        """,
    "an alias in a function": """
        G = ["x"]
        def touch():
            g = G
            g[0] = "old"
        def look(): return G[0]
        """,
    "an alias by several targets": """
        G = g = ["x"]
        def touch(): g[0] = "old"
        def look(): return G[0]
        """,
    "an alias in a tuple": """
        G = ["x"]
        a, g = 1, G
        def touch(): g[0] = "old"
        def look(): return G[0]
        """,
    "an alias in a loop": """
        G = ["x"]
        def touch():
            for g in [G]:
                g[0] = "old"
        def look(): return G[0]
        """,
    "an alias by a condition": """
        G = ["x"]
        def touch():
            g = G or []
            g[0] = "old"
        def look(): return G[0]
        """,
    "an alias by with": """
        import contextlib
        G = ["x"]
        def touch():
            with contextlib.nullcontext(G) as g:
                g[0] = "old"
        def look(): return G[0]
        """,
    "an alias by :=": """
        G = ["x"]
        def touch():
            if (g := G):
                g[0] = "old"
        def look(): return G[0]
        """,
    "an alias by match": """
        G = ["x"]
        def touch():
            match G:
                case g:
                    g[0] = "old"
        def look(): return G[0]
        """,
    "an inner part": """
        G = {"k": ["x"]}
        def touch():
            part = G["k"]
            part[0] = "old"
        def look(): return G["k"][0]
        """,
    "an inner part by a method": """
        G = {"k": ["x"]}
        def touch(): G.get("k").append("old")
        def look(): return G["k"][-1]
        """,
    "an inner part by setdefault": """
        G = {}
        def touch(): G.setdefault("k", []).append("old")
        def look(): return G["k"][-1]
        """,
    "an item that is an object": """
        class Box: value = "x"
        G = [Box()]
        def touch(): G[0].value = "old"
        def look(): return G[0].value
        """,
    "passed to a helper": """
        G = ["x"]
        def put(where): where[0] = "old"
        def touch(): put(G)
        def look(): return G[0]
        """,
    "passed on by a helper": """
        G = ["x"]
        def put(where): where[0] = "old"
        def hand(where): put(where)
        def touch(): hand(G)
        def look(): return G[0]
        """,
    "passed to a helper in a container": """
        G = ["x"]
        def put(many): many[0][0] = "old"
        def touch(): put([G])
        def look(): return G[0]
        """,
    "passed to a helper that makes an alias": """
        G = ["x"]
        def put(where):
            other = where
            other[0] = "old"
        def touch(): put(G)
        def look(): return G[0]
        """,
    "passed by name": """
        G = ["x"]
        def put(*, where): where[0] = "old"
        def touch(): put(where=G)
        def look(): return G[0]
        """,
    "passed to a lambda": """
        G = ["x"]
        def touch(): (lambda g: g.append("old"))(G)
        def look(): return G[-1]
        """,
    "passed through partial": """
        import functools
        G = ["x"]
        def put(where): where[0] = "old"
        def touch(): functools.partial(put, G)()
        def look(): return G[0]
        """,
    "passed through map": """
        G = ["x"]
        def put(where): where[0] = "old"
        def touch(): list(map(put, [G]))
        def look(): return G[0]
        """,
    "passed to a builtin": """
        import heapq
        G = ["x"]
        def touch(): heapq.heappush(G, "old")
        def look(): return "".join(G)
        """,
    "passed to setattr": """
        class Box: value = "x"
        G = Box()
        def touch(): setattr(G, "val" + "ue", "old")
        def look(): return G.value
        """,
    "returned by a function": """
        G = ["x"]
        def shared(): return G
        def touch(): shared()[0] = "old"
        def look(): return G[0]
        """,
    "returned and kept": """
        G = ["x"]
        def shared(): return G
        g = shared()
        def touch(): g[0] = "old"
        def look(): return G[0]
        """,
    "returned and aliased": """
        G = ["x"]
        def shared(): return G
        def touch():
            g = shared()
            g[0] = "old"
        def look(): return G[0]
        """,
    "returned to both": """
        G = ["x"]
        def shared(): return G
        def touch(): shared().append("old")
        def look(): return shared()[-1]
        """,
    "cached": """
        import functools
        @functools.cache
        def shared(): return ["x"]
        def touch(): shared().append("old")
        def look(): return shared()[-1]
        """,
    "cached and aliased": """
        import functools
        @functools.lru_cache(maxsize=None)
        def shared(): return {"k": "x"}
        def touch():
            found = shared()
            found["k"] = "old"
        def look(): return shared()["k"]
        """,
    "cached and passed": """
        import functools
        @functools.cache
        def shared(): return ["x"]
        def put(where): where[0] = "old"
        def touch(): put(shared())
        def look(): return shared()[0]
        """,
    "a mutable default": """
        def keep(value=None, seen=["x"]):
            if value: seen.append(value)
            return seen[-1]
        def touch(): keep("old")
        def look(): return keep()
        """,
    "a default that is a global": """
        G = ["x"]
        def put(where=G): where[0] = "old"
        def touch(): put()
        def look(): return G[0]
        """,
    "a default of a lambda": """
        G = ["x"]
        put = lambda where=G: where.append("old")
        def touch(): put()
        def look(): return G[-1]
        """,
    "an attribute of a function": """
        def helper(): pass
        def touch(): helper.note = "old"
        def look(): return getattr(helper, "note", "x")
        """,
    "a list of a class": """
        class Box:
            items = ["x"]
        def touch(): Box().items.append("old")
        def look(): return Box.items[-1]
        """,
    "a list of a class, aliased": """
        class Box:
            items = ["x"]
        def touch():
            box = Box()
            box.items[0] = "old"
        def look(): return Box.items[0]
        """,
    "a list of a class through a method": """
        class Box:
            items = ["x"]
            def put(self, value): self.items.append(value)
        def touch(): Box().put("old")
        def look(): return Box.items[-1]
        """,
    "a list of a class through a helper": """
        class Box:
            items = ["x"]
        def put(box): box.items.append("old")
        def touch(): put(Box())
        def look(): return Box.items[-1]
        """,
    "a class through type()": """
        class Box:
            value = "x"
            def put(self): type(self).value = "old"
        def touch(): Box().put()
        def look(): return Box.value
        """,
    "a class through cls": """
        class Box:
            value = "x"
            @classmethod
            def put(cls): cls.value = "old"
        def touch(): Box.put()
        def look(): return Box.value
        """,
    "a base class through a subclass": """
        class Base:
            items = ["x"]
        class Box(Base): pass
        def touch(): Box.items.append("old")
        def look(): return Base.items[-1]
        """,
    "a closure": """
        def make():
            kept = ["x"]
            def put(): kept[0] = "old"
            def get(): return kept[0]
            return put, get
        put, get = make()
        def touch(): put()
        def look(): return get()
        """,
    "a closure with nonlocal": """
        def make():
            kept = "x"
            def put():
                nonlocal kept
                kept = "old"
            def get(): return kept
            return put, get
        pair = make()
        def touch(): pair[0]()
        def look(): return pair[1]()
        """,
    "an instance": """
        class Box:
            def __init__(self): self.value = "x"
            def put(self): self.value = "old"
        BOX = Box()
        def touch(): BOX.put()
        def look(): return BOX.value
        """,
    "an instance with an alias": """
        class Box:
            def __init__(self): self.value = "x"
        BOX = Box()
        box = BOX
        def touch(): box.value = "old"
        def look(): return BOX.value
        """,
    "two that share one": """
        class Box:
            def __init__(self, kept): self.kept = kept
        G = ["x"]
        ONE, TWO = Box(G), Box(G)
        def touch(): ONE.kept[0] = "old"
        def look(): return TWO.kept[0]
        """,
    "two names that share one": """
        class Box:
            def __init__(self, kept): self.kept = kept
        G = ["x"]
        ONE = Box(G)
        TWO = Box(G)
        def touch(): ONE.kept[0] = "old"
        def look(): return TWO.kept[0]
        """,
    "kept in another container": """
        G = ["x"]
        TABLE = {"g": G}
        def touch(): TABLE["g"][0] = "old"
        def look(): return G[0]
        """,
    "a bound method": """
        G = ["x"]
        put = G.append
        def touch(): put("old")
        def look(): return G[-1]
        """,
    "an iterator": """
        ROWS = ["x", "y", "z"]
        IT = iter(ROWS)
        def touch(): [next(IT, None) for _ in range(len("old") - 2)]
        def look(): return next(IT, "end")
        """,
    "os.environ": """
        import os
        os.environ["SHARED_OF_A_TEST"] = "x"
        def touch(): os.environ["SHARED_OF_A_TEST"] = "old"
        def look(): return os.environ["SHARED_OF_A_TEST"]
        """,
    "a module's attribute": """
        import math
        math.shared_of_a_test = "x"
        def touch(): math.shared_of_a_test = "old"
        def look(): return math.shared_of_a_test
        """,
    "a context variable": """
        import contextvars
        KEPT = contextvars.ContextVar("kept", default="x")
        def touch(): KEPT.set("old")
        def look(): return KEPT.get()
        """,
    "random's state": """
        import random
        def touch(): random.seed("old")
        def look(): return str(random.random())
        """,
    "globals()": """
        G = "x"
        def touch(): globals()["G"] = "old"
        def look(): return G
        """,
    "an unpacked container": """
        G = ["x"]
        BOTH = [G, 1]
        def touch():
            g, _ = BOTH
            g[0] = "old"
        def look(): return G[0]
        """,
    "an argument in stars": """
        G = ["x"]
        def put(*many): many[0][0] = "old"
        def touch(): put(G)
        def look(): return G[0]
        """,
    "a comprehension": """
        G = ["x"]
        def touch(): [g.append("old") for g in [G]]
        def look(): return G[-1]
        """,
    "copied shallowly": """
        G = [["x"]]
        H = list(G)
        def touch(): H[0][0] = "old"
        def look(): return G[0][0]
        """,
    "a deque in a dataclass": """
        import dataclasses
        @dataclasses.dataclass
        class Box:
            kept: list
        G = ["x"]
        BOX = Box(G)
        def touch(): BOX.kept[0] = "old"
        def look(): return G[0]
        """,
    "put by a helper": """
        G = []
        def put(value): G.append(value)
        def touch(): put("old")
        def look(): return G[-1]
        """,
    "put by a helper's helper": """
        G = []
        def put(value): G.append(value)
        def more(value): put(value * 2)
        def touch(): more("old")
        def look(): return G[-1]
        """,
    "put by a table of helpers": """
        G = []
        def put(value): G.append(value)
        TABLE = {"k": put}
        def touch(): TABLE["k"]("old")
        def look(): return G[-1]
        """,
    "put into an instance": """
        class Box:
            def __init__(self): self.kept = []
            def put(self, value): self.kept.append(value)
            def last(self): return self.kept[-1]
        BOX = Box()
        def touch(): BOX.put("old")
        def look(): return BOX.last()
        """,
    "put into an instance by way of another method": """
        class Box:
            def __init__(self): self.kept = "x"
            def set_to(self, value): self.kept = value
            def put(self, value): self.set_to(value)
        BOX = Box()
        def touch():
            box = BOX
            box.put("old")
        def look(): return BOX.kept
        """,
    "what a method of an instance gives": """
        class Box:
            def __init__(self): self.kept = ["x"]
            def all(self): return self.kept
        BOX = Box()
        def touch():
            found = BOX.all()
            found[0] = "old"
        def look(): return BOX.all()[0]
        """,
    "put into an instance that a function made": """
        class Box:
            def __init__(self): self.kept = "x"
            def put(self, value): self.kept = value
        def make(): return Box()
        BOX = make()
        def touch(): BOX.put("old")
        def look(): return BOX.kept
        """,
    "put into a class by a method": """
        class Box:
            kept = ["x"]
            def put(self, value): self.kept.append(value)
        def touch(): Box().put("old")
        def look(): return Box.kept[-1]
        """,
    "put into a class by a class method": """
        class Box:
            kept = "x"
            @classmethod
            def put(cls, value): cls.kept = value
        def touch(): Box.put("old")
        def look(): return Box.kept
        """,
    "put by an operator": """
        class Box:
            def __init__(self): self.kept = "x"
            def __setitem__(self, key, value): self.kept = value
        BOX = Box()
        def touch(): BOX["k"] = "old"
        def look(): return BOX.kept
        """,
    "put by a call of an instance": """
        class Box:
            def __init__(self): self.kept = "x"
            def __call__(self, value): self.kept = value
        BOX = Box()
        def touch(): BOX("old")
        def look(): return BOX.kept
        """,
    "put under a key that is fixed": """
        G = {}
        def state(value=None):
            if value: G["k"] = value
            return G["k"]
        def touch(): state("old")
        def look(): return state()
        """,
    "sent to a generator": """
        def keep():
            kept = "x"
            while True:
                kept = (yield kept) or kept
        KEEP = keep()
        next(KEEP)
        def touch(): KEEP.send("old")
        def look(): return next(KEEP)
        """,
    "a property": """
        class Box:
            def __init__(self): self.kept = "x"
            @property
            def value(self): return self.kept
            @value.setter
            def value(self, value): self.kept = value
        BOX = Box()
        def touch(): BOX.value = "old"
        def look(): return BOX.value
        """,
    "a function called or not": """
        G = ["x"]
        def put(): G[0] = "y"
        def touch(): put() if "old" == "old" else None
        def look(): return G[0]
        """,
    "an augmented assignment of an attribute": """
        class Box:
            kept = ["x"]
            def put(self, value): self.kept += [value]
        def touch(): Box().put("old")
        def look(): return Box.kept[-1]
        """,
    "an augmented assignment of an alias": """
        G = ["x"]
        def touch():
            g = G
            g += ["old"]
        def look(): return G[-1]
        """,
    "patched at run time": """
        class Box:
            def value(self): return "x"
        def touch(): Box.value = lambda self: "old"
        def look(): return Box().value()
        """,
    "patched by setattr": """
        import math
        def touch(): setattr(math, "shared_of_a_test", "old")
        def look(): return math.shared_of_a_test
        """,
    "an attribute of this module": """
        import sys
        G = "x"
        def touch(): sys.modules[__name__].G = "old"
        def look(): return G
        """,
    "a thread-local": """
        import threading
        LOCAL = threading.local()
        LOCAL.value = "x"
        def touch(): LOCAL.value = "old"
        def look(): return LOCAL.value
        """,
}

#: What `retrieve` leaves in the system itself, or in what that holds, for `generate`.
OWN = {
    "an alias of an attribute": """
        class Rag:
            def __init__(self): self.kept = ["x"]
            def retrieve(self, input, depth):
                kept = self.kept
                kept[0] = "old"
            def generate(self, input, context): return self.kept[0]
        """,
    "an attribute given to a helper": """
        def put(where): where[0] = "old"
        class Rag:
            def __init__(self): self.kept = ["x"]
            def retrieve(self, input, depth): put(self.kept)
            def generate(self, input, context): return self.kept[0]
        """,
    "an attribute given to a method": """
        class Rag:
            def __init__(self): self.kept = ["x"]
            def put(self, where): where[0] = "old"
            def retrieve(self, input, depth): self.put(self.kept)
            def generate(self, input, context): return self.kept[0]
        """,
    "an attribute given to a method with what to put": """
        class Rag:
            def __init__(self): self.kept = ["x"]
            def put(self, where, what): where[0] = what
            def retrieve(self, input, depth): self.put(self.kept, "old")
            def generate(self, input, context): return self.kept[0]
        """,
    "what a method gives": """
        class Rag:
            def __init__(self): self.kept = ["x"]
            def all(self): return self.kept
            def retrieve(self, input, depth): self.all()[0] = "old"
            def generate(self, input, context): return self.kept[0]
        """,
    "what a property gives": """
        class Rag:
            def __init__(self): self.kept = ["x"]
            @property
            def all(self): return self.kept
            def retrieve(self, input, depth): self.all[0] = "old"
            def generate(self, input, context): return self.kept[0]
        """,
    "two attributes that share one": """
        class Rag:
            def __init__(self):
                self.kept = ["x"]
                self.other = self.kept
            def retrieve(self, input, depth): self.other[0] = "old"
            def generate(self, input, context): return self.kept[0]
        """,
    "two parts that share one": """
        class Left:
            def __init__(self, kept): self.kept = kept
            def put(self, what): self.kept[0] = what
        class Right:
            def __init__(self, kept): self.kept = kept
            def get(self): return self.kept[0]
        class Rag:
            def __init__(self):
                kept = ["x"]
                self.left, self.right = Left(kept), Right(kept)
            def retrieve(self, input, depth): self.left.put("old")
            def generate(self, input, context): return self.right.get()
        """,
    "two parts that share one, made apart": """
        class Left:
            def __init__(self, kept): self.kept = kept
            def put(self, what): self.kept[0] = what
        class Right:
            def __init__(self, kept): self.kept = kept
            def get(self): return self.kept[0]
        class Rag:
            def __init__(self):
                kept = ["x"]
                self.left = Left(kept)
                self.right = Right(kept)
            def retrieve(self, input, depth): self.left.put("old")
            def generate(self, input, context): return self.right.get()
        """,
    "a part that is given to another": """
        class Memory:
            def __init__(self): self.kept = "x"
        class Writer:
            def __init__(self, memory): self.memory = memory
            def put(self, what): self.memory.kept = what
        class Rag:
            def __init__(self):
                self.memory = Memory()
                self.writer = Writer(self.memory)
            def retrieve(self, input, depth): self.writer.put("old")
            def generate(self, input, context): return self.memory.kept
        """,
    "a part's attribute": """
        class Memory:
            def __init__(self): self.kept = "x"
        class Rag:
            def __init__(self): self.memory = Memory()
            def retrieve(self, input, depth): self.memory.kept = "old"
            def generate(self, input, context): return self.memory.kept
        """,
    "a part's method": """
        class Memory:
            def __init__(self): self.kept = "x"
            def put(self, what): self.kept = what
            def get(self): return self.kept
        class Rag:
            def __init__(self): self.memory = Memory()
            def retrieve(self, input, depth): self.memory.put("old")
            def generate(self, input, context): return self.memory.get()
        """,
    "a part's method by an alias": """
        class Memory:
            def __init__(self): self.kept = "x"
            def put(self, what): self.kept = what
            def get(self): return self.kept
        class Rag:
            def __init__(self): self.memory = Memory()
            def retrieve(self, input, depth):
                memory = self.memory
                memory.put("old")
            def generate(self, input, context): return self.memory.get()
        """,
    "a part of a class that is not known": """
        class Memory:
            def __init__(self): self.kept = "x"
            def put(self, what): self.kept = what
            def get(self): return self.kept
        def make(): return Memory()
        class Rag:
            def __init__(self): self.memory = make()
            def retrieve(self, input, depth): self.memory.put("old")
            def generate(self, input, context): return self.memory.get()
        """,
    "a list of a dictionary": """
        class Rag:
            def __init__(self): self.kept = {"k": ["x"]}
            def retrieve(self, input, depth):
                for each in self.kept.values():
                    each.append("old")
            def generate(self, input, context): return self.kept["k"][-1]
        """,
    "a class attribute": """
        class Rag:
            kept = ["x"]
            def retrieve(self, input, depth): self.kept[0] = "old"
            def generate(self, input, context): return Rag.kept[0]
        """,
    "an attribute set by name": """
        class Rag:
            def retrieve(self, input, depth): setattr(self, "ke" + "pt", "old")
            def generate(self, input, context): return self.kept
        """,
    "the dictionary of the instance": """
        class Rag:
            def retrieve(self, input, depth): self.__dict__["kept"] = "old"
            def generate(self, input, context): return self.kept
        """,
    "a cached property": """
        import functools
        class Rag:
            @functools.cached_property
            def kept(self): return ["x"]
            def retrieve(self, input, depth): self.kept[0] = "old"
            def generate(self, input, context): return self.kept[0]
        """,
    "a bound method that is kept": """
        class Rag:
            def __init__(self):
                self.kept = ["x"]
                self.put = self.kept.append
            def retrieve(self, input, depth): self.put("old")
            def generate(self, input, context): return self.kept[-1]
        """,
    "a function that is kept": """
        class Rag:
            def __init__(self):
                kept = ["x"]
                self.put = lambda what: kept.append(what)
                self.get = lambda: kept[-1]
            def retrieve(self, input, depth): self.put("old")
            def generate(self, input, context): return self.get()
        """,
}

#: Systems whose stages use the same parts and stay apart all the same; the edit is in `retrieve`.
OWN_APART = {
    "two parts with one client": """
        import openai
        class Left:
            def __init__(self, client):
                self.client = client
                self.last = None
            def find(self, text):
                self.last = text
                return self.client.embed(text)
        class Right:
            def __init__(self, client): self.client = client
            def answer(self, text): return self.client.answer(text)
        class Rag:
            def __init__(self):
                client = openai.OpenAI()
                self.left = Left(client)
                self.right = Right(client)
            def retrieve(self, input, depth): return self.left.find("old")
            def generate(self, input, context): return self.right.answer("k")
        """,
    "documents that both read": """
        def rank(docs, text):
            found = []
            for doc in docs:
                found.append((text in doc, doc))
            return sorted(found)
        class Rag:
            def __init__(self): self.docs = ["a", "b"]
            def retrieve(self, input, depth): return rank(self.docs, "old")
            def generate(self, input, context): return rank(self.docs, "k")
        """,
    "a memory that both fill": """
        class Rag:
            def __init__(self): self.known = {}
            def embed(self, text):
                if text not in self.known:
                    self.known[text] = text * 2
                return self.known[text]
            def retrieve(self, input, depth): return self.embed("old")
            def generate(self, input, context): return self.embed("k")
        """,
    "results that are sorted": """
        class Index:
            def __init__(self): self.rows = [2, 1]
            def find(self, text): return [row for row in self.rows if row]
        class Rag:
            def __init__(self): self.index = Index()
            def retrieve(self, input, depth):
                found = self.index.find("old")
                found.sort()
                return found
            def generate(self, input, context): return self.index.find("k")
        """,
}

#: Functions that stages share and that keep them apart all the same: what `retrieve` does, with the edit in it, and
#: `generate` do.
APART = {
    "reading a list": ("DOCS = ['b', 'a']\n", "DOCS[0], 'old'", "sorted(DOCS)"),
    "a loop over a list": (
        "DOCS = ['b', 'a']\ndef rank(docs, key):\n    found = []\n"
        "    for doc in docs:\n        found.append(doc + key)\n"
        "    found.sort()\n    return found\n",
        "rank(DOCS, 'old')",
        "rank(DOCS, 'k')",
    ),
    "sorting a copy": (
        "DOCS = ['b', 'a']\ndef rank(docs):\n    found = list(docs)\n    found.sort()\n    return found\n",
        "rank(DOCS), 'old'",
        "rank(DOCS)",
    ),
    "a client from outside": (
        "import openai\nCLIENT = openai.OpenAI()\n",
        "CLIENT.embed('old')",
        "CLIENT.answer('k')",
    ),
    "a lazy singleton": (
        "import models\n_model = None\ndef model():\n    global _model\n    if _model is None:\n"
        "        _model = models.Model()\n    return _model\n",
        "model().embed('old')",
        "model().answer('k')",
    ),
    "a lazy singleton that asks whether it is there": (
        "import models\n_model = None\ndef model():\n    global _model\n    if not _model:\n"
        "        _model = models.Model()\n    return _model\n",
        "model().embed('old')",
        "model().answer('k')",
    ),
    "a memory of what was computed": (
        "KNOWN = {}\ndef embed(text):\n    if text not in KNOWN:\n        KNOWN[text] = text * 2\n"
        "    return KNOWN[text]\n",
        "embed('old')",
        "embed('k')",
    ),
    "a cached function": (
        "import functools\n@functools.lru_cache\ndef load():\n    return {'a': 1}\n",
        "load()['a'], 'old'",
        "load()['a']",
    ),
    "an index that is lazily loaded": (
        "class Index:\n    def __init__(self): self._rows = None\n    def rows(self, depth):\n"
        "        if self._rows is None: self._rows = [1]\n        return self._rows[:depth]\nINDEX = Index()\n",
        "INDEX.rows(1), 'old'",
        "INDEX.rows(2)",
    ),
    "a logger": (
        "import logging\nLOG = logging.getLogger(__name__)\n",
        "LOG.info('old')",
        "LOG.info('k')",
    ),
    "settings": (
        "CONFIG = {'model': 'm', 'parts': {'k': 1}}\n",
        "CONFIG['parts'].get('k'), 'old'",
        "CONFIG.get('model')",
    ),
    "a result that is changed": (
        "def make():\n    return [1]\ndef more():\n    found = make()\n    found.append(2)\n    return found\n",
        "more(), 'old'",
        "make()",
    ),
    "a text that grows": (
        "HEAD = 'x'\ndef build(text):\n    out = HEAD\n    out += text\n    return out\n",
        "build('old')",
        "HEAD",
    ),
}

SYSTEM = """
from shared import look, touch

class Rag:
    def retrieve(self, input, depth): touch()
    def generate(self, input, context): return look()
"""


def given(root: Path) -> str:
    """What `generate` gives after `retrieve`."""
    import importlib

    with imported_from(root):
        system = importlib.import_module("app").Rag()
        system.retrieve(None, None)
        return str(system.generate(None, None))


@pytest.mark.parametrize("way", sorted(SHARED))
def test_what_changes_shared_state_counts_for_who_reads_it(tmp_path: Path, way: str) -> None:
    project = Project(tmp_path)
    text = dedent(SHARED[way])
    project.write({"shared.py": text, "app.py": SYSTEM})
    before, gave = project.identity(imported=("app", "shared")), given(tmp_path)
    place = text.index('"old"')
    project.write({"shared.py": text[:place] + '"newer"' + text[place + 5 :]})
    assert given(tmp_path) != gave
    assert changed(before, project.identity(imported=("app", "shared"))) >= GENERATE


@pytest.mark.parametrize("way", sorted(OWN))
def test_what_a_stage_leaves_in_the_system_counts_for_the_next(tmp_path: Path, way: str) -> None:
    project, text = Project(tmp_path), dedent(OWN[way])
    project.write({"app.py": text})
    before, gave = project.identity(), given(tmp_path)
    project.write({"app.py": text.replace('"old"', '"newer"')})
    assert given(tmp_path) != gave
    assert changed(before, project.identity()) >= GENERATE


@pytest.mark.parametrize("way", sorted(OWN_APART))
def test_stages_that_use_the_same_parts_stay_apart(tmp_path: Path, way: str) -> None:
    project, text = Project(tmp_path), dedent(OWN_APART[way])
    project.write({"app.py": text})
    before = project.identity()
    project.write({"app.py": text.replace('"old"', '"newer"')})
    assert changed(before, project.identity()) == RETRIEVE


@pytest.mark.parametrize("way", sorted(APART))
def test_what_stages_share_without_changing_it_keeps_them_apart(tmp_path: Path, way: str) -> None:
    shared, retrieve, generate = APART[way]
    system = (
        "from shared import *\nclass Rag:\n"
        f"    def retrieve(self, input, depth):\n        return {retrieve}\n"
        f"    def generate(self, input, context):\n        return {generate}\n"
    )
    system = system.replace("import *", f"import {', '.join(names_of(shared))}")
    project = Project(tmp_path)
    project.write({"shared.py": shared, "app.py": system})
    before = project.identity(imported=("app", "shared"))
    project.write({"app.py": system.replace("'old'", "'new'")})
    assert changed(before, project.identity(imported=("app", "shared"))) == RETRIEVE


def names_of(text: str) -> list[str]:
    """What a text binds."""
    return [name for name in Bindings(ast.parse(text).body).count if not name.startswith("_")]
