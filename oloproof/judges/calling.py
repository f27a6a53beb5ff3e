"""Calls to model providers: as many at once as they bear, retried where that may help, within a budget."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from oloproof.judges.providers import Answered, Model, Tokens, address, headers, read_answer

if TYPE_CHECKING:
    from requests import Session

ATTEMPTS = 6
FIRST_PAUSE = 1.0
GROWTH = 2.0
LONGEST_PAUSE = 60.0
#: Above this a provider's Retry-After is taken for "not today".
LONGEST_RETRY_AFTER = 300.0
#: Answers after which one more call at once is tried again.
EASED_AFTER = 20
#: How much of an answer is read; more is none of ours.
MAX_ANSWER_BYTES = 4_000_000

NO_KEY = "judge_no_key"
BUDGET_SPENT = "judge_budget_spent"
TIMED_OUT = "judge_timed_out"
UNREACHABLE = "judge_unreachable"


@dataclass(frozen=True)
class Call:
    """One request to a provider. `key_variable` names the environment variable with the key, None when none is sent."""

    model: Model
    body: Mapping[str, Any]
    key_variable: str | None
    timeout_seconds: float


@dataclass(frozen=True)
class Price:
    """Cost per million tokens, in the currency of the user's prices."""

    input: float
    output: float

    def cost(self, tokens: Tokens) -> float:
        return (tokens.input * self.input + tokens.output * self.output) / 1_000_000


@dataclass(frozen=True)
class Limits:
    """What all calls of one run may come to. None: no limit. `prices` are by model."""

    max_in_flight: int = 8
    max_calls: int | None = None
    max_cost: float | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)


@dataclass
class Spent:
    """What calls came to so far."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cost: float = 0.0
    unpriced: int = 0


class Provider:
    """All providers of one run, for many threads. `say` is told when everybody has to wait, `pause` waits."""

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
        self._say = say
        self._pause = pause
        self._clock = clock
        self.spent = Spent()
        self._lock = threading.Condition()
        self._allowed = limits.max_in_flight
        self._at_work = 0
        self._smooth = 0
        self._not_before = 0.0
        self._local = threading.local()

    @property
    def max_in_flight(self) -> int:
        return self._limits.max_in_flight

    def call(self, call: Call) -> Answered:
        """Ask, until there is an answer or asking again is of no use. Never raises for what a provider does."""
        key = self._environment.get(call.key_variable, "") if call.key_variable else ""
        if call.key_variable and not key:
            return Answered(fault=NO_KEY, detail=f"the environment variable {call.key_variable} is not set")
        wait = FIRST_PAUSE
        answered = Answered(fault=UNREACHABLE)
        for attempt in range(ATTEMPTS):
            if not self._enter():
                return Answered(fault=BUDGET_SPENT, detail="judges.max_calls or judges.max_cost is reached")
            try:
                answered, asked_to_wait = self._once(call, key)
            finally:
                self._leave()
            self._count(call.model, answered)
            if not answered.retry or attempt == ATTEMPTS - 1:
                break
            if asked_to_wait is not None and asked_to_wait > LONGEST_RETRY_AFTER:
                break
            self._hold(
                answered, asked_to_wait if asked_to_wait is not None else wait * random.uniform(0.8, 1.2)
            )
            wait = min(LONGEST_PAUSE, wait * GROWTH)
        return answered

    # ------------------------------------------------------------------------------------ one call

    def _once(self, call: Call, key: str) -> tuple[Answered, float | None]:
        import requests

        try:
            with self._session().post(
                address(call.model),
                json=dict(call.body),
                headers=headers(call.model, key or None),
                timeout=call.timeout_seconds,
                stream=True,
                allow_redirects=False,
            ) as response:
                data = response.raw.read(MAX_ANSWER_BYTES, decode_content=True)
                text = data.decode(response.encoding or "utf-8", "replace")
                asked = _retry_after(response.headers.get("Retry-After"), time.time())
                return read_answer(call.model, response.status_code, text), asked
        except requests.exceptions.Timeout:
            detail = f"no answer within {call.timeout_seconds:g} s"
            return Answered(fault=TIMED_OUT, detail=detail, retry=True), None
        except (requests.exceptions.RequestException, OSError) as error:
            return Answered(fault=UNREACHABLE, detail=type(error).__name__, retry=True), None
        except Exception as error:  # noqa: BLE001 - a connection cut in the middle of an answer, in urllib3's words
            return Answered(
                fault=UNREACHABLE, detail=f"the answer broke off ({type(error).__name__})", retry=True
            ), None

    def _session(self) -> Session:
        import requests

        session: Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
        return session

    # -------------------------------------------------------------------------- how many at a time

    def _enter(self) -> bool:
        """Wait for a place; False when the budget is spent."""
        with self._lock:
            while self._at_work >= self._allowed:
                self._lock.wait()
            left = self._not_before - self._clock()
            limits, spent = self._limits, self.spent
            if limits.max_calls is not None and spent.calls >= limits.max_calls:
                return False
            if limits.max_cost is not None and spent.cost >= limits.max_cost:
                return False
            spent.calls += 1
            self._at_work += 1
        if left > 0:
            self._pause(left)
        return True

    def _leave(self) -> None:
        with self._lock:
            self._at_work -= 1
            self._lock.notify()

    def _hold(self, answered: Answered, seconds: float) -> None:
        """Wait before the next attempt; asked too often, everybody waits, and fewer ask at once from then on."""
        if answered.fault == "judge_rate_limited":
            with self._lock:
                self._allowed = max(1, self._allowed // 2)
                self._smooth = 0
                self._not_before = max(self._not_before, self._clock() + seconds)
            self._say(
                f"the provider is asked too often: waiting {seconds:.0f} s, then {self._allowed} at a time"
            )
        self._pause(seconds)

    def _count(self, model: Model, answered: Answered) -> None:
        price = self._limits.prices.get(model.name)
        with self._lock:
            self.spent.input += answered.tokens.input
            self.spent.output += answered.tokens.output
            if price is not None:
                self.spent.cost += price.cost(answered.tokens)
            elif answered.tokens != Tokens():
                self.spent.unpriced += 1
            self._smooth += not answered.fault
            if self._smooth >= EASED_AFTER and self._allowed < self._limits.max_in_flight:
                self._allowed += 1
                self._smooth = 0
                self._lock.notify()


def _retry_after(text: str | None, now: float) -> float | None:
    """The seconds that a Retry-After asks for: a number, or a date."""
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (TypeError, ValueError):
        return None
