"""Where requests run: on threads of this process, or on an executor that somebody else made; each kind in its lane."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from oloproof.turns import CLAIM, TO_MODEL
from oloproof.worker.calls import perform
from oloproof.worker.process import Checkout, Reply

Message = dict[str, Any]
#: How often a claim is tried, how long nothing is said of it, and how often then.
CLAIM_SECONDS, SILENT_SECONDS, SECONDS_BETWEEN_LINES = 0.05, 5.0, 30.0


class Calls(Protocol):
    """Takes requests and gives their replies back as they finish, each with the tag that it came with."""

    def submit(self, tag: Any, message: Message) -> None:
        """Take a request; it runs as soon as a worker is free."""

    def next_done(self, timeout: float | None = None) -> tuple[Any, Reply] | None:
        """The next reply; None when there is none within `timeout` seconds."""

    def cancel(self) -> None:
        """Forget the requests that have not begun."""

    def close(self) -> None:
        """Free what was held, once what had begun has ended."""


#: Replies, or what was raised in their place, each with its tag.
Done = queue.SimpleQueue[tuple[Any, Reply | BaseException]]


class ThreadCalls:
    """Requests that `serve` answers, up to `slots` at once, each waited for on a thread. `done` may be shared with
    others, to wait for all of them.

    Between the threads lie plain queues: handing a call over through a future costs several times as much, and an
    evaluation makes two calls a case.
    """

    def __init__(self, serve: Callable[[Message], Reply], slots: int, done: Done | None = None) -> None:
        self._perform = serve
        self._slots = slots
        self._threads: list[threading.Thread] = []
        self._requests: queue.SimpleQueue[tuple[Any, Message] | None] = queue.SimpleQueue()
        self._done: Done = queue.SimpleQueue() if done is None else done

    def submit(self, tag: Any, message: Message) -> None:
        self._requests.put((tag, message))
        if len(self._threads) < self._slots:
            thread = threading.Thread(target=self._serve, name="oloproof-calls", daemon=True)
            self._threads.append(thread)
            thread.start()

    def next_done(self, timeout: float | None = None) -> tuple[Any, Reply] | None:
        return _next(self._done, timeout)

    def cancel(self) -> None:
        while not self._requests.empty():
            with suppress(queue.Empty):
                self._requests.get_nowait()
        for _ in self._threads:
            self._requests.put(None)

    def close(self) -> None:
        """Wait for the threads; one that waits for a worker ends when that has answered or was killed."""
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _serve(self) -> None:
        while (request := self._requests.get()) is not None:
            tag, message = request
            try:
                self._done.put((tag, self._perform(message)))
            except BaseException as error:  # noqa: BLE001 - raised again where the reply is waited for
                self._done.put((tag, error))


class _Claim(NamedTuple):
    """A claim that is waited for, `until` a moment of the monotonic clock."""

    tag: Any
    take: Callable[[], bool]
    until: float


class ModelCalls(ThreadCalls):
    """Requests to models, and claims of what another process may be asking them. What is under way when they are closed
    is no longer waited for. `say` is told when a claim takes long."""

    def __init__(
        self,
        serve: Callable[[Message], Reply],
        slots: int,
        done: Done | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        super().__init__(serve, slots, done)
        self._say = say
        self._claims: queue.SimpleQueue[_Claim | None] = queue.SimpleQueue()
        self._claiming: threading.Thread | None = None

    def submit(self, tag: Any, message: Message) -> None:
        if message["op"] != CLAIM:
            return super().submit(tag, message)
        self._claims.put(_Claim(tag, message["take"], time.monotonic() + message["seconds"]))
        if self._claiming is None:
            self._claiming = threading.Thread(target=self._claim, name="oloproof-claims", daemon=True)
            self._claiming.start()
        return None

    def cancel(self) -> None:
        super().cancel()
        self._claims.put(None)

    def close(self) -> None:
        self._threads.clear()
        if self._claiming is not None:
            self._claiming.join()  # it waits for nobody

    def _claim(self) -> None:
        """Try all claims again and again: none of them keeps a lane from what can be asked meanwhile."""
        waiting: list[_Claim] = []
        tell_at = 0.0
        while True:
            with suppress(queue.Empty):
                claim = self._claims.get(timeout=CLAIM_SECONDS if waiting else None)
                if claim is None:
                    return
                if not waiting:
                    tell_at = time.monotonic() + SILENT_SECONDS
                waiting.append(claim)
            now = time.monotonic()
            still = []
            for claim in waiting:
                if claim.take() or now >= claim.until:
                    self._done.put((claim.tag, Reply()))
                else:
                    still.append(claim)
            waiting = still
            if waiting and now >= tell_at:
                tell_at = now + SECONDS_BETWEEN_LINES
                self._say("waiting for answers that another run on this store has asked for")


class ExecutorCalls:
    """Calls through any `concurrent.futures.Executor`; whoever made it shuts it down."""

    def __init__(
        self, executor: Executor, checkout: Checkout, timeout: float, done: Done | None = None
    ) -> None:
        self._executor = executor
        self._checkout = checkout
        self._timeout = timeout
        self._futures: set[Future[Reply]] = set()
        self._done: Done = queue.SimpleQueue() if done is None else done

    def submit(self, tag: Any, message: Message) -> None:
        future = self._executor.submit(perform, self._checkout, message, self._timeout)
        self._futures.add(future)

        def done(future: Future[Reply]) -> None:
            self._futures.discard(future)
            if not future.cancelled():
                self._done.put((tag, future.exception() or future.result()))

        future.add_done_callback(done)

    def next_done(self, timeout: float | None = None) -> tuple[Any, Reply] | None:
        return _next(self._done, timeout)

    def cancel(self) -> None:
        for future in list(self._futures):
            future.cancel()

    def close(self) -> None:
        """Nothing to do: what is under way is no longer waited for."""


class Lanes:
    """Two kinds of requests side by side, neither of which waits for the other: those to models, and all others. Both
    put their replies into `done`."""

    def __init__(self, others: Calls, models: Calls, done: Done) -> None:
        self._others = others
        self._models = models
        self._done = done

    def submit(self, tag: Any, message: Message) -> None:
        (self._models if message["op"] in (TO_MODEL, CLAIM) else self._others).submit(tag, message)

    def next_done(self, timeout: float | None = None) -> tuple[Any, Reply] | None:
        return _next(self._done, timeout)

    def cancel(self) -> None:
        self._others.cancel()
        self._models.cancel()

    def close(self) -> None:
        self._others.close()
        self._models.close()


def _next(done: Done, timeout: float | None) -> tuple[Any, Reply] | None:
    try:
        tag, reply = done.get(timeout=timeout)
    except queue.Empty:
        return None
    if isinstance(reply, BaseException):
        raise reply
    return tag, reply
