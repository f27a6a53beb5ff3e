"""The steps of one case as a generator: it yields requests for the worker and is sent the replies.

So the order of stages and the look-ups between them stand here in one place, while the driver decides how many
cases are under way at once and where the requests run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from oloproof.errors import ConfigurationError
from oloproof.execution.assembly import kept_within_budget
from oloproof.identity.files import ProjectFiles
from oloproof.identity.system import Identities, System
from oloproof.records import Attempt, Candidate, Case, Execution, StageError
from oloproof.store.results import Key, Results, StoredGeneration, StoredRetrieval
from oloproof.turns import WAIT, Turn
from oloproof.worker.process import Reply

T = TypeVar("T")

#: What a case's steps ask of the worker.
Request = dict[str, Any]
#: Steps that end in a value.
StepsTo = Generator[Request, Reply, T]
Steps = StepsTo[Execution]

#: How many token counts are kept at hand.
MAX_COUNTS_AT_HAND = 200_000


class StageFailed(Exception):
    """A stage gave no usable result; carries the last reply."""

    def __init__(self, stage: str, reply: Reply) -> None:
        super().__init__(stage)
        self.error = StageError(stage, reply.kind or "exception", reply.message, reply.traceback)


@dataclass
class Trace:
    """What is known of an execution while it is under way."""

    seconds: dict[str, float] = field(default_factory=dict)
    log: str = ""
    attempts: list[Attempt] = field(default_factory=list)

    def note(self, stage: str, reply: Reply) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + reply.seconds
        self.log += reply.log
        if reply.kind is not None:
            self.attempts.append(Attempt(stage, reply.kind, reply.message))


@dataclass
class StageCounts:
    """Hits and misses of the two stages."""

    retrieve_hit: int = 0
    retrieve_miss: int = 0
    generate_hit: int = 0
    generate_miss: int = 0


@dataclass
class StaleIndex:
    """Stored retrievals that did not count since a file they read has changed while `index_version` has not."""

    retrievals: int = 0
    files: set[str] = field(default_factory=set)
    #: Sets of files that have been looked at: they share most of what they hold.
    seen: set[bytes] = field(default_factory=set)


class CaseSteps:
    """How a case of one system is executed, over one store.

    `files` tells which stored results still fit the checkout's files, `clock` gives seconds since the epoch. A call
    that errors is repeated up to `retries` times. With `stale_is_error` a changed file under an unchanged
    index_version raises ConfigurationError instead of a new retrieval. Without `keep` an execution that is put together
    of stored results is not stored itself.
    """

    def __init__(
        self,
        system: System,
        results: Results,
        files: ProjectFiles,
        clock: Callable[[], float],
        *,
        retries: int = 0,
        stale_is_error: bool = False,
        keep: bool = True,
    ) -> None:
        self.system = system
        self.identities = Identities(system)
        self.counts = StageCounts()
        self.stale = StaleIndex()
        #: How often each stage was really called, repeated calls included.
        self.calls: Counter[str] = Counter()
        self._results = results
        self._files = files
        self._clock = clock
        self._retries = retries
        self._stale_is_error = stale_is_error
        self._keep = keep
        self._tokens: dict[Candidate, tuple[int, bytes]] = {}
        #: Passages that are being counted.
        self._counting: dict[Candidate, Turn] = {}
        self._unions: dict[frozenset[bytes], bytes] = {}

    @property
    def programs(self) -> set[str]:
        """Programs that the stages started for the results that were looked at."""
        return self._files.programs

    def identity(self, case: Case) -> bytes:
        """The identity of the case's execution."""
        return self.identities.execution(self.identities.retrieval(case))

    def stored(self, identities: Sequence[bytes]) -> dict[bytes, Execution]:
        """The stored executions that are valid for this checkout's files."""
        found = {}
        for identity, variants in self._results.variants_of_executions(identities).items():
            for files, execution in variants:
                if self._files.valid(files):
                    found[identity] = execution
        return found

    def full(self, case: Case) -> Steps:
        """retrieve, assemble, generate; each stage from the store where it is there."""
        identity = self.identities.retrieval(case)
        trace = Trace()
        candidates: tuple[Candidate, ...] = ()
        kept = 0
        retrieval: StoredRetrieval | None = None
        try:
            retrieval = yield from self._retrieve(case, identity, trace)
            candidates = retrieval.candidates
            kept, counted = yield from self._assemble(candidates, trace)
            context = candidates[:kept]
            generation = yield from self._generate(
                case, context, self.identities.generation(case, context), trace
            )
        except StageFailed as failure:
            return self._execution(
                self.identities.execution(identity),
                candidates,
                kept,
                None,
                trace,
                failure.error,
                retrieved=retrieval is not None,
                retrieval=None if retrieval is None else retrieval.key.id,
            )
        files = self._union({retrieval.key.files, *counted, generation.key.files})
        key = Key(self.identities.execution(identity), files)
        execution = self._execution(key.id, candidates, kept, generation, trace, retrieval=retrieval.key.id)
        if self._keep:
            self._results.put_execution(execution, key, generation.key.id)
        return execution

    # ------------------------------------------------------------------------------------ stages

    def _retrieve(self, case: Case, identity: bytes, trace: Trace) -> StepsTo[StoredRetrieval]:
        variants = self._results.retrievals(identity)
        for found in variants:
            if self._files.valid(found.key.files):
                self.counts.retrieve_hit += 1
                return found
        if variants:
            self._note_stale(variants[-1].key.files)
        self.counts.retrieve_miss += 1
        request = {"op": "retrieve", "input": case.input, "depth": self.system.depth}
        reply = yield from self._call(request, trace)
        rows = reply.value["candidates"]
        ids = self._results.put_texts(row[3] for row in rows)
        candidates = tuple(
            [Candidate(row[0], row[1], row[2], name) for row, name in zip(rows, ids, strict=True)]
        )
        key = Key(identity, self._files.identify(reply.reads))
        made = StoredRetrieval(key, reply.value["query"], candidates, reply.seconds, reply.log)
        for earlier in self._results.retrievals(identity) if self._results.shared else ():
            if self._files.valid(earlier.key.files):
                return earlier  # another run on this store was quicker, and its result is the one that stands
        self._results.put_retrieval(made, self._clock(), self.system.index_version)
        return made

    def _note_stale(self, files: bytes) -> None:
        changed = self._files.changed(files, self.stale.seen)
        if self._stale_is_error:
            raise ConfigurationError(
                f"{', '.join(sorted(changed))}: changed, and index_version is still {self.system.index_version!r}, "
                "so stored retrievals may not be what the index gives now; change index_version, or set "
                "identity.on_stale_index to rerun"
            )
        self.stale.retrievals += 1
        self.stale.files.update(changed)

    def _assemble(self, candidates: tuple[Candidate, ...], trace: Trace) -> StepsTo[tuple[int, set[bytes]]]:
        """How many candidates make the context, and the sets of files that their token counts depend on."""
        first = candidates[: self.system.top_k]
        budget = self.system.token_budget
        if budget is None or not first:
            return len(first), set()
        patient = True
        while unknown := [c for c in first if c not in self._tokens]:
            turns = {self._counting[c] for c in unknown if c in self._counting} if patient else set()
            yield from self._count([c for c in unknown if self._counting.get(c) not in turns], trace)
            for turn in turns:
                if not turn.over:
                    yield {"op": WAIT, "turn": turn}
            # Who has waited in vain counts by itself: what fails, or takes all its time, is not waited for in a row.
            patient = not turns
        counts = [self._tokens[c] for c in first]
        return kept_within_budget([tokens for tokens, _ in counts], budget), {files for _, files in counts}

    def _count(self, unknown: list[Candidate], trace: Trace) -> StepsTo[None]:
        """Have those passages counted whose count is not stored."""
        if len(self._tokens) > MAX_COUNTS_AT_HAND:
            self._tokens.clear()
        names = {self.identities.token_count(c): c for c in unknown}
        for name, variants in self._results.token_counts(list(names)).items():
            for files, tokens in variants:
                if self._files.valid(files):
                    self._tokens[names[name]] = (tokens, files)
        names = {name: c for name, c in names.items() if c not in self._tokens}
        if not names:
            return
        turn = Turn()
        self._counting.update(dict.fromkeys(names.values(), turn))
        try:
            request = {"op": "count_tokens", "passages": self._passages(list(names.values()))}
            reply = yield from self._call(request, trace)
            files = self._files.identify(reply.reads)
            self._results.put_token_counts(files, zip(names, reply.value, strict=True))
            for candidate, tokens in zip(names.values(), reply.value, strict=True):
                self._tokens[candidate] = (tokens, files)
        finally:
            turn.over = True
            for candidate in names.values():
                if self._counting.get(candidate) is turn:
                    del self._counting[candidate]

    def _generate(
        self, case: Case, context: tuple[Candidate, ...], identity: bytes, trace: Trace
    ) -> StepsTo[StoredGeneration]:
        for found in self._results.generations(identity):
            if self._files.valid(found.key.files):
                self.counts.generate_hit += 1
                return found
        self.counts.generate_miss += 1
        request = {"op": "generate", "input": case.input, "context": self._passages(context)}
        reply = yield from self._call(request, trace)
        key = Key(identity, self._files.identify(reply.reads))
        made = StoredGeneration(key, reply.value, reply.seconds, reply.log)
        for earlier in self._results.generations(identity) if self._results.shared else ():
            if self._files.valid(earlier.key.files):
                return earlier  # as above
        self._results.put_generation(made, self._clock())
        return made

    def _call(self, request: Request, trace: Trace) -> StepsTo[Reply]:
        """One stage call, repeated when it errors and retries are left."""
        stage = request["op"]
        for left in range(self._retries, -1, -1):
            self.calls[stage] += 1
            reply = yield request
            trace.note(stage, reply)
            if reply.kind is None:
                return reply
            if not left:
                raise StageFailed(stage, reply)
        raise AssertionError("unreachable")

    # ----------------------------------------------------------------------------------- results

    def _union(self, sets: set[bytes]) -> bytes:
        """The set of all files of several sets, each of which is valid now."""
        if len(sets) == 1:
            return next(iter(sets))
        name = frozenset(sets)
        if name not in self._unions:
            self._unions[name] = self._files.union(sets)
        return self._unions[name]

    def _passages(self, candidates: Sequence[Candidate]) -> list[list[Any]]:
        texts = self._results.texts(c.text_id for c in candidates)
        return [[c.doc_id, c.chunk_id, c.score, texts[c.text_id]] for c in candidates]

    def _execution(
        self,
        identity: bytes,
        candidates: tuple[Candidate, ...],
        kept: int,
        generation: StoredGeneration | None,
        trace: Trace,
        error: StageError | None = None,
        *,
        gold: tuple[Candidate, ...] | None = None,
        retrieved: bool = True,
        retrieval: bytes | None = None,
    ) -> Execution:
        return Execution(
            id=identity,
            candidates=candidates,
            top_k=self.system.top_k,
            kept=kept,
            output=None if generation is None else json.loads(generation.output),
            error=error,
            gold=gold,
            retrieved=retrieved,
            seconds=trace.seconds,
            log=trace.log,
            retrieval=retrieval,
            attempts=tuple(trace.attempts),
        )
