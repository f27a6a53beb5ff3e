"""One stage call as a task for any `concurrent.futures.Executor`.

`perform` is a plain function of plain values: a thread pool runs it here, another executor may run it on another
machine. Each process that runs it keeps the worker processes it started and lends one to each call.
"""

from __future__ import annotations

import threading
from typing import Any

from oloproof.worker.process import Checkout, Reply, WorkerProcess

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


_REGISTRY: dict[Checkout, _Workers] = {}
_REGISTRY_LOCK = threading.Lock()


def perform(checkout: Checkout, request: dict[str, Any], timeout: float) -> Reply:
    """Run one request in a worker of the checkout. A fault of the user's code is in the reply, not raised."""
    with _REGISTRY_LOCK:
        workers = _REGISTRY.setdefault(checkout, _Workers())
    try:
        worker = _borrow(workers, checkout)
    except OSError as error:
        return Reply(None, "crash", f"the worker could not be started: {error}")
    if worker is None:
        return Reply(None, "crash", "the run is being ended")
    reply = worker.call(request, timeout)
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


def _borrow(workers: _Workers, checkout: Checkout) -> WorkerProcess | None:
    with workers.lock:
        if workers.closed:
            return None
        if workers.idle:
            return workers.idle.pop()
        worker = WorkerProcess(checkout)
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
