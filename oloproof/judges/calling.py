"""Calls to model providers: as many at once as they bear, retried where that may help, within a budget."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from oloproof.judges.costs import Ledger, Price
from oloproof.judges.providers import Answered, Tokens
from oloproof.judges.sending import Call, Sender

#: How often one question is sent; more often where the provider only asks for patience, since the limits of a minute
#: must be able to pass.
ATTEMPTS, PATIENT_ATTEMPTS = 6, 10
FIRST_PAUSE, GROWTH, LONGEST_PAUSE = 1.0, 2.0, 60.0
SHORTEST_PAUSE = 0.1
#: Above this a provider's Retry-After is taken for "not today".
LONGEST_RETRY_AFTER = 300.0
#: Answers after which one more call at once is tried again.
EASED_AFTER = 20
#: How many questions in a row may go without an answer, for all that they were repeated, before no more are asked.
GIVE_UP_AFTER = 3
#: At most one line in so many seconds tells of waiting.
SECONDS_BETWEEN_LINES = 5.0

NO_KEY = "judge_no_key"
BUDGET_SPENT = "judge_budget_spent"
RATE_LIMITED = "judge_rate_limited"

#: Provider, address, model and variable of the key: what goes for one question goes for all that share it.
_Way = tuple[str, str, str, str | None]


@dataclass(frozen=True)
class Limits:
    """What all calls of one run may come to. None: no limit. `prices` are by model."""

    max_in_flight: int = 8
    max_calls: int | None = None
    max_cost: float | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)


@dataclass
class _Patience:
    """What is known of one way: how many questions in a row got no answer, and what is said to all further ones."""

    unanswered: int = 0
    given_up: Answered | None = None


class Provider:
    """All providers of one run, for many threads. `say` is told when somebody has to wait, `pause` waits.

    `ledger` is kept by those who ask, on one thread: it holds what all of them paid and were spared.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        limits: Limits,
        say: Callable[[str], None] = lambda text: None,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._environment = environment
        self._limits = limits
        self.say = say
        self._pause = pause
        self._clock = clock
        self.ledger = Ledger(limits.prices)
        self._sender = Sender()
        self._lock = threading.Condition()
        self._calls = 0
        self._answers = 0
        self._cost = 0.0
        self._dearest = 0.0
        self._allowed = limits.max_in_flight
        self._at_work = 0
        self._smooth = 0
        self._not_before = 0.0
        self._eased_at = float("-inf")
        self._next_line = float("-inf")
        self._patience: dict[_Way, _Patience] = {}

    @property
    def max_in_flight(self) -> int:
        return self._limits.max_in_flight

    def call(self, call: Call) -> Answered:
        """Ask, until there is an answer or asking again is of no use. Never raises for what a provider does.

        `requests` and `tokens` of the answer cover every attempt. No key stands in any part of it.
        """
        key = self._environment.get(call.key_variable, "").strip() if call.key_variable else ""
        if call.key_variable and not key:
            detail = f"the environment variable {call.key_variable} is not set"
            return Answered(fault=NO_KEY, detail=detail, requests=0)
        if not (key.isascii() and key.isprintable()):
            detail = f"the environment variable {call.key_variable} holds characters that no key has"
            return Answered(fault=NO_KEY, detail=detail, requests=0)
        return self._asked(call, key)

    def _asked(self, call: Call, key: str) -> Answered:
        model = call.model
        way = (model.provider, model.base_url, model.name, call.key_variable)
        wait, requests, tokens = FIRST_PAUSE, 0, Tokens()
        while True:
            if (given_up := self._given_up(way)) is not None:
                answered = given_up
                break
            began = self._enter()
            if began is None:
                answered = Answered(
                    fault=BUDGET_SPENT, detail="judges.max_calls or judges.max_cost is reached"
                )
                break
            paid = Answered()
            try:
                paid, asked_to_wait = self._sender.send(call, key)
            finally:
                self._leave(model.name, paid)
            answered = paid
            requests += 1
            tokens = tokens + answered.tokens
            attempts = PATIENT_ATTEMPTS if answered.fault == RATE_LIMITED else ATTEMPTS
            if asked_to_wait is not None and asked_to_wait > LONGEST_RETRY_AFTER and answered.retry:
                answered = replace(answered, retry=False, lasting=True)
            if not answered.retry or requests >= attempts:
                self._note(way, answered)
                break
            pause = wait * random.uniform(0.8, 1.2) if asked_to_wait is None else asked_to_wait
            self._hold(answered, max(SHORTEST_PAUSE, pause), began)
            wait = min(LONGEST_PAUSE, wait * GROWTH)
        return replace(answered, requests=requests, tokens=tokens)

    # --------------------------------------------------------------------- whether asking is of use

    def _given_up(self, way: _Way) -> Answered | None:
        with self._lock:
            known = self._patience.get(way)
            return None if known is None else known.given_up

    def _note(self, way: _Way, answered: Answered) -> None:
        """What came of a question says whether others of its way are worth asking."""
        with self._lock:
            known = self._patience.setdefault(way, _Patience())
            known.unanswered = known.unanswered + 1 if answered.retry else 0
            stop = answered.lasting or known.unanswered >= GIVE_UP_AFTER
            first = stop and known.given_up is None
            if first:
                known.given_up = replace(answered, tokens=Tokens())
        if first:
            self.say(f"{way[0]} is not asked any more in this run ({answered.fault})")

    # -------------------------------------------------------------------------- how many at a time

    def _enter(self) -> float | None:
        """Wait for a place; when the call began, or None when the budget is spent."""
        with self._lock:
            while self._at_work >= self._room():
                self._lock.wait()
            limits = self._limits
            if limits.max_calls is not None and self._calls >= limits.max_calls:
                self._lock.notify()
                return None
            if limits.max_cost is not None and self._cost >= limits.max_cost:
                self._lock.notify()
                return None
            self._calls += 1
            self._at_work += 1
            left = self._not_before - self._clock()
        if left > 0:
            self._pause(left)
        return self._clock()

    def _room(self) -> int:
        """How many may be under way at once: where costs are limited no more than the rest would do for if each cost as
        much as the dearest so far, and one until it is known what one costs."""
        if self._limits.max_cost is None or self._cost >= self._limits.max_cost:
            return self._allowed
        if not self._answers:
            return 1
        left = self._limits.max_cost - self._cost
        return self._allowed if self._allowed * self._dearest <= left else math.ceil(left / self._dearest)

    def _leave(self, model: str, answered: Answered) -> None:
        price = self._limits.prices.get(model)
        cost = 0.0 if price is None else price.cost(answered.tokens)
        with self._lock:
            self._at_work -= 1
            self._answers += 1
            self._cost += cost
            self._dearest = max(self._dearest, cost)
            self._smooth += not answered.fault
            if self._smooth >= EASED_AFTER and self._allowed < self._limits.max_in_flight:
                self._allowed += 1
                self._smooth = 0
            self._lock.notify_all()

    def _hold(self, answered: Answered, seconds: float, began: float) -> None:
        """Wait before the next attempt. Asked too often, everybody waits, and fewer ask at once from then on; what
        had been asked before that was known says nothing new."""
        if answered.fault == RATE_LIMITED:
            with self._lock:
                now = self._clock()
                if began >= self._eased_at:
                    self._allowed = max(1, self._allowed // 2)
                    self._eased_at = now
                    self._smooth = 0
                self._not_before = max(self._not_before, now + seconds)
            self._tell(f"asked too often: waiting {seconds:.0f} s, then {self._allowed} at a time")
        else:
            self._tell(f"no answer ({answered.fault}): waiting {seconds:.0f} s, then asking again")
        self._pause(seconds)

    def _tell(self, text: str) -> None:
        with self._lock:
            now = self._clock()
            if now < self._next_line:
                return
            self._next_line = now + SECONDS_BETWEEN_LINES
        self.say(text)
