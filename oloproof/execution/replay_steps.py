"""The steps of a case that is executed again: with another context, unchanged, or from its recorded retrieval."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Self

from oloproof.canonical import digest
from oloproof.execution.steps import CaseSteps, StageCounts, StageFailed, Steps, StepsTo, Trace
from oloproof.identity.system import Identities, Reranker
from oloproof.records import Candidate, Case, Execution, StageError
from oloproof.store.results import Key, StoredRetrieval


class Assembled(NamedTuple):
    """How many of the recorded candidates made the context, or why that could not be told."""

    kept: int
    error: StageError | None = None


class ReplaySteps(CaseSteps):
    """The ways to execute a case of a stored run again. No retriever is called, but by `repeat_all`."""

    def under(self, top_k: int, token_budget: int | None) -> Self:
        """The same steps under other settings of the assembly, with counts of their own; what is known of files and
        of token counts is shared."""
        other = copy.copy(self)
        other.system = replace(self.system, top_k=top_k, token_budget=token_budget)
        other.identities = Identities(other.system)
        other.counts = StageCounts()
        return other

    def given_context(self, case: Case, passages: Sequence[tuple[Candidate, str | None]]) -> Steps:
        """generate with passages that were not retrieved; top_k and the budget do not apply."""
        context = tuple(candidate for candidate, _ in passages)
        identity = self.identities.generation(case, context)
        name = self.identities.given_execution(identity)
        trace = Trace()
        try:
            generation = yield from self._generate(case, context, identity, trace)
        except StageFailed as failure:
            return self._execution(name, (), 0, None, trace, failure.error, gold=context)
        key = Key(name, generation.key.files)
        execution = self._execution(key.id, (), 0, generation, trace, gold=context)
        self._results.put_execution(execution, key, generation.key.id)
        return execution

    def repeat(self, case: Case, recorded: Execution, salt: bytes) -> Steps:
        """The control: generate once more on the recorded context. `salt` sets what comes of it apart from what any
        other repeat came to, so that the store holds it only when this very repeat was interrupted."""
        trace = Trace()
        return (
            yield from self._again(case, recorded.candidates, recorded.kept, recorded.retrieval, salt, trace)
        )

    def repeat_all(self, case: Case, salt: bytes) -> Steps:
        """The control that repeats the retrieval too."""
        trace = Trace()
        name = digest(self.identities.retrieval(case), salt)
        try:
            retrieval = yield from self._retrieve(case, name, trace)
        except StageFailed as failure:
            return self._execution(name, (), 0, None, trace, failure.error, retrieved=False)
        candidates = retrieval.candidates
        try:
            kept, _ = yield from self._assemble(candidates, trace)
        except StageFailed as failure:
            return self._execution(
                name, candidates, 0, None, trace, failure.error, retrieval=retrieval.key.id
            )
        return (yield from self._again(case, candidates, kept, retrieval.key.id, salt, trace))

    def _again(
        self,
        case: Case,
        candidates: tuple[Candidate, ...],
        kept: int,
        retrieval: bytes | None,
        salt: bytes,
        trace: Trace,
    ) -> Steps:
        context = candidates[:kept]
        identity = self.identities.given_execution(self.identities.generation(case, context) + salt)
        name = self.identities.given_execution(identity)
        try:
            generation = yield from self._generate(case, context, identity, trace)
        except StageFailed as failure:
            return self._execution(name, candidates, kept, None, trace, failure.error, retrieval=retrieval)
        key = Key(name, generation.key.files)
        execution = self._execution(key.id, candidates, kept, generation, trace, retrieval=retrieval)
        self._results.put_execution(execution, key, generation.key.id)
        return execution

    def replay(
        self, case: Case, recorded: Execution, reranker: Reranker | None = None, *, only_changed: bool = False
    ) -> Steps:
        """The recorded retrieval, in the reranker's order if there is one, assembled under this system's settings; and
        generate, from the store where that is there. With `only_changed` an execution whose candidates and context
        stay as they were is given back as it is."""
        trace = Trace()
        key = self._results.retrieval_key(recorded.retrieval or b"")
        candidates, kept = recorded.candidates, 0
        files = {key.files}
        try:
            if reranker is not None:
                reranked = yield from self._rerank(case, key, candidates, reranker, trace)
                key, candidates = reranked.key, reranked.candidates
                files.add(key.files)
            kept, counted = yield from self._assemble(candidates, trace)
            if only_changed and (candidates, kept) == (recorded.candidates, recorded.kept):
                return recorded
            context = candidates[:kept]
            generation = yield from self._generate(
                case, context, self.identities.generation(case, context), trace
            )
        except StageFailed as failure:
            name = self.identities.execution(key.identity)
            return self._execution(name, candidates, kept, None, trace, failure.error, retrieval=key.id)
        # Without a reranker this is what a run under these settings would make, so such a run finds it.
        name = self.identities.execution(key.identity)
        made = Key(name, self._union({*files, *counted, generation.key.files}))
        execution = self._execution(made.id, candidates, kept, generation, trace, retrieval=key.id)
        self._results.put_execution(execution, made, generation.key.id)
        return execution

    def reassemble(self, case: Case, recorded: Execution, reranker: Reranker | None = None) -> StepsTo[bool]:
        """Whether a replay would come to another context; generates nothing. A stage that fails is taken to change
        it."""
        trace = Trace()
        candidates = recorded.candidates
        try:
            if reranker is not None:
                key = self._results.retrieval_key(recorded.retrieval or b"")
                candidates = (yield from self._rerank(case, key, candidates, reranker, trace)).candidates
            kept, _ = yield from self._assemble(candidates, trace)
        except StageFailed:
            return True
        return candidates[:kept] != recorded.context

    def assemble(self, recorded: Execution) -> StepsTo[Assembled]:
        """The assembly of a recorded retrieval under this system's settings; generates nothing."""
        trace = Trace()
        try:
            kept, _ = yield from self._assemble(recorded.candidates, trace)
        except StageFailed as failure:
            return Assembled(0, failure.error)
        return Assembled(kept)

    def tokens(self, candidates: Sequence[Candidate]) -> StepsTo[int]:
        """How many tokens candidates have together; 0 when they cannot be counted."""
        unknown = list(dict.fromkeys(c for c in candidates if c not in self._tokens))
        try:
            if unknown:
                yield from self._count(unknown, Trace())
        except StageFailed:
            return 0
        return sum(self._tokens[c][0] for c in candidates)

    def generate_on(self, case: Case, recorded: Execution, assembled: Assembled) -> Steps:
        """generate, on the first candidates of a recorded retrieval, which may have been assembled by another system
        than this one. Its execution stands under a name that no run looks for."""
        trace = Trace()
        context = recorded.candidates[: assembled.kept]
        place = digest("parts", recorded.retrieval or b"", str(self.system.top_k), str(assembled.kept))
        error = assembled.error
        try:
            if error is None:
                identity = self.identities.generation(case, context)
                generation = yield from self._generate(case, context, identity, trace)
        except StageFailed as failure:
            error = failure.error
        if error is not None:
            kept, retrieval = assembled.kept, recorded.retrieval
            return self._execution(place, recorded.candidates, kept, None, trace, error, retrieval=retrieval)
        key = Key(digest("execution of parts", place, generation.key.id), generation.key.files)
        execution = self._execution(
            key.id, recorded.candidates, assembled.kept, generation, trace, retrieval=recorded.retrieval
        )
        self._results.put_execution(execution, key, generation.key.id)
        return execution

    def answers(self, case: Case, context: Sequence[Candidate]) -> bool:
        """Whether `generate` need not be called on a context: what it gives is stored."""
        identity = self.identities.generation(case, tuple(context))
        return any(self._files.valid(found.key.files) for found in self._results.generations(identity))

    def changed_files(self, files: bytes) -> tuple[str, ...]:
        """The files of a set that have another content in this system's checkout."""
        return tuple(sorted(self._files.changed(files)))

    def files_of_counts(self, candidates: Sequence[Candidate]) -> set[bytes]:
        """The sets of files that the stored token counts of candidates depend on, as far as they hold here."""
        stored = self._results.token_counts([self.identities.token_count(each) for each in candidates])
        return {files for variants in stored.values() for files, _ in variants if self._files.valid(files)}

    def _rerank(
        self,
        case: Case,
        retrieval: Key,
        candidates: tuple[Candidate, ...],
        reranker: Reranker,
        trace: Trace,
    ) -> StepsTo[StoredRetrieval]:
        identity = self.identities.reranked(retrieval.id, reranker)
        for found in self._results.retrievals(identity):
            if self._files.valid(found.key.files):
                return found
        passages = self._passages(candidates)
        request = {"op": "rerank", "object": reranker.object, "input": case.input, "candidates": passages}
        reply = yield from self._call(request, trace)
        ordered = tuple([candidates[index] for index in reply.value])
        key = Key(identity, self._files.identify(reply.reads))
        made = StoredRetrieval(key, case.input_json, ordered, reply.seconds, reply.log)
        self._results.put_retrieval(made, self._clock(), self.system.index_version)
        return made
