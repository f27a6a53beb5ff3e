"""One stage call as a task for any `concurrent.futures.Executor`.

`perform` is a plain function of plain values: a thread pool runs it here, another executor may run it on another
machine. Each process that runs it keeps the worker processes it started and lends one to each call.
"""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import Any

from oloproof.worker.process import Checkout, Reply, WorkerProcess, end_marked

#: How long an app may take to be constructed, in seconds, unless a stage call may take longer.
START_SECONDS = 600.0

#: After an exception the worker is replaced, since it may have been left in any state. When this many
#: replacements in a row have not answered a single call, a fresh one has been shown not to help and it is kept.
MAX_BARREN = 3


class _Workers:
    """The worker processes of one checkout in this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.idle: list[WorkerProcess] = []
        self.all: set[WorkerProcess] = set()
        self.barren = 0
        self.closed = False
        #: Left in the environment of the workers and whatever they start.
        self.mark = os.urandom(16).hex()
        #: The reply when the app hung while it was constructed: nobody waits for that a second time.
        self.stuck: Reply | None = None


_REGISTRY: dict[Checkout, _Workers] = {}
_REGISTRY_LOCK = threading.Lock()


def perform(checkout: Checkout, request: dict[str, Any], timeout: float) -> Reply:
    """Run one request in a worker of the checkout. A fault of the user's code is in the reply, not raised."""
    with _REGISTRY_LOCK:
        workers = _REGISTRY.setdefault(checkout, _Workers())
    if workers.stuck is not None:
        return workers.stuck
    try:
        worker = _borrow(workers, checkout)
    except OSError as error:
        return Reply(None, "crash", f"the worker could not be started: {error}")
    if worker is None:
        return Reply(None, "crash", "the run is being ended")
    reply = _call(workers, worker, request, timeout)
    with workers.lock:
        if reply.kind is None:
            workers.barren = 0
        elif workers.barren < MAX_BARREN or reply.kind in ("crash", "timeout", "exit"):
            workers.barren += 1
            workers.all.discard(worker)
            worker.close()
            return reply
        if workers.closed:
            worker.close()
        else:
            workers.idle.append(worker)
    return reply


def _call(workers: _Workers, worker: WorkerProcess, request: dict[str, Any], timeout: float) -> Reply:
    """The request, after the app has been constructed, which has a time limit of its own."""
    if worker.constructed or request["op"] == "describe":
        return worker.call(request, timeout)
    limit = max(timeout, START_SECONDS)
    made = worker.call({"op": "construct"}, limit)
    if made.kind == "timeout":
        target = worker.checkout.target
        made = workers.stuck = replace(made, message=f"{target}() was not constructed within {limit:g} s")
    if made.kind is not None:
        return made
    worker.constructed = True
    reply = worker.call(request, timeout)
    return replace(reply, log=made.log + reply.log) if made.log else reply


def _borrow(workers: _Workers, checkout: Checkout) -> WorkerProcess | None:
    with workers.lock:
        if workers.closed:
            return None
        while workers.idle:
            worker = workers.idle.pop()
            if worker.alive:
                return worker
            workers.all.discard(worker)
            worker.close()
        worker = WorkerProcess(checkout, workers.mark)
        workers.all.add(worker)
        return worker


def restart(checkout: Checkout) -> None:
    """End the idle workers of a checkout, so that the next call meets a fresh one."""
    with _REGISTRY_LOCK:
        workers = _REGISTRY.get(checkout)
    if workers is None:
        return
    with workers.lock:
        for worker in workers.idle:
            workers.all.discard(worker)
            worker.close()
        workers.idle.clear()
        workers.barren = 0
        workers.stuck = None


def release(checkout: Checkout) -> None:
    """End every worker of a checkout, those at work too."""
    with _REGISTRY_LOCK:
        workers = _REGISTRY.pop(checkout, None)
    if workers is None:
        return
    with workers.lock:
        workers.closed = True
        for worker in workers.idle:
            worker.close()
        for worker in workers.all.difference(workers.idle):
            worker.kill()
    end_marked(workers.mark)
