"""Calls, comprehensions and the parameters of functions in normal form."""

from __future__ import annotations

import ast
from collections.abc import Callable

from oloproof.identity.aliases import sources
from oloproof.identity.attributes import Attributes
from oloproof.identity.flows import KEPT
from oloproof.identity.knowledge import MUTATORS, PLAIN_BUILTINS, RAG_SYSTEM
from oloproof.identity.scopes import (
    CLASS,
    COMPREHENSION,
    FUNCTION,
    MODULE,
    dotted_chain,
    first_parameter,
)

_NAMED_ATTRIBUTE = {"getattr": "r", "hasattr": "c", "setattr": "w", "delattr": "w"}
_SHOWING = frozenset({"super", "eval", "exec", "locals", "vars", "dir", *_NAMED_ATTRIBUTE})
#: Builtins that neither change what they are given nor give it to a function.
_TAKING_ONLY = PLAIN_BUILTINS - {"map", "filter", "next"}
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Expressions(Attributes):
    """Reads all expressions."""

    #: Whether something is called when the module is imported.
    calls = False

    def call(self, node: ast.Call, use: str = "") -> None:
        """Read a call. `use`: `s` when its result is thrown away, `nattribute>` when it becomes that attribute."""
        function = node.func
        tokens = self.tokens
        tokens.append("Call")
        if self._scope.kind != FUNCTION:
            if self._bindings.dotted(dotted_chain(function) or "?") in RAG_SYSTEM:
                tokens.append("rag_system")  # its arguments are settings, with identities of their own
                return
            self.calls = True
        arguments: list[ast.expr] = node.args
        take: Callable[[ast.AST], None] = self.read
        if isinstance(function, ast.Name):
            name = function.id
            tokens.append("N" + name)
            if self._bindings.knows_nothing_of(name):
                if name in _SHOWING:
                    self._builtin(name, arguments)
                if name in PLAIN_BUILTINS:
                    take = self.read_safely
                elif name in _NAMED_ATTRIBUTE and self._named_attribute(name, arguments):
                    arguments = arguments[2:]
            self.load(self._import_use(name, node) or use or "c", name, "")
        elif isinstance(function, ast.Attribute):
            if self._parent_call(function, arguments, use):
                arguments = arguments[1:]
            else:
                self._method_call(function, node, use)
        else:
            self.read(function)
        if self._scope.kind not in (MODULE, CLASS):
            self._give_arguments(node)
        tokens.append("[")
        for argument in arguments:
            take(argument)
        tokens.append("]")
        for keyword in node.keywords:
            tokens.append(f"={keyword.arg}")
            if keyword.arg == "allow_pickle" and getattr(keyword.value, "value", None) is not False:
                self.refs.add("D")
            take(keyword.value)
        tokens.append(")")

    def _give_arguments(self, node: ast.Call) -> None:
        """Note which objects are given to what is called."""
        if not node.args and not node.keywords:
            return
        found = [source for argument in node.args for source in sources(argument)]
        for keyword in node.keywords:
            found += sources(keyword.value)
        function = node.func
        if not found or (isinstance(function, ast.Name) and function.id in _TAKING_ONLY):
            return
        called = dotted_chain(function) or f"?{getattr(function, 'attr', '')}"
        if self._receiver is not None and called.startswith(f"{self._receiver}."):
            called = "?" + called.rpartition(".")[2]
        if called == "next":  # what is made for it alone is nobody else's
            found = [source for source in found if source[0] != "e"]
        self._scope.given += [(called, source) for source in found]

    def _builtin(self, name: str, arguments: list[ast.expr]) -> None:
        """Note builtins that show the names around them, among them self, or all attributes of an object."""
        last = len(arguments) - 1
        if name in ("super", "eval", "exec") or (name in ("locals", "vars", "dir") and last < 0):
            self.refs.add("r@")
            if self._scope.kind != FUNCTION and name in ("locals", "vars"):
                self.load("c", "globals", "")
        elif (
            last >= 0
            and name in ("vars", "dir", *_NAMED_ATTRIBUTE)
            and not isinstance(arguments[min(1, last)], ast.Constant)
        ):
            self._unknown.add("*")

    def comparison(self, node: ast.Compare) -> None:
        """Read a comparison; `self.part is None` asks nothing of the part."""
        self.tokens.append("Compare " + " ".join(operator.__class__.__name__ for operator in node.ops))
        right = node.comparators
        if (
            len(right) == 1
            and isinstance(node.ops[0], ast.Is | ast.IsNot)
            and isinstance(right[0], ast.Constant)
        ):
            self.read_safely(node.left, "k")
        else:
            self.read(node.left)
        self.read_all(right)

    def negation(self, node: ast.UnaryOp) -> None:
        """Read `not name`, which asks nothing of what the name holds but whether there is something."""
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Name):
            self.tokens.append("UnaryOp Not")
            self.read_safely(node.operand, "k")
        else:
            self.tokens.append("UnaryOp " + node.op.__class__.__name__)
            self.read(node.operand)

    def _method_call(self, function: ast.Attribute, node: ast.Call, use: str) -> None:
        imports = self._import_use(function.attr, node)
        if function.attr not in MUTATORS:
            self.attribute(function, imports or use or "c")
        elif use == "s":
            self.attribute(function, "m")
        else:
            self.attribute(function, use or "c")
            kept = len(self.tokens)
            self.attribute(function, "m")
            del self.tokens[kept:]

    def _parent_call(self, function: ast.Attribute, arguments: list[ast.expr], use: str) -> bool:
        """Read `Base.method(self, ...)` up to self; False for anything else."""
        if not arguments or self._receiver is None:
            return False
        first = arguments[0]
        if not isinstance(first, ast.Name) or first.id != self._receiver:
            return False
        chain = dotted_chain(function)
        root, _, path = (chain or "").partition(".")
        if chain is None or root == self._receiver:
            return False
        self.tokens += ("N" + chain, "self")
        self.load("p", root, path)
        if function.attr in MUTATORS or use == "s":
            self.load("m" if function.attr in MUTATORS else "s", root, path)
        return True

    def _import_use(self, name: str, node: ast.Call) -> str:
        """`l` for a call that imports what its one argument says; also notes what asks for attributes by name."""
        if name in ("attrgetter", "methodcaller"):
            self._unknown.add("*")
        if name in ("import_module", "__import__") and len(node.args) == 1 and not node.keywords:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value[:1] != ".":
                self.refs.add("T" + first.value)
                return "l"
        return ""

    def _named_attribute(self, name: str, arguments: list[ast.expr]) -> bool:
        """Read `getattr(x, "name")` as `x.name`, and note what `setattr` writes to; False when the name is made at
        run time."""
        target = dotted_chain(arguments[0]) if len(arguments) > 1 else None
        if target is None:
            return False
        attribute = arguments[1]
        use = _NAMED_ATTRIBUTE[name]
        root, _, path = target.partition(".")
        if not isinstance(attribute, ast.Constant) or not isinstance(attribute.value, str):
            if use == "w" and root != self._receiver:
                self.load("w", root, path)
            return False
        self.tokens += ("N" + target, repr(attribute.value))
        _, names = self.special(use, [attribute.value])
        self.load(use if names else "r", root, ".".join((*path.split("."), *names)).strip("."))
        return True

    # ---------------------------------------------------------------------------------- inner scopes

    def comprehension(self, node: _Comprehension) -> None:
        self.tokens.append(node.__class__.__name__)
        first = node.generators[0]
        self.read(first.iter)
        self.open(COMPREHENSION)
        for generator in node.generators:
            self.tokens.append("async for" if generator.is_async else "for")
            self._comprehension_target(generator.target)
            self.alias_parts(generator.target, generator.iter)
            if generator is not first:
                self.read(generator.iter)
            self.read_all(generator.ifs)
        if isinstance(node, ast.DictComp):
            self.read(node.key)
            self.read(node.value)
        else:
            self.read(node.elt)
        self.close()

    def _comprehension_target(self, target: ast.expr) -> None:
        """Read a target, whose names belong to the comprehension itself and not to the function around it."""
        scope = self._scope
        scope.kind = FUNCTION
        self.read(target)
        scope.kind = COMPREHENSION

    def lambda_function(self, node: ast.Lambda) -> None:
        self.tokens.append("lambda")
        self.parameters(node.args)
        before, method = self._receiver, self._scope is self._class
        self.enter_function(node.args)
        if method:
            self._receiver = first_parameter(node.args)
        self.read(node.body)
        self.close()
        self._receiver = before

    def parameters(self, node: ast.arguments) -> None:
        """Read the parameters with their defaults, which belong to the scope around the function."""
        tokens = self.tokens
        for group in (node.posonlyargs, node.args, node.kwonlyargs):
            tokens.append("(")
            tokens += [parameter.arg for parameter in group]
            tokens.append(")")
        tokens.append(f"*{node.vararg.arg if node.vararg else ''}")
        tokens.append(f"**{node.kwarg.arg if node.kwarg else ''}")
        self.read_all(node.defaults)
        self.read_all(node.kw_defaults)

    def enter_function(self, node: ast.arguments) -> None:
        """Open the scope of a function; the caller puts the receiver back when it closes it."""
        scope = self.open(FUNCTION)
        names = [
            parameter.arg for group in (node.posonlyargs, node.args, node.kwonlyargs) for parameter in group
        ]
        names += [extra.arg for extra in (node.vararg, node.kwarg) if extra is not None]
        scope.parameters = frozenset(names)
        scope.bound.update(names)
        positional = [*node.posonlyargs, *node.args]
        defaults = [*zip(reversed(positional), reversed(node.defaults), strict=False)]
        for parameter, default in (*defaults, *zip(node.kwonlyargs, node.kw_defaults, strict=True)):
            if default is not None and not isinstance(default, ast.Constant):
                scope.aliases[parameter.arg] = {*sources(default), KEPT}
        if self._receiver in scope.parameters:
            self._receiver = None
