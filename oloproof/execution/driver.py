"""The driver: keeps enough cases under way to fill the workers, and hands out executions as they finish."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any, TypeVar

from oloproof.execution.calls import Calls
from oloproof.execution.steps import StepsTo
from oloproof.turns import TO_MODEL, WAIT, Turn
from oloproof.worker.process import Reply

L = TypeVar("L")
T = TypeVar("T")

#: How often waiting is used for what `idle` does, in seconds: after every answer that would cost more than it saves.
IDLE_EVERY = 0.02
#: How much longer than that took is waited before it is done again: it takes a twentieth of the time at most.
IDLE_SHARE = 19
#: The longest that is waited for it, in seconds: until then what was written keeps other processes from writing. If it
#: took long since those were writing, all would wait for each other.
IDLE_AT_LEAST_EVERY = 0.2
#: How long an answer of a model waits for it at most: it was paid for, and a kill would lose it.
IDLE_WHEN_PAID = 0.05

#: Requests that run the system or a part of it, not only what judges it.
STAGES = frozenset({"retrieve", "rerank", "count_tokens", "generate"})


class Driver:
    """Runs the steps of many cases. `open_calls` gives the place where their requests run, `slots` says how many it
    can have at work at once, and `waiting` how many more may wait for models."""

    def __init__(
        self,
        open_calls: Callable[[], Calls],
        *,
        slots: int,
        waiting: int = 0,
        before_first_call: Callable[[], None],
        idle: Callable[[], None],
    ) -> None:
        self._open_calls = open_calls
        self._in_flight = 2 * slots + 2 + 2 * waiting
        self._before_first_call = before_first_call
        self._idle = idle
        self._idle_from = 0.0
        self._called = False
        #: Steps that wait for what others are fetching, and those that may go on.
        self._parked: dict[Turn, list[Any]] = {}
        self._ready: deque[Any] = deque()

    def run(self, work: Iterable[tuple[L, StepsTo[T]]]) -> Iterator[tuple[L, T]]:
        """Yields each label with what its steps ended in, in the order in which they finish.

        `work` is read no further ahead than needed. `idle` is called when there is nothing to do but wait, though
        not more often than every 20 ms, soon after an answer of a model, and at the end.
        """
        calls = self._open_calls()
        pending = 0
        for label, steps in work:
            done = self._advance(calls, label, steps, None)
            if done is not None:
                yield label, done
            else:
                pending += 1
            while pending >= self._in_flight:
                finished = self._await_one(calls)
                if finished is not None:
                    pending -= 1
                    yield finished
        while pending:
            finished = self._await_one(calls)
            if finished is not None:
                pending -= 1
                yield finished
        self._idle()

    def _await_one(self, calls: Calls) -> tuple[Any, Any] | None:
        if self._ready:
            label, steps = self._ready.popleft()
            ended = self._advance(calls, label, steps, Reply())
            return None if ended is None else (label, ended)
        done = calls.next_done(max(0.0, self._idle_from - monotonic()))
        if done is None:
            started = monotonic()
            self._idle()
            took = monotonic() - started
            self._idle_from = monotonic() + min(IDLE_AT_LEAST_EVERY, max(IDLE_EVERY, IDLE_SHARE * took))
            done = calls.next_done()
            assert done is not None
        (label, steps, op), reply = done
        if op == TO_MODEL:
            self._idle_from = min(self._idle_from, monotonic() + IDLE_WHEN_PAID)
        ended = self._advance(calls, label, steps, reply)
        return None if ended is None else (label, ended)

    def _advance(self, calls: Calls, label: L, steps: StepsTo[T], reply: Reply | None) -> T | None:
        """What the steps ended in, None while they wait for a reply. No steps of ours end in None."""
        try:
            message = next(steps) if reply is None else steps.send(reply)
        except StopIteration as end:
            ended: T = end.value
            return ended
        finally:
            if self._parked:
                self._wake()
        if message["op"] == WAIT:
            self._parked.setdefault(message["turn"], []).append((label, steps))
            return None
        if not self._called and message["op"] in STAGES:
            self._before_first_call()
            self._called = True
        calls.submit((label, steps, message["op"]), message)
        return None

    def _wake(self) -> None:
        for turn in [turn for turn in self._parked if turn.over]:
            self._ready.extend(self._parked.pop(turn))
