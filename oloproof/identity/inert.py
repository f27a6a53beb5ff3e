"""Whether a decorator, when it is applied, does nothing to anything but the function it is given.

What it writes into module globals is allowed, since that is visible from its references.
"""

from __future__ import annotations

import ast

from oloproof.identity.bindings import Bindings
from oloproof.identity.knowledge import (
    DOCUMENTATION,
    MUTATORS,
    PLAIN_BUILTINS,
    PURE_DECORATORS,
    SOURCE_READERS,
    words,
)
from oloproof.identity.scopes import Function, dotted_chain

#: Statements of a decorator, at most; longer functions are not looked at.
_LONGEST = 12
_STATEMENTS = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Return,
    ast.Pass,
    ast.Expr,
    ast.Assign,
    ast.AnnAssign,
    ast.If,
    ast.Raise,
    ast.Global,
    ast.Nonlocal,
)
_SAFE_BUILTINS = PLAIN_BUILTINS | words("getattr hasattr str int repr super ValueError TypeError KeyError")
_SAFE_METHODS = MUTATORS | words(
    "lower upper strip replace split join format get removeprefix __init_subclass__"
)
_SAFE_FUNCTIONS = frozenset(
    (
        *PURE_DECORATORS,
        *(f"builtins.{name}" for name in _SAFE_BUILTINS),
        "inspect.iscoroutinefunction",
        "asyncio.iscoroutinefunction",
    )
)
_KEEPERS = MUTATORS | {"__init_subclass__"}
_RUNNING = (ast.Await, ast.Yield, ast.YieldFrom, ast.comprehension)
_RETURNED = (ast.Name, ast.Load, ast.Call, ast.IfExp, ast.Compare, ast.Is, ast.IsNot, ast.Constant)
_TELLING = DOCUMENTATION | SOURCE_READERS


def inertness(node: Function, bindings: Bindings) -> int:
    """1 when the function's own statements are inert; 2 when it also returns nothing but functions defined inside it,
    which are inert too (`@decorator(...)` calls those); 0 when nothing is known."""
    if not _may_decorate(node):
        return 0
    inner: list[Function] = []
    returned: list[ast.expr] = []
    calls = _inner_calls(node, bindings, inner, returned)
    if calls is None:
        return 0
    names = {part.name for part in inner}
    if all(_inner_calls(part, bindings, [], []) == set() for part in inner) and calls <= names:
        return 2 if _is_made_of(returned, names, node) else int(not calls)
    return int(not calls)


def _may_decorate(node: Function) -> bool:
    """Whether it looks at all like a decorator, or like a method that keeps what it is given."""
    if len(node.body) > _LONGEST:
        return False
    if node.name in _KEEPERS or any(isinstance(statement, ast.FunctionDef) for statement in node.body):
        return True
    last = node.body[-1]
    return isinstance(last, ast.Return) and isinstance(last.value, ast.Name)


def _inner_calls(
    node: Function, bindings: Bindings, inner: list[Function], returned: list[ast.expr]
) -> set[str] | None:
    """The local names that the function's own statements call, when they are inert otherwise, else None. Functions
    inside it and what it returns are added to the lists."""
    called: set[str] = set()
    stack: list[ast.AST] = list(reversed(node.body))
    while stack:
        part = stack.pop()
        if isinstance(part, ast.stmt):
            if not isinstance(part, _STATEMENTS):
                return None
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                inner.append(part)
                stack += [*part.decorator_list, *part.args.defaults, *(d for d in part.args.kw_defaults if d)]
                continue
            if isinstance(part, ast.Return) and part.value is not None:
                returned.append(part.value)
        elif isinstance(part, ast.Lambda):
            stack += part.args.defaults
            continue
        elif isinstance(part, _RUNNING) or (isinstance(part, ast.Attribute) and part.attr in _TELLING):
            return None
        elif isinstance(part, ast.Call) and not _is_safe(part.func, bindings):
            if not isinstance(part.func, ast.Name):
                return None
            called.add(part.func.id)
        stack += ast.iter_child_nodes(part)
    return called


def _is_safe(function: ast.expr, bindings: Bindings) -> bool:
    if isinstance(function, ast.Attribute) and function.attr in _SAFE_METHODS:
        return True
    return bindings.is_listed(dotted_chain(function), _SAFE_FUNCTIONS)


def _is_made_of(returned: list[ast.expr], names: set[str], node: Function) -> bool:
    """Whether the returned values are made of the inner functions and the parameters alone."""
    known = names | {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
    parts = [part for value in returned for part in ast.walk(value)]
    if not all(isinstance(part, _RETURNED) and getattr(part, "id", None) in (*known, None) for part in parts):
        return False
    used = {part.id for part in parts if isinstance(part, ast.Name)}
    own = (part for statement in node.body for part in ast.walk(statement))
    return not any(isinstance(p, ast.Name) and p.id in used and not isinstance(p.ctx, ast.Load) for p in own)
