"""One checkout's app, ready to be called: its workers, its settings, its one-time preparation."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from oloproof.errors import ConfigurationError, UnfinishedError
from oloproof.execution.calls import Calls, ExecutorCalls, ThreadCalls
from oloproof.execution.driver import Driver
from oloproof.identity.fingerprint import stage_fingerprints
from oloproof.identity.system import System
from oloproof.settings.project import Project, check_against
from oloproof.worker.calls import START_SECONDS, perform, release, restart
from oloproof.worker.process import Checkout, Reply

TRACEBACK_LINES = 10


class AppHost:
    """Starts importing the app at once, in the background; `system()` waits for it.

    By default the calls run in worker processes on this machine; any other `Executor` may be given.
    """

    def __init__(
        self,
        project: Project,
        environment: Mapping[str, str],
        *,
        interpreter: str = sys.executable,
        executor: Executor | None = None,
    ) -> None:
        self.project = project
        settings = project.config.execution
        environment = {"PYTHONHASHSEED": "0", **environment}
        self.checkout = Checkout(
            root=str(project.root),
            target=project.config.system.rag.object,
            interpreter=interpreter,
            environment=tuple(sorted(environment.items())),
        )
        self._slots = settings.workers
        self._timeout = settings.timeout_seconds
        self._executor = executor
        self._opened: list[Calls] = []
        self._prepared = project.config.prepare is None
        self._describing = self._open_calls(START_SECONDS)
        self._describing.submit(None, {"op": "describe"})
        self._described: Reply | None = None
        self._system: System | None = None

    def system(self) -> System:
        """The effective system. Raises ConfigurationError when the app cannot be imported, is not a RAG system, or
        its settings do not fit each other."""
        if self._system is None:
            reply = self._description()
            if reply.kind is not None and not self._prepared:
                self.prepare()
                reply = perform(self.checkout, {"op": "describe"}, START_SECONDS)
            if reply.kind is not None:
                raise self._import_failed(reply)
            self._system = self._effective(reply.value)
        return self._system

    def _description(self) -> Reply:
        if self._described is None:
            done = self._describing.next_done()
            assert done is not None
            _, self._described = done
        return self._described

    def prepare(self) -> None:
        """Run the project's `prepare` command, once. Raises UnfinishedError when it fails."""
        if self._prepared:
            return
        self._prepared = True
        command = self.project.config.prepare
        assert command is not None
        done = subprocess.run(
            command,
            shell=True,
            cwd=self.project.root,
            env=dict(self.checkout.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode:
            tail = _last_lines(done.stdout.decode("utf-8", "replace"))
            raise UnfinishedError(
                f"{self.project.path}: prepare: the command {command!r} ended with exit status {done.returncode} "
                f"in {self.project.root}{tail}"
            )
        restart(self.checkout)

    def driver(self, idle: Callable[[], None]) -> Driver[Any]:
        """A driver over this host's workers; `idle` is called whenever there is only waiting left to do."""
        return Driver(
            lambda: self._open_calls(self._timeout),
            slots=self._slots,
            before_first_call=self.prepare,
            idle=idle,
        )

    def close(self) -> None:
        """End the workers, at once."""
        for calls in self._opened:
            calls.cancel()
        release(self.checkout)
        for calls in self._opened:
            calls.close()

    def _open_calls(self, timeout: float) -> Calls:
        calls: Calls
        if self._executor is None:
            calls = ThreadCalls(self.checkout, self._slots, timeout)
        else:
            calls = ExecutorCalls(self._executor, self.checkout, timeout)
        self._opened.append(calls)
        return calls

    def _effective(self, found: Mapping[str, Any]) -> System:
        declared = found["settings"]
        chosen = self.project.config.system
        rag = chosen.rag
        budget = rag.token_budget if "token_budget" in rag.model_fields_set else declared["token_budget"]
        depth, top_k = rag.depth or declared["depth"], rag.top_k or declared["top_k"]
        if budget is not None and not found["counts_tokens"]:
            raise ConfigurationError(
                f"{self.project.path}: system.rag.token_budget is {budget}, but {rag.object} has no method "
                "count_tokens(self, passage) -> int; add it, or set token_budget to null (tokens are never estimated)"
            )
        check_against(self.project, depth, top_k)
        try:
            prints = stage_fingerprints(found["modules"], found["python"])
        except OSError as error:
            raise ConfigurationError(f"{error.filename}: cannot be read ({error.strerror})") from None
        return System(
            name=chosen.name or declared["name"],
            version=chosen.version or declared["version"],
            object=rag.object,
            depth=depth,
            top_k=top_k,
            token_budget=budget,
            index_version=rag.index_version or declared["index_version"],
            fingerprints=prints,
        )

    def _import_failed(self, reply: Reply) -> ConfigurationError:
        target = self.checkout.target
        if reply.kind == "invalid_return":
            return ConfigurationError(f"{self.project.path}: system.rag.object: {reply.message}")
        tail = _last_lines(reply.traceback or reply.log or "")
        return ConfigurationError(
            f"{self.project.path}: system.rag.object: {target} could not be imported from "
            f"{self.project.root}: {reply.message}{tail}"
        )


def _last_lines(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()][-TRACEBACK_LINES:]
    return "".join(f"\n    {line}" for line in lines)


def default_environment() -> dict[str, str]:
    """The environment that workers get: this process's own."""
    return dict(os.environ)
