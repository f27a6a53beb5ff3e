"""From an execution to a judge's judgment: questions, samples, a second try, the majority.

The steps are generators, as those of stages are: they yield calls and are sent what was answered, so that the driver
decides how many are under way and nothing here touches the network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from oloproof.canonical import canonical_json, digest
from oloproof.judges.calling import Call, Price
from oloproof.judges.costs import JudgeCosts
from oloproof.judges.prompts import Evidence, Prompt
from oloproof.judges.providers import Answered, Model, Tokens, body
from oloproof.judges.verdicts import Unusable, Verdict, read_verdict
from oloproof.records import Judgment, missing

#: How often one sample is asked for before its answer counts as unusable.
TRIES = 2
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

    def put(self, identity: bytes, model: str, answered: Answered) -> None: ...


@dataclass
class Asking:
    """Asks the questions of one run. With `fresh` answers that are kept do not count, once each."""

    kept: Kept
    prices: Mapping[str, Price] = field(default_factory=dict)
    fresh: bool = False
    costs: JudgeCosts = field(default_factory=JudgeCosts)
    _asked_anew: set[bytes] = field(default_factory=set)

    def judge(
        self, judge: Judge, questions: Sequence[Questioned] | Judgment
    ) -> Generator[dict[str, Any], Any, Judgment]:
        """The judgment on the answer that the questions are about; it stands already where nothing is to be asked."""
        if isinstance(questions, Judgment):
            return questions
        verdicts = []
        for question in questions:
            found = yield from self._settled(judge, question)
            if isinstance(found, Judgment):
                return found
            verdicts.append(found)
        return judge.judgment(verdicts)

    def _settled(self, judge: Judge, question: Questioned) -> Generator[dict[str, Any], Any, Judgment | str]:
        """The verdict that most samples give, or why there is none."""
        votes: Counter[str] = Counter()
        unusable: Judgment | None = None
        for sample in range(judge.repeats):
            found = yield from self.sample(judge, question, sample)
            if isinstance(found, Judgment):
                unusable = found
                if found.reason in PASSING:
                    return found
            else:
                votes[found.verdict] += 1
        if not votes:
            assert unusable is not None
            return unusable
        (first, most), *others = votes.most_common()
        if others and others[0][1] == most:
            said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(votes.items()))
            return missing("judge_undecided", said)
        return first

    def sample(
        self, judge: Judge, question: Questioned, sample: int
    ) -> Generator[dict[str, Any], Any, Judgment | Verdict]:
        """One sample of a question: a verdict, or why there is none."""
        model = judge.asked_model()
        why = ""
        for attempt in range(TRIES):
            identity = question_id(model, question.prompt, sample, attempt)
            answered = self._known(identity, model)
            if answered is None:
                call = Call(model, body(model, question.prompt), judge.key_variable, judge.timeout_seconds)
                reply = yield {"op": "judge", "call": call}
                answered = reply.value
                self._count(model, answered)
                if answered.fault not in PASSING:
                    self.kept.put(identity, model.name, answered)
            if answered.fault:
                return missing(answered.fault, answered.detail)
            try:
                return read_verdict(answered.text, question.prompt, question.passages)
            except Unusable as error:
                why = str(error)
        return missing("judge_unusable", why)

    def _known(self, identity: bytes, model: Model) -> Answered | None:
        if self.fresh and identity not in self._asked_anew:
            self._asked_anew.add(identity)
            return None
        found = self.kept.find([identity]).get(identity)
        if found is not None:
            price = self.prices.get(model.name)
            saved = 0.0 if price is None else price.cost(found.tokens)
            costs = self.costs
            self.costs = costs._replace(avoided=costs.avoided + 1, saved=costs.saved + saved)
        return found

    def _count(self, model: Model, answered: Answered) -> None:
        tokens, costs = answered.tokens, self.costs
        price = self.prices.get(model.name)
        self.costs = costs._replace(
            calls=costs.calls + 1,
            input=costs.input + tokens.input,
            output=costs.output + tokens.output,
            cost=costs.cost + (0.0 if price is None else price.cost(tokens)),
            unpriced=costs.unpriced + (price is None and tokens != Tokens()),
        )


def question_id(model: Model, prompt: Prompt, sample: int, attempt: int) -> bytes:
    """Identity of a call: provider, address, model, parameters, the whole prompt, and which sample of it."""
    request = canonical_json(dict(body(model, prompt)))
    return digest("judge call", model.provider, model.base_url, request, str(sample), str(attempt))
