"""The driver: keeps enough cases under way to fill the workers, and hands out executions as they finish."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import Generic, TypeVar

from oloproof.execution.steps import Steps
from oloproof.records import Execution
from oloproof.worker.calls import perform
from oloproof.worker.process import Checkout, Reply

T = TypeVar("T")


class Driver(Generic[T]):
    """Runs the steps of many cases over an executor. The executor may be any; `slots` says how many calls it can
    have at work at once."""

    def __init__(
        self,
        executor: Executor,
        checkout: Checkout,
        *,
        slots: int,
        timeout: float,
        before_first_call: Callable[[], None],
        idle: Callable[[], None],
    ) -> None:
        self._executor = executor
        self._checkout = checkout
        self._in_flight = 2 * slots + 2
        self._timeout = timeout
        self._before_first_call = before_first_call
        self._idle = idle
        self._called = False
        self._ready: queue.SimpleQueue[tuple[T, Steps, Future[Reply]]] = queue.SimpleQueue()

    def run(self, work: Iterable[tuple[T, Steps]]) -> Iterator[tuple[T, Execution]]:
        """Yields each label with its execution, in the order in which they finish.

        `work` is read no further ahead than needed. `idle` is called whenever there is nothing to do but wait, and
        at the end.
        """
        pending = 0
        for label, steps in work:
            done = self._advance(label, steps, None)
            if done is not None:
                yield label, done
            else:
                pending += 1
            while pending >= self._in_flight:
                finished = self._await_one()
                if finished is not None:
                    pending -= 1
                    yield finished
        while pending:
            finished = self._await_one()
            if finished is not None:
                pending -= 1
                yield finished
        self._idle()

    def _await_one(self) -> tuple[T, Execution] | None:
        if self._ready.empty():
            self._idle()
        label, steps, future = self._ready.get()
        done = self._advance(label, steps, future.result())
        return None if done is None else (label, done)

    def _advance(self, label: T, steps: Steps, reply: Reply | None) -> Execution | None:
        try:
            request = next(steps) if reply is None else steps.send(reply)
        except StopIteration as end:
            execution: Execution = end.value
            return execution
        if not self._called:
            self._before_first_call()
            self._called = True
        _, message = request
        future = self._executor.submit(perform, self._checkout, message, self._timeout)
        future.add_done_callback(lambda done: self._ready.put((label, steps, done)))
        return None
