"""The user's app in its worker: imported once, constructed when that is asked for, its stages called.

Loaded inside the worker, so it uses the standard library and the contract module only.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any

from oloproof.contract import SETTINGS_ATTRIBUTE
from oloproof.worker import returns, surroundings
from oloproof.worker.failures import described
from oloproof.worker.returns import InvalidReturn, kind

#: From the built-in part of `signal`, since the rest takes a while to load.
_signal: Any = importlib.import_module("_signal")
_getitimer, _setitimer, _REAL = _signal.getitimer, _signal.setitimer, _signal.ITIMER_REAL


class App:
    """`target` is `module:Class`; `finish` gives what an awaitable comes to, and anything else as it is."""

    def __init__(self, root: str, target: str, finish: Callable[[Any], Any], memory_mb: int | None) -> None:
        self._root = root
        self._target = target
        self._finish = finish
        self._memory_mb = memory_mb
        self._class: Any = None
        self._system: Any = None
        self._functions: dict[str, Any] = {}
        self._rest = Rest()
        self._operations: dict[str, Callable[[dict[str, Any]], Any]] = {
            "describe": self._describe,
            "packages": lambda request: surroundings.package_facts(request["names"]),
            "construct": self._construct,
            "retrieve": self._retrieve,
            "count_tokens": self._count_tokens,
            "generate": self._generate,
            "find": self._find,
            "evaluate": self._evaluate,
            "rerank": self._rerank,
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request; never raises."""
        operation = request["op"]
        started = perf_counter()
        try:
            reply = {"value": self._operations[operation](request)}
        except BaseException as error:  # noqa: BLE001 - whatever user code raises is an outcome of the case
            reply = {"error": self.failure(error, f"{self._target}()" if operation == "construct" else "")}
        reply["seconds"] = perf_counter() - started
        if operation in ("describe", "construct"):
            self._rest = Rest()
        else:
            self._rest.restore()
        return reply

    def failure(self, error: BaseException, where: str = "") -> dict[str, Any]:
        """An error as it is sent."""
        return described(error, where, self._memory_mb)

    def _describe(self, request: dict[str, Any]) -> dict[str, Any]:
        found = self._load()
        settings = getattr(found, SETTINGS_ATTRIBUTE, None) if isinstance(found, type) else None
        if settings is None:
            raise InvalidReturn(
                f"{self._target} is not a RAG system: expected a class decorated with "
                f"@rag_system(...), found {kind(found)}"
            )
        search = surroundings.search_folders(self._root)
        return {
            "settings": {name: getattr(settings, name) for name in settings.__dataclass_fields__},
            "counts_tokens": callable(getattr(found, "count_tokens", None)),
            "modules": surroundings.project_modules(),
            "search": search,
            "installed": surroundings.also_installed(search),
            "python": surroundings.python_version(),
        }

    def _construct(self, request: dict[str, Any]) -> None:
        self._system = self._load()()

    def _retrieve(self, request: dict[str, Any]) -> dict[str, Any]:
        depth = request["depth"]
        return returns.retrieval(self._finish(self._system.retrieve(request["input"], depth)), depth)

    def _count_tokens(self, request: dict[str, Any]) -> list[int]:
        count, finish = self._system.count_tokens, self._finish
        passages = returns.passages(request["passages"])
        return [returns.token_count(finish(count(passage))) for passage in passages]

    def _generate(self, request: dict[str, Any]) -> str:
        context = returns.passages(request["context"])
        return returns.answer(self._finish(self._system.generate(request["input"], context)))

    def _evaluate(self, request: dict[str, Any]) -> bool | float | None:
        name = request["object"]
        value = self._function(name)(
            input=request["input"],
            expected=request["expected"],
            output=request["output"],
            context=returns.passages(request["context"]),
        )
        return returns.verdict(self._finish(value), name)

    def _rerank(self, request: dict[str, Any]) -> list[int]:
        name = request["object"]
        value = self._finish(self._function(name)(request["input"], returns.passages(request["candidates"])))
        # Held against passages of its own, so that one which was altered in place shows.
        return returns.reranked(value, returns.passages(request["candidates"]), name)

    def _find(self, request: dict[str, Any]) -> None:
        """Raise what stands in the way of calling a function."""
        self._function(request["object"])

    def _function(self, name: str) -> Any:
        if name not in self._functions:
            found = _named(name, self._root)
            if not callable(found):
                raise InvalidReturn(f"{name} is no function but {kind(found)}")
            self._functions[name] = found
        return self._functions[name]

    def _load(self) -> Any:
        if self._class is None:
            self._class = _named(self._target, self._root)
        return self._class


def _named(target: str, root: str) -> Any:
    """What `module:name` stands for. Raises InvalidReturn, with the nearest name, when there is no such thing."""
    module_name, _, path = target.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        near = _nearest_module(error.name, root)
        raise InvalidReturn(f"there is no module {error.name} in {root}{near}") from None
    for part in path.split("."):
        if not hasattr(found, part):
            raise InvalidReturn(f"module {module_name} has no {path}{_nearest(part, dir(found))}")
        found = getattr(found, part)
    return found


def _nearest_module(name: str, root: str) -> str:
    import pkgutil

    parent, _, last = name.rpartition(".")
    folders = list(sys.modules[parent].__path__) if parent else [root]
    return _nearest(last, [module.name for module in pkgutil.iter_modules(folders)])


def _nearest(name: str, options: list[str]) -> str:
    from difflib import get_close_matches

    best = get_close_matches(name, [option for option in options if not option.startswith("__")], n=1)
    return f"; did you mean {best[0]}?" if best else ""


class Rest:
    """What of the process is put back after each call, as importing or constructing the app left it, so that a case
    does not depend on those before it: the current folder, and that no alarm is about to go off."""

    def __init__(self) -> None:
        self._folder = _current_folder()
        self._alarm = _getitimer(_REAL)[0] > 0

    def restore(self) -> None:
        if self._folder is not None and _current_folder() != self._folder:
            with suppress(OSError):
                os.chdir(self._folder)
        if not self._alarm and _getitimer(_REAL)[0]:
            _setitimer(_REAL, 0)


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None
