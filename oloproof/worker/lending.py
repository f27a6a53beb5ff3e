"""The worker processes of one checkout, lent to calls: each to as many at once as the checkout has threads.

Stages have workers of their own, and so have evaluators and rerankers, so that neither's faults, nor what either
reads, touch the other.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from oloproof.worker.failures import too_small
from oloproof.worker.kernel import end_marked
from oloproof.worker.process import Checkout, Lost, Reply, WorkerProcess
from oloproof.worker.shared import start

#: How long an app may take to be constructed, in seconds, unless a stage call may take longer.
START_SECONDS = 600.0

#: After an exception the worker is replaced, since it may have been left in any state. When this many
#: replacements in a row have not answered a single call, a fresh one has been shown not to help and it is kept.
MAX_BARREN = 3

#: What each operation needs of a worker; one that needs nothing takes any.
STAGES, EVALUATORS = "stages", "evaluators"
ROLES = {
    "construct": STAGES,
    "retrieve": STAGES,
    "count_tokens": STAGES,
    "generate": STAGES,
    "find": EVALUATORS,
    "evaluate": EVALUATORS,
    "rerank": EVALUATORS,
}


class Ended(Exception):
    """The checkout's workers are being ended, so none is lent."""


@dataclass(eq=False)
class Worker:
    """A worker process with what its calls share. `lent` counts the calls under way; a retired one gets no more, and is
    closed once it has none."""

    process: WorkerProcess
    role: str | None = None
    lent: int = 0
    #: How many calls it has been lent to that run the user's functions.
    calls: int = 0
    retired: bool = False
    closing: bool = False
    constructed: bool = False
    #: Held while the app is constructed; the attempts that have ended, and how the last one failed.
    constructing: threading.Lock = field(default_factory=threading.Lock)
    attempts: int = 0
    failed: Reply | None = None

    def construct(self, timeout: float) -> Reply | None:
        """Have the app constructed, once. Gives the reply if that happened now, or failed: calls that waited for an
        attempt share its failure."""
        attempts = self.attempts
        with self.constructing:
            if self.constructed:
                return None
            if self.attempts != attempts:
                return self.failed
            made = self.process.call({"op": "construct"}, timeout)
            self.attempts += 1
            self.constructed = made.kind is None
            self.failed = None if self.constructed else made
            return made


