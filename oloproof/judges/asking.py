"""From an execution to a judge's judgment: questions, samples, a second try, the majority.

The steps are generators, as those of stages are: they yield calls and are sent what was answered, so that the driver
decides how many are under way and nothing here touches the network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, Protocol

from oloproof.canonical import canonical_json, framed
from oloproof.judges.costs import Ledger
from oloproof.judges.prompts import Evidence, Prompt
from oloproof.judges.providers import Answered, Model, Tokens, body
from oloproof.judges.sending import Call
from oloproof.judges.verdicts import Unusable, Verdict, read_verdict
from oloproof.records import Judgment, missing
from oloproof.turns import CLAIM, TO_MODEL, WAIT, Turn

#: How long another process may take for an answer. Whoever is still at it by then has been stopped, or waits for a
#: provider that answers nobody.
LONGEST_CLAIM = 600.0
#: How often one sample is asked for before its answer counts as unusable.
TRIES = 2
#: What may come out otherwise when the same is asked once more.
WORTH_ANOTHER = frozenset({"judge_unusable", "judge_empty_answer"})
#: How many identities of spared answers are looked up at once.
MAX_SPARED = 500
#: Faults that say nothing of the question, so that it is asked again next time. Any other answer is kept.
PASSING = frozenset(
    {
        "judge_no_key",
        "judge_budget_spent",
        "judge_timed_out",
        "judge_unreachable",
        "judge_rate_limited",
        "judge_provider_error",
        "judge_key_refused",
        "judge_model_unknown",
        "judge_answer_unreadable",
        "judge_bad_request",
    }
)


class Questioned(Protocol):
    """One prompt of a judge with the passages that its answer may quote."""

    @property
    def prompt(self) -> Prompt: ...
    @property
    def passages(self) -> Sequence[Evidence]: ...


class Judge(Protocol):
    """What this needs of a judge's settings."""

    @property
    def repeats(self) -> int: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def key_variable(self) -> str | None: ...

    def asked_model(self) -> Model: ...

    def judgment(self, verdicts: Sequence[str]) -> Judgment: ...


class Kept(Protocol):
    """Where answers are kept."""

    def find(self, ids: Sequence[bytes]) -> dict[bytes, Answered]: ...

    def put(self, identity: bytes, model: str, answered: Answered, *, anew: bool) -> Answered: ...

    def claim(self, identity: bytes) -> bool: ...

    def unclaim(self, identity: bytes) -> None: ...


