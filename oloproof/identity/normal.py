"""The normal form of a piece of code, and the names it refers to, read off its syntax tree in one pass.

The normal form leaves out comments, docstrings, annotations, formatting and positions. Docstrings and annotations
are read apart, since some code shows them to a model.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable

from oloproof.identity.aliases import sources
from oloproof.identity.attributes import Visitors
from oloproof.identity.bindings import imported
from oloproof.identity.expressions import Expressions
from oloproof.identity.knowledge import FORGETFUL_DECORATORS, PURE_DECORATORS
from oloproof.identity.scopes import CLASS, MODULE, Function, dotted_chain, first_parameter


def short_digest(tokens: Iterable[str]) -> str:
    """80 bits over tokens, in hex."""
    return hashlib.blake2b("\n".join(tokens).encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


class Reader(Expressions):
    """Reads statements, definitions and expressions."""

    #: Definitions inside a compound statement of the module.
    definitions: tuple[Function | ast.ClassDef, ...] = ()
    #: Definitions inside a function that it passes on as values.
    shown: tuple[Function | ast.ClassDef, ...] = ()

    def unit(self, node: Function) -> None:
        """Read a function or method of the module or of one of its classes, without docstring and annotations."""
        self.tokens += (node.__class__.__name__, node.name)
        self.read_all(node.decorator_list)
        self._function(node, self._class is not None)

    def _function(self, node: Function, method: bool) -> None:
        self.parameters(node.args)
        before = self._receiver
        self.enter_function(node.args)
        if method and not self._is_static(node):
            self._receiver = first_parameter(node.args)
            if self._receiver is None and node.args.vararg is not None:
                self.refs.add("r@")
        self.read_all(node.body)
        self.close()
        self._receiver = before

    def nested_function(self, node: Function) -> None:
        self.bind(node.name)
        self.tokens += (node.__class__.__name__, node.name)
        self.read_all(node.decorator_list)
        self._keep_documentation(node, shown=not all(map(self.is_pure, node.decorator_list)))
        self._function(node, self._scope is self._class)

    def _is_static(self, node: Function) -> bool:
        chains = (dotted_chain(decorator) for decorator in node.decorator_list)
        return any(chain and self._bindings.dotted(chain) == "builtins.staticmethod" for chain in chains)

    def nested_class(self, node: ast.ClassDef) -> None:
        self.bind(node.name)
        self.tokens += ("ClassDef", node.name)
        self.read_all(node.decorator_list)
        for base in node.bases:
            self.read_safely(base)
        self.read_all(keyword.value for keyword in node.keywords)
        self.tokens += [str(keyword.arg) for keyword in node.keywords]
        self._keep_documentation(node, shown=bool(node.bases or node.keywords or node.decorator_list))
        self.open(CLASS)
        self.read_all(node.body)
        self.close()

    def _keep_documentation(self, node: Function | ast.ClassDef, shown: bool) -> None:
        if self._scope.kind == MODULE:
            self.definitions += (node,)
        elif shown:
            self.show(node)
        else:
            self._scope.tools += (node,)

    def show(self, node: Function | ast.ClassDef) -> None:
        if self.is_documented(node):
            self.shown += (node,)
            self.refs.add("V")

    def is_pure(self, decorator: ast.expr) -> bool:
        """Whether a decorator is known to do nothing but wrap, and not to look at docstrings."""
        if isinstance(decorator, ast.Call):
            decorator = decorator.func
        return self._bindings.is_listed(dotted_chain(decorator), PURE_DECORATORS)

    def keeps_nothing(self, decorator: ast.expr) -> bool:
        """Whether a decorator is known to keep nothing of what a function gives."""
        if isinstance(decorator, ast.Call):
            decorator = decorator.func
        return self._bindings.is_listed(dotted_chain(decorator), FORGETFUL_DECORATORS)

    @staticmethod
    def is_documented(node: Function | ast.ClassDef) -> bool:
        """Whether `documentation` would find anything."""
        if isinstance(node, ast.ClassDef) or node.returns is not None:
            return True
        first, arguments = node.body[0], node.args
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            return True
        parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        return any(each and each.annotation for each in (*parameters, arguments.vararg, arguments.kwarg))

    def documentation(self, node: Function | ast.ClassDef) -> None:
        """Read the docstring and annotations of a definition; of a class also those of its methods."""
        text = ast.get_docstring(node, clean=False)
        if text is not None:
            self.tokens += ("docstring", repr(text))
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                    self.documentation(statement)
            return
        arguments = node.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for parameter in (*parameters, arguments.vararg, arguments.kwarg):
            if parameter is not None and parameter.annotation is not None:
                self.tokens.append(parameter.arg)
                self._annotation(parameter.annotation)
        if node.returns is not None:
            self.tokens.append("->")
            self._annotation(node.returns)

    def _annotation(self, node: ast.expr) -> None:
        """Read an annotation, and what the strings in it name."""
        self.in_annotation = True
        self.read(node)
        self.in_annotation = False

    # -------------------------------------------------------------------------------------- statements

    def expression_statement(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.tokens.append("Do")
            self.call(node.value, "s")
        elif not isinstance(node.value, ast.Constant):
            self.tokens.append("Do")
            self.read(node.value)

    def assign(self, node: ast.Assign) -> None:
        self.tokens.append("Assign")
        self.read_all(node.targets)
        for target in node.targets:
            self.alias(target, node.value)
            if isinstance(target, ast.Attribute) and self._is_receiver(target.value):
                self.share(target.attr, node.value)
            elif isinstance(target, ast.Tuple):
                self._share_each(target, node.value)
        self._value(node.targets[0] if len(node.targets) == 1 else None, node.value)

    def _share_each(self, target: ast.Tuple, value: ast.expr) -> None:
        """`self.one, self.other = A(x), B(x)`."""
        for each in target.elts:
            if isinstance(each, ast.Attribute) and self._is_receiver(each.value):
                for part in value.elts if isinstance(value, ast.Tuple) else [value]:
                    self.share(each.attr, part)

    def annotated_assign(self, node: ast.AnnAssign) -> None:
        self.tokens.append("Assign" if node.value else "Declare")
        self.read_all([node.target])
        if self._scope.kind == CLASS:
            self.tokens.append(":")
            self.read(node.annotation)
        if node.value is not None:
            self.alias(node.target, node.value)
            if isinstance(node.target, ast.Attribute) and self._is_receiver(node.target.value):
                self.share(node.target.attr, node.value)
            self._value(node.target, node.value)

    def _value(self, target: ast.expr | None, value: ast.expr) -> None:
        """Read what is assigned; `self.attribute = Class(...)` and `NAME = Class(...)` are told apart from other
        calls."""
        if isinstance(value, ast.Call):
            if isinstance(target, ast.Name) and self._scope.kind == MODULE:
                self.call(value, "n>")
                return
            if isinstance(target, ast.Attribute) and self._is_receiver(target.value):
                self.call(value, f"n{target.attr}>")
                return
        self.read(value)

    def loop(self, node: ast.For | ast.AsyncFor) -> None:
        """Note where the elements come from."""
        self.alias_parts(node.target, node.iter)

    def manager(self, node: ast.withitem) -> None:
        """Note where what the manager gives comes from."""
        if node.optional_vars is not None:
            self.alias(node.optional_vars, node.context_expr)

    def named_expression(self, node: ast.NamedExpr) -> None:
        """Note where the value comes from."""
        self.alias(node.target, node.value)

    def matched(self, node: ast.Match) -> None:
        """Note that what a pattern binds may be any part of the subject."""
        names = [
            part.name
            for part in ast.walk(node)
            if isinstance(part, ast.MatchAs | ast.MatchStar) and part.name
        ]
        for name in names:
            self.alias(ast.Name(name), node.subject)

    def given_back(self, node: ast.Return | ast.Yield | ast.YieldFrom) -> None:
        """Note where the value comes from that somebody else is given."""
        for kind, root, path in sources(node.value):
            self.load("Y" if kind == "z" else "y", root, path)

    def _is_receiver(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self._receiver

    def skip(self, node: ast.Pass) -> None:
        pass

    def global_names(self, node: ast.Global | ast.Nonlocal) -> None:
        self.tokens += (node.__class__.__name__, *node.names)
        scope = self._scope
        if isinstance(node, ast.Global):
            scope.outside = scope.outside.union(node.names)
        else:
            scope.borrowed = scope.borrowed.union(node.names)

    def import_statement(self, node: ast.Import | ast.ImportFrom) -> None:
        self.tokens.append("import")
        for name, target in imported(node):
            self.tokens += (name, target)
            self.refs.add("i" + target.removesuffix("*"))
            if name == "*":
                continue
            self.bind(name)
            if self._scope.kind == CLASS or name in self._scope.outside:
                self.refs.add("r" + target)
            elif self._scope.kind != MODULE:
                self._scope.imports += ((name, target),)
        if isinstance(node, ast.Import):
            self.refs.update(f"i/{alias.name}/" for alias in node.names)

    def handler(self, node: ast.ExceptHandler) -> None:
        self.tokens.append("except")
        self.read_safely(node.type)
        self.tokens.append(str(node.name))
        if node.name:
            self.bind(node.name)
        self.read_all(node.body)

    def raise_statement(self, node: ast.Raise) -> None:
        self.tokens.append("raise")
        self.read_safely(node.exc)
        self.read_safely(node.cause)

    def captured(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.bind(name)
        self.tokens += (node.__class__.__name__, str(name))
        if isinstance(node, ast.MatchAs):
            self.read_all([node.pattern])
        elif isinstance(node, ast.MatchMapping):
            self.read_all(node.keys)
            self.read_all(node.patterns)


Reader.visitors = Visitors(
    {
        list: Reader.read_all,
        ast.Name: Reader.name,
        ast.Constant: Reader.constant,
        ast.Attribute: Reader.attribute,
        ast.Subscript: Reader.subscript,
        ast.Call: Reader.call,
        ast.Compare: Reader.comparison,
        ast.UnaryOp: Reader.negation,
        ast.ListComp: Reader.comprehension,
        ast.SetComp: Reader.comprehension,
        ast.GeneratorExp: Reader.comprehension,
        ast.DictComp: Reader.comprehension,
        ast.Lambda: Reader.lambda_function,
        ast.FunctionDef: Reader.nested_function,
        ast.AsyncFunctionDef: Reader.nested_function,
        ast.ClassDef: Reader.nested_class,
        ast.Expr: Reader.expression_statement,
        ast.Assign: Reader.assign,
        ast.AugAssign: Reader.augmented_assign,
        ast.AnnAssign: Reader.annotated_assign,
        ast.Pass: Reader.skip,
        ast.Global: Reader.global_names,
        ast.Nonlocal: Reader.global_names,
        ast.Import: Reader.import_statement,
        ast.ImportFrom: Reader.import_statement,
        ast.ExceptHandler: Reader.handler,
        ast.Raise: Reader.raise_statement,
        ast.MatchAs: Reader.captured,
        ast.MatchStar: Reader.captured,
        ast.MatchMapping: Reader.captured,
    }
)
for _kind, _note in (
    (ast.For, Reader.loop),
    (ast.AsyncFor, Reader.loop),
    (ast.withitem, Reader.manager),
    (ast.NamedExpr, Reader.named_expression),
    (ast.Match, Reader.matched),
    (ast.Return, Reader.given_back),
    (ast.Yield, Reader.given_back),
):
    Reader.visitors.noting(_kind, _note)