class Lending:
    """Lends the workers of a checkout in this process."""

    def __init__(self, checkout: Checkout) -> None:
        self.checkout = checkout
        #: The reply when the app hung while it was constructed: nobody waits for that a second time.
        self.stuck: Reply | None = None
        #: Left in the environment of the workers and whatever they start.
        self._mark = os.urandom(16).hex()
        self._changed = threading.Condition()
        self._workers: set[Worker] = set()
        #: Those that can take a call; the one used last stands at the end.
        self._free: list[Worker] = []
        #: How many replacements in a row have not answered a call, by role.
        self._barren: Counter[str | None] = Counter()
        self._closed = False
        self._alone = threading.Lock()
        self._waiting_alone = 0
        self._lone: Worker | None = None

    # -------------------------------------------------------------------------------------------- lending

    def take(self, operation: str) -> Worker:
        """Lend a worker, a fresh one where none is free. Raises OSError when it cannot be started, and Ended."""
        role = ROLES.get(operation)
        with self._changed:
            while True:
                if self._closed:
                    raise Ended
                worker = self._find(role)
                if worker is None and self._may_start(role):
                    worker = self._start(self.checkout)
                    self._free.append(worker)
                if worker is not None:
                    break
                self._changed.wait()
            return self._lent(worker, role)

    def take_ready(self, operation: str) -> Worker | None:
        """Lend a worker that can serve the operation as it is; None when one would have to be waited for, started, or
        have the app constructed in it first."""
        role = ROLES.get(operation)
        with self._changed:
            worker = None if self._closed or self.stuck is not None else self._find(role)
            if worker is None or not (worker.constructed or role != STAGES):
                return None
            return self._lent(worker, role)

    def _lent(self, worker: Worker, role: str | None) -> Worker:
        worker.role = worker.role or role
        worker.calls += role is not None
        worker.lent += 1
        if worker.lent == self.checkout.threads:
            self._free.remove(worker)
        return worker

    def give_back(self, worker: Worker, operation: str, reply: Reply | None) -> None:
        """Take a worker back from a call, with the call's reply; None when the worker was lost under it."""
        with self._changed:
            worker.lent -= 1
            if not worker.retired:
                if self._is_spoilt(operation, reply):
                    self._retire(worker)
                elif worker.lent == self.checkout.threads - 1:
                    self._free.append(worker)
            unused = self._unused(worker)
            self._changed.notify_all()
        self._close(unused)

    def _find(self, role: str | None) -> Worker | None:
        for worker in reversed(self._free):
            if role is not None and worker.role not in (None, role):
                continue
            if worker.process.alive:
                return worker
            self._retire(worker)
            self._close(self._unused(worker))
            return self._find(role)
        return None

    def _may_start(self, role: str | None) -> bool:
        """Retired workers may still be at work for others; with them there are twice as many as needed at most."""
        same = [worker for worker in self._workers if worker.role == role]
        calls = sum(worker.lent for worker in same) + 1
        return len(same) < 2 * -(-calls // self.checkout.threads)

    def _start(self, checkout: Checkout) -> Worker:
        worker = Worker(start(checkout, self._mark))
        self._workers.add(worker)
        return worker

    def _is_spoilt(self, operation: str, reply: Reply | None) -> bool:
        """Whether a worker is to be replaced after a call."""
        if reply is None:
            return True
        role = ROLES.get(operation)
        if reply.kind is None:
            self._barren[role] = 0
            return False
        harmless = role == EVALUATORS or self._barren[role] >= MAX_BARREN
        if harmless and reply.kind in ("exception", "invalid_return"):
            return False
        self._barren[role] += 1
        return True

    def _retire(self, worker: Worker) -> None:
        worker.retired = True
        if worker in self._free:
            self._free.remove(worker)

    def _unused(self, *workers: Worker) -> list[Worker]:
        """Those of the workers that nobody needs any more: the caller is to close them."""
        found = [w for w in workers if not (w.lent or w.closing) and (w.retired or self._closed)]
        for worker in found:
            worker.closing = True
        return found

    def _close(self, workers: list[Worker]) -> None:
        for worker in workers:
            worker.process.close()
        if workers:
            with self._changed:
                self._workers.difference_update(workers)
                self._changed.notify_all()

    # --------------------------------------------------------------------------------- calls on their own

    def call_alone(self, request: dict[str, Any], timeout: float, *, fresh: bool) -> Reply:
        """A call on a worker that nothing else runs on. One such worker at a time; it is kept while others wait for
        it, unless they need a fresh one. Raises OSError and Ended as `take` does, and Lost as `called`."""
        with self._changed:
            self._waiting_alone += 1
        with self._alone:
            worker = self._take_alone(fresh)
            reply = None
            try:
                reply = called(self, worker, request, timeout)
            finally:
                with self._changed:
                    worker.lent -= 1
                    keep = reply is not None and reply.kind is None and self._waiting_alone > 0
                    worker.retired = not keep
                    self._lone = worker if keep else None
                    unused = self._unused(worker)
                self._close(unused)
        return reply

    def _take_alone(self, fresh: bool) -> Worker:
        with self._changed:
            self._waiting_alone -= 1
            if self._closed:
                raise Ended
            worker = self._lone
            if worker is not None and (fresh or worker.retired or not worker.process.alive):
                worker.retired = True
                self._close(self._unused(worker))
                worker = None
            worker = worker or self._start(replace(self.checkout, threads=1))
            worker.calls += 1
            worker.lent += 1
            return worker

    # ---------------------------------------------------------------------------------------------- ending

    def restart(self) -> None:
        """Have the next call meet a fresh worker; what is under way is finished first."""
        with self._changed:
            for worker in self._workers:
                self._retire(worker)
            unused = self._unused(*self._workers)
            self._barren.clear()
            self.stuck = None
            self._changed.notify_all()
        self._close(unused)

    def end(self) -> None:
        """End every worker, those at work too."""
        with self._changed:
            self._closed = True
            unused = self._unused(*self._workers)
            everyone = list(self._workers)
            self._changed.notify_all()
        for worker in everyone:
            worker.process.kill()
        self._close(unused)
        end_marked(self._mark, self.checkout.account, {worker.process.pid for worker in everyone})


def called(lending: Lending, worker: Worker, request: dict[str, Any], timeout: float) -> Reply:
    """The reply to a request, after the app has been constructed if a stage needs it: that has a time limit of its
    own. Raises Lost as `settled` does."""
    if worker.constructed or ROLES.get(request["op"]) != STAGES:
        return _answered(lending, worker, request, timeout)
    limit = max(timeout, START_SECONDS)
    made = worker.construct(limit)
    if made is not None and made.kind == "timeout":
        target = lending.checkout.target
        made = lending.stuck = replace(made, message=f"{target}() was not constructed within {limit:g} s")
    if made is not None and made.kind is not None:
        return made
    reply = _answered(lending, worker, request, timeout)
    return replace(reply, log=made.log + reply.log) if made is not None and made.log else reply


def _answered(lending: Lending, worker: Worker, request: dict[str, Any], timeout: float) -> Reply:
    return settled(lending, worker, worker.process.call(request, timeout))


def settled(lending: Lending, worker: Worker, reply: Reply) -> Reply:
    """A reply that stands. Raises Lost when the worker crashed or ran out of memory, and earlier calls may have left
    behind why."""
    if worker.calls > 1 and _ended_it(reply, lending.checkout.memory_mb):
        raise Lost(alone=True)
    return reply


def _ended_it(reply: Reply, memory_mb: int | None) -> bool:
    if reply.kind == "crash":
        return True
    return (
        memory_mb is not None and reply.kind == "exception" and reply.message.endswith(too_small(memory_mb))
    )
