"""Where requests run when there is one worker that serves one call at a time: in that, without another thread."""

from __future__ import annotations

from collections import deque
from functools import partial
from math import inf
from time import monotonic
from typing import Any

from oloproof.execution.calls import Message, ThreadCalls
from oloproof.worker.calls import DirectCall, Lost, begin, perform
from oloproof.worker.process import Checkout, Reply


class DirectCalls:
    """Requests to the one worker of a checkout, one at a time, sent by the thread that waits for their replies. The
    next is sent as soon as a reply is there, so that the worker is at it while that reply is looked at.

    What the worker is not ready for, since it has to be started first, goes to a thread.
    """

    def __init__(self, checkout: Checkout, timeout: float) -> None:
        self._checkout = checkout
        self._timeout = timeout
        self._waiting: deque[tuple[Any, Message]] = deque()
        self._begun: tuple[Any, Message, DirectCall] | None = None
        self._others = ThreadCalls(partial(perform, checkout, timeout=timeout), 1)
        #: Whether the thread is at a request.
        self._handed_over = False

    def submit(self, tag: Any, message: Message) -> None:
        self._waiting.append((tag, message))
        self._go_on()

    def next_done(self, timeout: float | None = None) -> tuple[Any, Reply] | None:
        if self._begun is not None:
            tag, message, call = self._begun
            try:
                reply = call.finished(inf if timeout is None else monotonic() + timeout)
            except Lost:
                self._begun = None
                self._hand_over(tag, message)
            else:
                if reply is None:
                    return None
                self._begun = None
                self._go_on()
                return tag, reply
        done = self._others.next_done(timeout)
        if done is not None:
            self._handed_over = False
            self._go_on()
        return done

    def _go_on(self) -> None:
        """Send the next request, unless one is under way."""
        if self._begun is not None or self._handed_over or not self._waiting:
            return
        tag, message = self._waiting.popleft()
        call = begin(self._checkout, message, self._timeout)
        if call is None:
            self._hand_over(tag, message)
        else:
            self._begun = tag, message, call

    def _hand_over(self, tag: Any, message: Message) -> None:
        self._handed_over = True
        self._others.submit(tag, message)

    def cancel(self) -> None:
        self._waiting.clear()
        self._others.cancel()

    def close(self) -> None:
        """Free the worker, once what had begun has ended."""
        if self._begun is not None:
            _, _, call = self._begun
            self._begun = None
            call.abandon()
        self._others.close()
