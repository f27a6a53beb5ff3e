"""Judgments of executions: those that are stored and still count, and new ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from oloproof.canonical import canonical_json, digest, framed
from oloproof.execution.steps import Request, StepsTo
from oloproof.identity.files import ProjectFiles
from oloproof.identity.system import judgment_ids
from oloproof.judges.asking import Asking
from oloproof.judges.costs import JudgeCosts
from oloproof.records import Case, Execution, Judgment, State
from oloproof.run_records import EvaluatorRecord
from oloproof.store.results import Results
from oloproof.suite import evaluator_records
from oloproof.worker.process import Reply

#: How many cases are looked up in the store, or written to it, at once.
WINDOW = 250
#: How many of the files that an evaluator read are recorded with the run.
MAX_DATA_FILES = 500


class LookedUp(NamedTuple):
    """The identities of a case's judgments, in the order of the evaluators, and judgments that are stored, of this case
    and of others."""

    ids: list[bytes]
    stored: Mapping[bytes, Judgment]

    @property
    def complete(self) -> bool:
        """Whether all of them are stored."""
        return all(map(self.stored.__contains__, self.ids))


class Judging:
    """Judges executions, reusing judgments whose identity is stored.

    The user's own evaluators run in the workers that run the stages, unless `ask` is given: then that is asked.
    `files` are those of the checkout whose evaluators they are: a judgment counts while what its function read stays.
    `asking` is needed where an evaluator asks a model.
    """

    def __init__(
        self,
        evaluators: Sequence[Any],
        results: Results,
        files: ProjectFiles,
        ask: Callable[[Request], Reply] | None = None,
        asking: Asking | None = None,
    ) -> None:
        self._ask = ask
        self._asking = asking
        self._files = files
        self._evaluators = evaluators
        self._digests = [framed(digest("evaluator", canonical_json(e.definition()))) for e in evaluators]
        self._results = results
        #: By evaluator, the files that its function read for any case so far.
        self._data: list[dict[str, str | None]] = [{} for _ in evaluators]
        self._seen: list[set[bytes]] = [set() for _ in evaluators]
        self._custom = any(evaluator.asks_worker for evaluator in evaluators)
        #: Whether a judgment that is stored counts whatever happens.
        self._lasting = not any(evaluator.asks_worker or evaluator.asks_model for evaluator in evaluators)
        self.hits = 0
        self.misses = 0

    @property
    def asking(self) -> Asking | None:
        """What asks models; None when no evaluator needs any."""
        return self._asking

    @property
    def costs(self) -> JudgeCosts | None:
        """What models were asked so far; None when no evaluator asks any."""
        return None if self._asking is None else self._asking.ledger.costs

    @property
    def programs(self) -> set[str]:
        """Programs that the user's own evaluators started."""
        return self._files.programs

    def records(self) -> tuple[EvaluatorRecord, ...]:
        """The evaluators as they judged so far, with what they read."""
        plain = evaluator_records(self._evaluators)
        return tuple(replace(e, data=_first(data)) for e, data in zip(plain, self._data, strict=True))

    def look_up(self, cases: Sequence[tuple[Case, Execution]]) -> list[LookedUp]:
        """What is stored of the judgments of some cases, looked up at once. Nothing where the user's own code judges,
        since what it said of one case is replaced when it is asked again for another that is the same."""
        ids = [self._ids(case, execution) for case, execution in cases]
        wanted = [identity for each in ids for identity in each]
        stored = {} if self._custom else self._results.judgments(wanted)
        return [LookedUp(each, stored) for each in ids]

    def judge(
        self, case: Case, execution: Execution, looked_up: LookedUp | None = None
    ) -> StepsTo[tuple[Judgment, ...]]:
        """One judgment an evaluator, in their order. Yields requests where an evaluator is the user's own code. What
        was not found when the case was `looked_up` is looked for again: another case may have brought it."""
        if execution.error is not None:
            self.misses += len(self._evaluators)
            return tuple(e.judge(case, execution) for e in self._evaluators)
        if looked_up is not None and self._lasting and looked_up.complete:
            self.hits += len(looked_up.ids)
            return tuple([looked_up.stored[identity] for identity in looked_up.ids])
        # What a stage gave just now cannot have been judged before.
        stored = self.known(case, execution, look=not execution.seconds, looked_up=looked_up)
        fresh: list[tuple[bytes, Judgment]] = []
        judgments: list[Judgment] = []
        for (identity, judgment), evaluator in zip(stored, self._evaluators, strict=True):
            self.hits += judgment is not None
            if judgment is not None and evaluator.asks_model:
                self._spared(evaluator, case, execution)
            if judgment is None:
                self.misses += 1
                judgment = yield from self._fresh(evaluator, case, execution, identity)
                if not (evaluator.asks_worker or evaluator.asks_model):
                    fresh.append((identity, judgment))
                elif judgment.state is not State.MISSING:
                    self._results.replace_judgment(identity, execution.id, judgment)
            judgments.append(judgment)
        if self._custom:
            self._note_data([identity for identity, _ in stored])
        if fresh:
            self._results.put_judgments(execution.id, fresh)
        return tuple(judgments)

    def _note_data(self, ids: Sequence[bytes]) -> None:
        for identity, evaluator, data, seen in zip(
            ids, self._evaluators, self._data, self._seen, strict=True
        ):
            if evaluator.asks_worker:
                data.update(each for each in self._files.files_in(identity, seen) if "//" not in each[0])

    def known(
        self, case: Case, execution: Execution, *, look: bool = True, looked_up: LookedUp | None = None
    ) -> list[tuple[bytes, Judgment | None]]:
        """For each evaluator the identity of its judgment, with the judgment when it is stored and still counts.
        Without `look` it is taken that none is."""
        if looked_up is not None and looked_up.complete:
            ids = looked_up.ids
            found = {identity: looked_up.stored[identity] for identity in ids}
        else:
            ids = self._ids(case, execution)
            found = self._results.judgments(ids) if look else {}
        if self._asking is not None and self._asking.fresh:
            for identity, evaluator in zip(ids, self._evaluators, strict=True):
                if evaluator.asks_model:
                    found.pop(identity, None)
        for identity, evaluator in zip(ids, self._evaluators, strict=True):
            if evaluator.asks_worker and identity in found and not self._files.valid(identity):
                del found[identity]  # a file that the function had read has changed
        return [(identity, found.get(identity)) for identity in ids]

    def _ids(self, case: Case, execution: Execution) -> list[bytes]:
        return judgment_ids(execution.id, self._digests, [e.expected_key(case) for e in self._evaluators])

    @property
    def criteria(self) -> int:
        """How many judgments a case gets."""
        return len(self._evaluators)

    def _fresh(self, evaluator: Any, case: Case, execution: Execution, identity: bytes) -> StepsTo[Judgment]:
        if not (evaluator.asks_worker or evaluator.asks_model):
            judgment: Judgment = evaluator.judge(case, execution)
            return judgment
        context = self._context(execution)
        if evaluator.asks_model:
            assert self._asking is not None
            return (yield from self._asking.judge(evaluator, evaluator.questions(case, execution, context)))
        request = evaluator.request(case, execution, context)
        reply = self._ask(request) if self._ask is not None else (yield request)
        answered: Judgment = evaluator.judge_reply(reply.value, reply.kind, reply.message)
        self._files.remember(identity, reply.reads)
        return answered

    def _context(self, execution: Execution) -> list[list[Any]]:
        texts = self._results.texts(c.text_id for c in execution.context)
        return [[c.doc_id, c.chunk_id, c.score, texts[c.text_id]] for c in execution.context]

    def _spared(self, evaluator: Any, case: Case, execution: Execution) -> None:
        """Count what a judgment that is stored would have cost again."""
        assert self._asking is not None
        self._asking.spared(evaluator, evaluator.questions(case, execution, self._context(execution)))


def _first(files: Mapping[str, str | None]) -> dict[str, str | None]:
    """The files by name; of very many the first, which is what a run's record has room for."""
    return {path: files[path] for path in sorted(files)[:MAX_DATA_FILES]}