class _Asked(Turn):
    """A question that one case has asked, and others that have the same one wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.answered: Answered | None = None


@dataclass
class Asking:
    """Asks the questions of one run. With `fresh` answers that are kept do not count, once each."""

    kept: Kept
    ledger: Ledger = field(default_factory=Ledger)
    fresh: bool = False
    _asked_anew: set[bytes] = field(default_factory=set)
    #: Answers that judgments rest on which stand already, if they are kept: the model, and the identity.
    _spared: list[tuple[str, bytes]] = field(default_factory=list)
    _under_way: dict[bytes, _Asked] = field(default_factory=dict)

    def judge(
        self, judge: Judge, questions: Sequence[Questioned] | Judgment
    ) -> Generator[dict[str, Any], Any, Judgment]:
        """The judgment on the answer that the questions are about; it stands already where nothing is to be asked. What
        one passage does not support fails, whatever could not be found out about the others."""
        if isinstance(questions, Judgment):
            return questions
        found: list[Judgment | str] = []
        for question in questions:
            one = yield from self._settled(judge, question)
            found.append(one)
            if isinstance(one, Judgment) and one.reason in PASSING:
                break
        return concluded(judge, found)

    def spared(self, judge: Judge, questions: Sequence[Questioned] | Judgment) -> None:
        """Have the answers counted that a judgment rests on which stands already. Many are looked up at once, the last
        ones when somebody reads the ledger."""
        if isinstance(questions, Judgment):
            return
        model = judge.asked_model()
        ids = [each for question in questions for each in _ids(model, question, range(judge.repeats))]
        if not self._spared:
            self.ledger.later(self._count_spared)
        self._spared += [(model.name, each) for each in dict.fromkeys(ids)]
        if len(self._spared) >= MAX_SPARED:
            self._count_spared()

    def _count_spared(self) -> None:
        if not self._spared:
            return
        found = self.kept.find([identity for _, identity in self._spared])
        spared = [(model, found[identity].tokens) for model, identity in self._spared if identity in found]
        self._spared.clear()
        for model, answers in Counter(model for model, _ in spared).items():
            tokens = sum((each for name, each in spared if name == model), Tokens())
            self.ledger.kept(model, tokens, answers)

    def _settled(self, judge: Judge, question: Questioned) -> Generator[dict[str, Any], Any, Judgment | str]:
        """The verdict that most samples give, or why there is none."""
        found: list[Judgment | Verdict] = []
        for sample in range(judge.repeats):
            one = yield from self.sample(judge, question, sample)
            if isinstance(one, Judgment) and one.reason in PASSING:
                return one
            found.append(one)
        return settled(found)

    def sample(
        self, judge: Judge, question: Questioned, sample: int
    ) -> Generator[dict[str, Any], Any, Judgment | Verdict]:
        """One sample of a question: a verdict, or why there is none."""
        model = judge.asked_model()
        found: Judgment | Verdict | None = None
        for attempt in range(TRIES):
            identity = question_id(model, question.prompt, sample, attempt)
            answered = yield from self._answer(judge, model, question, identity)
            found = _read(answered, question)
            if not _worth_another(found):
                return found
        assert found is not None
        return found

    def _answer(
        self, judge: Judge, model: Model, question: Questioned, identity: bytes
    ) -> Generator[dict[str, Any], Any, Answered]:
        """The answer that is kept, that another case is getting at the moment, or that is asked for now."""
        while (other := self._under_way.get(identity)) is not None:
            yield {"op": WAIT, "turn": other}
            if other.answered is not None:
                if other.answered.fault not in PASSING:
                    self.ledger.kept(model.name, other.answered.tokens)
                return other.answered
        answered = self._known(identity, model)
        if answered is None:
            turn = self._under_way[identity] = _Asked()
            try:
                answered = turn.answered = yield from self._claimed(judge, model, question, identity)
            finally:
                turn.over = True
                del self._under_way[identity]
        return answered

    def _claimed(
        self, judge: Judge, model: Model, question: Questioned, identity: bytes
    ) -> Generator[dict[str, Any], Any, Answered]:
        """The answer that another process was getting at the moment, or that is asked for now while others wait."""
        kept = False
        try:
            if not self.kept.claim(identity) and not self.fresh:
                yield {"op": CLAIM, "take": partial(self.kept.claim, identity), "seconds": LONGEST_CLAIM}
            answered = None if self.fresh else self._stored(identity, model)
            if answered is None:
                answered = yield from self._asked(judge, model, question)
                if answered.fault not in PASSING:
                    answered = self.kept.put(identity, model.name, answered, anew=self.fresh)
                    kept = True
            return answered
        finally:
            if not kept:
                self.kept.unclaim(identity)

    def _asked(
        self, judge: Judge, model: Model, question: Questioned
    ) -> Generator[dict[str, Any], Any, Answered]:
        call = Call(model, body(model, question.prompt), judge.key_variable, judge.timeout_seconds)
        reply = yield {"op": TO_MODEL, "call": call}
        answered: Answered = reply.value
        self.ledger.paid(model.name, answered.requests, answered.tokens)
        return answered

    def _known(self, identity: bytes, model: Model) -> Answered | None:
        if self.fresh and identity not in self._asked_anew:
            self._asked_anew.add(identity)
            return None
        return self._stored(identity, model)

    def _stored(self, identity: bytes, model: Model) -> Answered | None:
        found = self.kept.find([identity]).get(identity)
        if found is not None:
            self.ledger.kept(model.name, found.tokens)
        return found


def said(judge: Judge, questions: Sequence[Questioned], kept: Kept) -> Iterator[list[Judgment | Verdict]]:
    """For each question what its samples came to, as far as that is kept."""
    model = judge.asked_model()
    for question in questions:
        samples: list[Judgment | Verdict] = []
        for sample in range(judge.repeats):
            ids = _ids(model, question, [sample])
            found = kept.find(ids)
            read = [_read(found[identity], question) for identity in ids if identity in found]
            samples += [each for each in read if not _worth_another(each)][:1] or read[-1:]
        yield samples


def concluded(judge: Judge, found: Sequence[Judgment | str]) -> Judgment:
    """The judgment from what each question came to, a verdict or the reason why there is none."""
    verdicts = [each for each in found if isinstance(each, str)]
    unknown = next((each for each in found if isinstance(each, Judgment)), None)
    if unknown is None:
        return judge.judgment(verdicts)
    return failed if verdicts and (failed := judge.judgment(verdicts)).failed else unknown


def settled(samples: Sequence[Judgment | Verdict]) -> Judgment | str:
    """The verdict that most of the samples give; missing when most of them give none, or when two are as frequent."""
    votes = Counter(each.verdict for each in samples if isinstance(each, Verdict))
    unusable = [each for each in samples if isinstance(each, Judgment)]
    if unusable and 2 * len(unusable) >= len(samples):
        return unusable[0]
    (first, most), *others = votes.most_common()
    if others and others[0][1] == most:
        counted = ", ".join(f"{count} {verdict}" for verdict, count in sorted(votes.items()))
        return missing("judge_undecided", counted)
    return first


def _ids(model: Model, question: Questioned, samples: Iterable[int]) -> list[bytes]:
    """The identities of all tries of the samples."""
    asked = _asked(model, question.prompt)
    return [_id(asked, sample, attempt) for sample in samples for attempt in range(TRIES)]


def _worth_another(found: Judgment | Verdict) -> bool:
    return isinstance(found, Judgment) and found.reason in WORTH_ANOTHER


def _read(answered: Answered, question: Questioned) -> Judgment | Verdict:
    if answered.fault:
        return missing(answered.fault, answered.detail)
    try:
        return read_verdict(answered.text, question.prompt, question.passages)
    except Unusable as error:
        return missing("judge_unusable", str(error))


def question_id(model: Model, prompt: Prompt, sample: int, attempt: int) -> bytes:
    """Identity of a call: provider, address, model, parameters, the whole prompt, and which sample of it."""
    return _id(_asked(model, prompt), sample, attempt)


def _asked(model: Model, prompt: Prompt) -> Any:
    """What the identities of all samples of a question have in common, digested once: a hash to go on from."""
    request = canonical_json(dict(body(model, prompt)))
    return sha256(framed("judge call", model.provider, model.base_url, request))


def _id(asked: Any, sample: int, attempt: int) -> bytes:
    found = asked.copy()
    found.update(framed(str(sample), str(attempt)))
    identity: bytes = found.digest()
    return identity
