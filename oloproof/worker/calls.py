"""One stage call as a task for any `concurrent.futures.Executor`.

`perform` is a plain function of plain values: a thread pool runs it here, another executor may run it on another
machine. Each process that runs it keeps the worker processes it started and lends them to the calls.
"""

from __future__ import annotations

import threading
from typing import Any

from oloproof.worker.lending import ROLES, STAGES, START_SECONDS, Ended, Lending, Worker, called, settled
from oloproof.worker.process import Checkout, Lost, Reply

__all__ = ["START_SECONDS", "DirectCall", "Lost", "begin", "perform", "release", "restart"]

#: How often a call may lose its worker to the faults of others before it gets one to itself; and how often that one.
MAX_LOSSES = 2

#: By session of the checkout; what has been released is not begun again.
_LENDINGS: dict[str, Lending] = {}
_RELEASED: set[str] = set()
_LOCK = threading.Lock()


def perform(checkout: Checkout, request: dict[str, Any], timeout: float) -> Reply:
    """Run one request in a worker of the checkout. A fault of the user's code is in the reply, not raised.

    A call that was under way when its worker ended through the fault of another is run again, and never blamed.
    """
    try:
        return _perform(_lending(checkout), request, timeout)
    except Ended:
        return Reply(None, "crash", "the run is being ended")
    except OSError as error:
        return Reply(None, "crash", f"the worker could not be started: {error}")


class DirectCall:
    """A request that was sent to a worker of its own, by a thread that goes on meanwhile."""

    def __init__(self, workers: Lending, worker: Worker, request: dict[str, Any], timeout: float) -> None:
        self._workers = workers
        self._worker = worker
        self._operation: str = request["op"]
        self._begun = worker.process.begin(request, timeout)

    def finished(self, until: float) -> Reply | None:
        """The reply, as `perform` gives it; None when there is none at the time `until`. Raises Lost when the request
        has to be made again."""
        try:
            reply = self._worker.process.finished(self._begun, until)
            if reply is not None:
                reply = settled(self._workers, self._worker, reply)
        except Lost:
            self.abandon()
            raise
        if reply is not None:
            self._workers.give_back(self._worker, self._operation, reply)
        return reply

    def abandon(self) -> None:
        """Wait no longer."""
        self._workers.give_back(self._worker, self._operation, None)


def begin(checkout: Checkout, request: dict[str, Any], timeout: float) -> DirectCall | None:
    """Send a request to a worker that is free and ready for it; None when there is none. For checkouts whose workers
    serve one call at a time."""
    assert checkout.threads == 1
    with _LOCK:
        workers = _LENDINGS.get(checkout.session)
    worker = None if workers is None else workers.take_ready(request["op"])
    return None if workers is None or worker is None else DirectCall(workers, worker, request, timeout)


def _lending(checkout: Checkout) -> Lending:
    with _LOCK:
        workers = _LENDINGS.get(checkout.session)
        if workers is None:
            if checkout.session in _RELEASED:
                raise Ended
            workers = _LENDINGS[checkout.session] = Lending(checkout)
        return workers


def _perform(workers: Lending, request: dict[str, Any], timeout: float) -> Reply:
    operation = request["op"]
    for _ in range(MAX_LOSSES):
        if workers.stuck is not None and ROLES.get(operation) == STAGES:
            return workers.stuck
        worker = workers.take(operation)
        shared = worker.lent > 1
        reply = None
        try:
            reply = called(workers, worker, request, timeout)
            if reply.kind != "timeout" or not (shared or worker.lent > 1):
                return reply
            break  # it may be another call that held the process up: on its own it will be seen
        except Lost as lost:
            if lost.alone:
                break
        finally:
            workers.give_back(worker, operation, reply)
    for loss in range(MAX_LOSSES):
        try:
            return workers.call_alone(request, timeout, fresh=loss > 0)
        except Lost:  # to what constructing the app, or an earlier call, had left behind in it
            continue
    return Reply(None, "crash", "something that the code leaves behind ends its worker between calls")


def restart(checkout: Checkout) -> None:
    """Have the next call of a checkout meet a fresh worker."""
    with _LOCK:
        workers = _LENDINGS.get(checkout.session)
    if workers is not None:
        workers.restart()


def release(checkout: Checkout) -> None:
    """End every worker of a checkout, those at work too; no call on it starts another."""
    with _LOCK:
        workers = _LENDINGS.pop(checkout.session, None)
        _RELEASED.add(checkout.session)
    if workers is not None:
        workers.end()
