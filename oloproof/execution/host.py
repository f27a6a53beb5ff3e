"""One checkout's app, ready to be called: its workers, its settings, its one-time preparation.

What identifies its results and drives its cases is imported once the worker has been started, which takes as long.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property, partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from oloproof.checkouts import tracked_by_git, watched_folder
from oloproof.errors import ConfigurationError, UnfinishedError
from oloproof.evaluators import AnyEvaluator, PythonEvaluator
from oloproof.evaluators.python import function_path
from oloproof.execution.calls import Calls, Done, ExecutorCalls, Lanes, ModelCalls, ThreadCalls
from oloproof.execution.description import Description
from oloproof.execution.direct import DirectCalls
from oloproof.settings.project import Project, check_against
from oloproof.worker.account import Account
from oloproof.worker.calls import START_SECONDS, perform, release, restart
from oloproof.worker.process import Checkout, Reply

if TYPE_CHECKING:
    from oloproof.execution.driver import Driver
    from oloproof.execution.identifying import Surroundings
    from oloproof.identity.files import FileRecords, ProjectFiles
    from oloproof.identity.fingerprint import Ingredients, PackageFacts, ParseCache
    from oloproof.identity.system import Reranker, System
    from oloproof.judges.calling import Provider
    from oloproof.judges.costs import JudgeCosts

TRACEBACK_LINES = 10
#: Variables that a worker keeps whatever `execution.env` leaves out: without them programs do not run as expected.
ALWAYS_KEPT = frozenset(
    {"PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"}
)


class AppHost:
    """Starts importing the app at once, in the background; `system()` waits for it.

    By default the calls run in worker processes on this machine; any other `Executor` may be given. `environment` is
    that of the workers, narrowed to what `execution.env` names; `named` gives the values of the variables that count,
    when those are not the workers' own. `account` is the user that the project's code runs as, by default this one.
    `provider` is asked what judges want to know.
    """

    def __init__(
        self,
        project: Project,
        environment: Mapping[str, str],
        *,
        interpreter: str = sys.executable,
        executor: Executor | None = None,
        named: Mapping[str, str] | None = None,
        account: Account | None = None,
        provider: Provider | None = None,
    ) -> None:
        self.project = project
        self.provider = provider
        settings = project.config.execution
        self._named = environment if named is None else named
        environment = {"PYTHONHASHSEED": "0", **_narrowed(environment, settings.env)}
        self.checkout = Checkout(
            root=str(project.root),
            target=project.config.system.rag.object,
            interpreter=interpreter,
            environment=tuple(sorted(environment.items())),
            watch=str(watched_folder(project.root)),
            threads=settings.threads,
            memory_mb=settings.memory_mb,
            account=account,
        )
        self._slots = settings.workers * settings.threads
        self._timeout = settings.timeout_seconds
        self._executor = executor
        self._opened: list[Calls] = []
        self._prepared = project.config.prepare is None
        self._describing = self._open_calls(START_SECONDS, SimpleQueue())
        self._describing.submit(None, {"op": "describe"})
        self._described: Reply | None = None
        self._description: Description | None = None
        self._system: System | None = None
        self._ingredients: dict[str, Ingredients] = {}
        self._sources: dict[str, tuple[int, int] | None] = {}

    def check(self) -> str:
        """Wait for the import; gives the system's name. Raises as `description` does."""
        return self.project.config.system.name or self.description.declared.name

    @property
    def description(self) -> Description:
        """What the worker told of the app, once it is imported. Raises ConfigurationError when it cannot be, when it is
        no RAG system, or when its settings do not fit each other."""
        if self._description is None:
            reply = self._described_first()
            if reply.kind is not None and not self._prepared:
                self.prepare()
                reply = perform(self.checkout, {"op": "describe"}, START_SECONDS)
            if reply.kind is not None:
                raise self._import_failed(reply, self.checkout.target, ("system", "rag", "object"))
            self._description = self._checked(Description.of(reply.value))
        return self._description

    def system(self, outlines: ParseCache | None = None) -> System:
        """The effective system, with the fingerprints of its code; raises as `check` does. `outlines` keeps what was
        found in source files."""
        if self._system is None:
            self._system = self._effective(self.description, outlines)
        return self._system

    def evaluators(self, outlines: ParseCache | None = None) -> tuple[AnyEvaluator, ...]:
        """The project's evaluators, those that are the user's own code with its fingerprint."""
        found: list[AnyEvaluator] = []
        for each in self.project.config.evaluators:
            if isinstance(each, PythonEvaluator):
                code = self._surroundings().code(each.object, {}, outlines)
                self._ingredients[f"evaluator {each.criterion_name}"] = code.ingredients["generate"]
                each = each.with_code(code.fingerprints.generate)
            found.append(each)
        return tuple(found)

    def check_evaluators(self) -> None:
        """Raises ConfigurationError when an evaluator that is the user's own code cannot be imported or is not there,
        so that nothing is run that could not be judged."""
        for index, each in enumerate(self.project.config.evaluators):
            if not isinstance(each, PythonEvaluator):
                continue
            reply = self._found_function(each.object)
            if reply.kind is not None:
                raise self._import_failed(reply, each.object, ("evaluators", index, "object"))

    def check_reranker(self, name: str) -> None:
        """Raises ConfigurationError when a function `module:function` cannot be imported or is not there."""
        reply = self._found_function(name)
        if reply.kind is not None:
            raise ConfigurationError(f"the reranker {name} cannot be called: {reply.message}")

    def _found_function(self, name: str) -> Reply:
        request = {"op": "find", "object": name}
        reply = perform(self.checkout, request, START_SECONDS)
        if reply.kind is not None and not self._prepared:
            self.prepare()
            reply = perform(self.checkout, request, START_SECONDS)
        return reply

    def code_of(self, name: str, outlines: ParseCache | None = None) -> str:
        """The fingerprint of the code that a function of the user's, `module:function`, reaches."""
        return self._surroundings().code(name, {}, outlines).fingerprints.generate

    def reranker(self, name: str, outlines: ParseCache | None = None) -> Reranker:
        """The reranker `module:function` with the fingerprint of its code. Raises ConfigurationError when the name has
        another form."""
        from oloproof.identity.system import Reranker

        try:
            return Reranker(function_path(name), self.code_of(name, outlines))
        except ValueError as error:
            raise ConfigurationError(f"reranker: {error}") from None

    def check_unchanged(self) -> None:
        """Raise UnfinishedError when a source file of the app is no longer the one that was fingerprinted: a worker
        started since would run other code than its results are stored under."""
        for file, before in self._sources.items():
            if _stamp(file) != before:
                raise UnfinishedError(
                    f"{file}: changed while the run was going on; what finished before is kept, run again"
                )

    def ask(self, request: dict[str, Any]) -> Reply:
        """One request to a worker, waited for."""
        self.prepare()
        return perform(self.checkout, request, self._timeout)

    @property
    def index_version(self) -> str:
        """The index_version in force, the class's own or the configuration's."""
        return self.project.config.system.rag.index_version or self.description.declared.index_version

    @property
    def ingredients(self) -> Mapping[str, Ingredients]:
        """What the identities of results are made of: of the code by stage, of the environment, of `prepare`, and of
        each evaluator that is the user's own code."""
        return self._ingredients

    @property
    def judge_costs(self) -> JudgeCosts | None:
        """What judges took of the provider so far, for all who share it; None where the project has no judge."""
        return None if self.provider is None else self.provider.ledger.costs

    def files(self, records: FileRecords) -> ProjectFiles:
        """The checkout's files as stage results depend on them. What `prepare` makes does not count: `index_version`
        stands for it."""
        from oloproof.identity.files import ProjectFiles

        identity = self.project.config.identity
        root = Path(self.checkout.watch)
        counts = self._tracked if self.project.config.prepare is not None else None
        return ProjectFiles(
            root, records, identity.ignore_files, counts or (lambda path: True), self.project.root
        )

    @cached_property
    def _tracked(self) -> Callable[[str], bool] | None:
        checkout = self.checkout
        return tracked_by_git(Path(checkout.watch), dict(checkout.environment), checkout.account)

    def _described_first(self) -> Reply:
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
        account = self.checkout.account
        # Into a file: what the command leaves running in the background may hold its output open for ever.
        with tempfile.TemporaryFile() as output:
            status = subprocess.Popen(
                command,
                shell=True,
                cwd=self.project.root,
                env=dict(self.checkout.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                **({} if account is None else account.popen_arguments()),
            ).wait()
            output.seek(0)
            tail = _last_lines(output.read().decode("utf-8", "replace"))
        if status:
            raise UnfinishedError(
                f"{self.project.path}: prepare: the command {command!r} ended with exit status {status} "
                f"in {self.project.root}{tail}"
            )
        restart(self.checkout)

    def driver(self, idle: Callable[[], None]) -> Driver:
        """A driver over this host's workers, and over models where there is a provider of them; `idle` is called
        whenever there is only waiting left to do."""
        from oloproof.execution.driver import Driver

        provider = self.provider
        return Driver(
            (lambda: self._open_calls(self._timeout))
            if provider is None
            else (lambda: self._open_lanes(provider)),
            slots=self._slots,
            waiting=0 if provider is None else provider.max_in_flight,
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

    def _open_calls(self, timeout: float, done: Done | None = None) -> Calls:
        calls: Calls
        if self._executor is None and self._slots == 1 and done is None:
            calls = DirectCalls(self.checkout, timeout)
        elif self._executor is None:
            serve = partial(perform, self.checkout, timeout=timeout)
            calls = ThreadCalls(serve, self._slots, done)
        else:
            calls = ExecutorCalls(self._executor, self.checkout, timeout, done)
        self._opened.append(calls)
        return calls

    def _open_lanes(self, provider: Provider) -> Calls:
        """Calls to workers and to models side by side."""
        done: Done = SimpleQueue()
        models = ModelCalls(partial(_ask, provider), provider.max_in_flight, done, provider.say)
        self._opened.append(models)
        return Lanes(self._open_calls(self._timeout, done), models, done)

    def _checked(self, found: Description) -> Description:
        """What the worker told of the app, once the settings are known to fit each other."""
        depth, top_k, budget = self._settings(found)
        if budget is not None and not found.counts_tokens:
            target = self.checkout.target
            raise ConfigurationError(
                self.project.lines.problem(
                    ("system", "rag", "token_budget"),
                    f"is {budget}, but {target} has no method count_tokens(self, passage) -> int; add it, or set "
                    "token_budget to null (tokens are never estimated)",
                )
            )
        check_against(self.project, depth, top_k)
        return found

    def _settings(self, found: Description) -> tuple[int, int, int | None]:
        """depth, top_k and token_budget: the class's own, or what the configuration puts in their place."""
        declared, rag = found.declared, self.project.config.system.rag
        budget = rag.token_budget if "token_budget" in rag.model_fields_set else declared.token_budget
        return rag.depth or declared.depth, rag.top_k or declared.top_k, budget

    def _effective(self, found: Description, outlines: ParseCache | None) -> System:
        from oloproof.execution.identifying import environment_digest, preparation_digest, variables
        from oloproof.identity.system import ENVIRONMENT, PREPARE, System

        declared, chosen = found.declared, self.project.config.system
        depth, top_k, budget = self._settings(found)
        self._sources = {file: _stamp(file) for file in found.modules.values()}
        code = self._surroundings().code(self.checkout.target, found.modules, outlines)
        self._ingredients |= code.ingredients
        identity, command = self.project.config.identity, self.project.config.prepare
        self._ingredients[ENVIRONMENT] = variables(identity.env, self._named)
        if command is not None:
            self._ingredients[PREPARE] = self._surroundings().preparation(
                command, self.project.root, Path(self.checkout.watch), self._tracked, outlines
            )
        return System(
            name=chosen.name or declared.name,
            version=chosen.version or declared.version,
            object=self.checkout.target,
            depth=depth,
            top_k=top_k,
            token_budget=budget,
            index_version=self.index_version,
            fingerprints=code.fingerprints,
            environment=environment_digest(identity.env, self._named),
            prepare="" if command is None else preparation_digest(self._ingredients[PREPARE]),
        )

    def _surroundings(self) -> Surroundings:
        from oloproof.execution.identifying import Surroundings

        found = self.description
        return Surroundings(found.search, found.python, self._packages, found.installed)

    def _packages(self, names: frozenset[str]) -> PackageFacts:
        from oloproof.identity.fingerprint import PackageFacts

        if not names:
            return PackageFacts({}, {}, {})
        reply = perform(self.checkout, {"op": "packages", "names": sorted(names)}, START_SECONDS)
        if reply.kind is not None:
            raise UnfinishedError(
                f"the versions of the installed packages could not be read: {reply.message}"
            )
        return PackageFacts(**reply.value)

    def _import_failed(self, reply: Reply, target: str, where: tuple[str | int, ...]) -> ConfigurationError:
        if reply.kind == "invalid_return":
            return ConfigurationError(self.project.lines.problem(where, reply.message))
        tail = _last_lines(reply.traceback or reply.log or "")
        sentence = f"{target} could not be imported from {self.project.root}: {reply.message}"
        return ConfigurationError(self.project.lines.problem(where, sentence) + tail)


def _ask(provider: Provider, message: dict[str, Any]) -> Reply:
    return Reply(value=provider.call(message["call"]))


def _narrowed(environment: Mapping[str, str], names: Sequence[str] | None) -> Mapping[str, str]:
    if names is None:
        return environment
    wanted = ALWAYS_KEPT | set(names)
    return {n: value for n, value in environment.items() if n in wanted or n.startswith(("LC_", "PYTHON"))}


def _stamp(file: str) -> tuple[int, int] | None:
    """Size and time of change of a file, None when it is not there."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _last_lines(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()][-TRACEBACK_LINES:]
    return "".join(f"\n    {line}" for line in lines)
