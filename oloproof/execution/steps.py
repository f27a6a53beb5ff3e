"""The steps of one case as a generator: it yields requests for the worker and is sent the replies.

So the order of stages and the look-ups between them stand here in one place, while the driver decides how many
cases are under way at once and where the requests run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from oloproof.execution.assembly import kept_within_budget
from oloproof.identity.system import Identities, System
from oloproof.records import Candidate, Case, Execution, StageError
from oloproof.store.results import Results, StoredGeneration, StoredRetrieval
from oloproof.worker.process import Reply

#: What a case's steps ask of the worker: stage and message.
Request = tuple[str, dict[str, Any]]
Steps = Generator[Request, Reply, Execution]


class StageFailed(Exception):
    """A stage gave no usable result; carries the reply."""

    def __init__(self, stage: str, reply: Reply) -> None:
        super().__init__(stage)
        self.error = StageError(stage, reply.kind or "exception", reply.message, reply.traceback)


@dataclass
class Trace:
    """What is known of an execution while it is under way."""

    seconds: dict[str, float] = field(default_factory=dict)
    log: str = ""

    def note(self, stage: str, reply: Reply) -> Reply:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + reply.seconds
        self.log += reply.log
        if reply.kind is not None:
            raise StageFailed(stage, reply)
        return reply


@dataclass
class StageCounts:
    """Hits and misses of the two stages."""

    retrieve_hit: int = 0
    retrieve_miss: int = 0
    generate_hit: int = 0
    generate_miss: int = 0


class CaseSteps:
    """The ways to execute a case of one system, over one store. `clock` gives seconds since the epoch."""

    def __init__(self, system: System, results: Results, clock: Callable[[], float]) -> None:
        self.system = system
        self.identities = Identities(system)
        self.counts = StageCounts()
        self._results = results
        self._clock = clock
        self._tokens: dict[Candidate, int] = {}

    def full(self, case: Case) -> Steps:
        """retrieve, assemble, generate; each stage from the store where it is there."""
        retrieval_id = self.identities.retrieval(case)
        execution_id = self.identities.execution(retrieval_id)
        trace = Trace()
        candidates: tuple[Candidate, ...] = ()
        kept = 0
        retrieved = False
        try:
            candidates = yield from self._retrieve(case, retrieval_id, trace)
            retrieved = True
            kept = yield from self._assemble(candidates, trace)
            context = candidates[:kept]
            generation_id = self.identities.generation(case, context)
            output = yield from self._generate(case, context, generation_id, trace)
        except StageFailed as failure:
            return self._execution(
                execution_id, candidates, kept, None, trace, failure.error, retrieved=retrieved
            )
        execution = self._execution(execution_id, candidates, kept, output, trace)
        self._results.put_execution(execution, retrieval_id, generation_id)
        return execution

    def given_context(self, case: Case, passages: Sequence[tuple[Candidate, str | None]]) -> Steps:
        """generate with passages that were not retrieved; top_k and the budget do not apply."""
        context = tuple(candidate for candidate, _ in passages)
        generation_id = self.identities.generation(case, context)
        execution_id = self.identities.gold_execution(generation_id)
        trace = Trace()
        try:
            output = yield from self._generate(case, context, generation_id, trace)
        except StageFailed as failure:
            return self._execution(execution_id, (), 0, None, trace, failure.error, gold=context)
        execution = self._execution(execution_id, (), 0, output, trace, gold=context)
        self._results.put_execution(execution, None, generation_id)
        return execution

    def repeat(self, case: Case, recorded: Execution, salt: bytes) -> Steps:
        """The control: generate once more on the recorded context, never from the store. `salt` sets the result
        apart from that of other repeats."""
        context = recorded.context
        generation_id = self.identities.gold_execution(self.identities.generation(case, context) + salt)
        execution_id = self.identities.gold_execution(generation_id)
        trace = Trace()
        try:
            output = yield from self._generate(case, context, generation_id, trace, fresh=True)
        except StageFailed as failure:
            return self._execution(
                execution_id, recorded.candidates, recorded.kept, None, trace, failure.error
            )
        execution = self._execution(execution_id, recorded.candidates, recorded.kept, output, trace)
        self._results.put_execution(execution, self.identities.retrieval(case), generation_id)
        return execution

    # ------------------------------------------------------------------------------------ stages

    def _retrieve(
        self, case: Case, identity: bytes, trace: Trace
    ) -> Generator[Request, Reply, tuple[Candidate, ...]]:
        found = self._results.retrieval(identity)
        if found is not None:
            self.counts.retrieve_hit += 1
            return found.candidates
        self.counts.retrieve_miss += 1
        request = {"op": "retrieve", "input": case.input, "depth": self.system.depth}
        reply = trace.note("retrieve", (yield "retrieve", request))
        rows = reply.value["candidates"]
        ids = self._results.put_texts(row[3] for row in rows)
        candidates = tuple(
            [Candidate(row[0], row[1], row[2], name) for row, name in zip(rows, ids, strict=True)]
        )
        stored = StoredRetrieval(reply.value["query"], candidates, reply.seconds, reply.log)
        self._results.put_retrieval(identity, stored, self._clock(), self.system.index_version)
        return candidates

    def _assemble(self, candidates: tuple[Candidate, ...], trace: Trace) -> Generator[Request, Reply, int]:
        first = candidates[: self.system.top_k]
        budget = self.system.token_budget
        if budget is None or not first:
            return len(first)
        unknown = [c for c in first if c not in self._tokens]
        if unknown:
            yield from self._count(unknown, trace)
        return kept_within_budget([self._tokens[c] for c in first], budget)

    def _count(self, unknown: list[Candidate], trace: Trace) -> Generator[Request, Reply, None]:
        if len(self._tokens) > 200_000:
            self._tokens.clear()
        names = {self.identities.token_count(c): c for c in unknown}
        for name, tokens in self._results.token_counts(list(names)).items():
            self._tokens[names.pop(name)] = tokens
        if not names:
            return
        request = {"op": "count_tokens", "passages": self._passages(list(names.values()))}
        reply = trace.note("count_tokens", (yield "count_tokens", request))
        counts = list(zip(names, reply.value, strict=True))
        self._results.put_token_counts(counts)
        self._tokens.update((names[name], tokens) for name, tokens in counts)

    def _generate(
        self, case: Case, context: tuple[Candidate, ...], identity: bytes, trace: Trace, fresh: bool = False
    ) -> Generator[Request, Reply, dict[str, Any]]:
        found = None if fresh else self._results.generation(identity)
        if found is None:
            self.counts.generate_miss += 1
            request = {"op": "generate", "input": case.input, "context": self._passages(context)}
            reply = trace.note("generate", (yield "generate", request))
            found = StoredGeneration(reply.value, reply.seconds, reply.log)
            self._results.put_generation(identity, found, self._clock())
        else:
            self.counts.generate_hit += 1
        output: dict[str, Any] = json.loads(found.output)
        return output

    def _passages(self, candidates: Sequence[Candidate]) -> list[list[Any]]:
        texts = self._results.texts(c.text_id for c in candidates)
        return [[c.doc_id, c.chunk_id, c.score, texts[c.text_id]] for c in candidates]

    def _execution(
        self,
        identity: bytes,
        candidates: tuple[Candidate, ...],
        kept: int,
        output: dict[str, Any] | None,
        trace: Trace,
        error: StageError | None = None,
        *,
        gold: tuple[Candidate, ...] | None = None,
        retrieved: bool = True,
    ) -> Execution:
        return Execution(
            id=identity,
            candidates=candidates,
            top_k=self.system.top_k,
            kept=kept,
            output=output,
            error=error,
            gold=gold,
            retrieved=retrieved,
            seconds=trace.seconds,
            log=trace.log,
        )
