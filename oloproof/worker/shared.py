"""A worker process that serves several calls at once, each waited for on a thread of its own.

One more thread listens to the worker and hands each reply to the call whose number it bears. When the process ends,
that thread settles what is to be said of each call under way.
"""

from __future__ import annotations

import json
import os
import queue
import select
import threading
from collections.abc import Iterator
from math import inf
from time import monotonic
from typing import Any

from oloproof.worker.printing import printed_on, read_log
from oloproof.worker.process import (
    MAX_MESSAGE,
    NO_REPLY,
    READ_SIZE,
    TAMPERED,
    Checkout,
    Lost,
    Reply,
    WorkerProcess,
    message_line,
    too_late,
)


class _Waiting:
    """A call under way: where its outcome is put, and what it asked for."""

    __slots__ = ("outcome", "request", "started")

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.outcome: queue.SimpleQueue[Reply | Lost] = queue.SimpleQueue()
        self.started = monotonic()


class SharedProcess(WorkerProcess):
    """A worker process for up to `checkout.threads` calls at once, from as many threads."""

    def __init__(self, checkout: Checkout, mark: str) -> None:
        super().__init__(checkout, mark)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[int, _Waiting] = {}
        self._over = False
        #: Whether a call had to be given up, and the process for that reason with it.
        self._given_up = False
        self._listener = threading.Thread(target=self._listen, name="oloproof-listener", daemon=True)
        self._listener.start()

    def call(self, request: dict[str, Any], timeout: float) -> Reply:
        """Ask one thing and wait for the reply, at most `timeout` seconds; other calls may be under way.

        A call past its time takes the process with it: its reply is a timeout, and the others raise Lost. So do all
        that were under way when the process ended by itself, unless there was only one.
        """
        waiting = _Waiting(request)
        deadline = waiting.started + timeout
        with self._lock:
            if self._over:
                raise Lost(alone=False)
            self._numbers += 1
            number = self._numbers
            self._waiting[number] = waiting
        try:
            self._send(message_line(request, number), deadline)
            outcome = waiting.outcome.get(timeout=max(0.0, deadline - monotonic()))
        except (TimeoutError, queue.Empty):
            outcome = self._give_up(number, waiting, timeout)
        if isinstance(outcome, Lost):
            raise outcome
        return outcome

    def _send(self, message: bytes, deadline: float) -> None:
        if not self._writing.acquire(timeout=max(0.0, deadline - monotonic())):
            raise TimeoutError
        try:
            self._write(message, deadline)
        except TimeoutError:
            raise
        except (OSError, EOFError):
            return  # it has ended, or is about to: the listener says so to all
        finally:
            self._writing.release()

    def _give_up(self, number: int, waiting: _Waiting, timeout: float) -> Reply | Lost:
        with self._lock:
            late = self._waiting.pop(number, None) is not None
            self._given_up = self._given_up or late
        if not late:
            return waiting.outcome.get()  # it came at the last moment
        log = self._printed(number)
        self.kill()
        return Reply(None, "timeout", too_late(timeout), None, monotonic() - waiting.started, log)

    def _printed(self, number: int) -> str:
        log, pages = self._files
        return printed_on(pages, number) + read_log(log)

    # ---------------------------------------------------------------------------------- the listening thread

    def _listen(self) -> None:
        message = ""
        try:
            for line in self._lines():
                self._deliver(line)
        except NO_REPLY:
            message = TAMPERED
        except OSError:
            pass
        finally:
            self._settle(message)

    def _lines(self) -> Iterator[bytes]:
        """Each line that the worker sends, until it has ended."""
        parts: list[bytes] = []
        size = 0
        while True:
            try:
                ready = self._wait(self._replies, select.POLLIN, inf)
            except EOFError:
                return
            if not ready:
                continue
            chunk = os.read(self._replies, READ_SIZE)
            if not chunk:
                return
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                yield b"".join([*parts, end])
                parts, size = [], 0
            parts.append(rest)
            size += len(rest)
            if size > MAX_MESSAGE:
                raise ValueError("message too long")

    def _deliver(self, line: bytes) -> None:
        fields = json.loads(line)
        number = fields["number"]
        with self._lock:
            waiting = self._waiting.get(number)
        if waiting is None:
            if not 0 < number <= self._numbers:
                raise ValueError("no such call")
            return  # it has been given up
        reply = self._reply(fields, waiting.request)
        with self._lock:
            if self._waiting.pop(number, None) is not None:
                waiting.outcome.put(reply)

    def _settle(self, message: str) -> None:
        """The process has ended, or speaks nonsense: give every call under way its outcome."""
        status = None if message else self._exit_status()
        self.kill()
        with self._lock:
            self._over = True
            under_way, self._waiting = self._waiting, {}
        for number, waiting in under_way.items():
            if self._given_up:
                waiting.outcome.put(Lost(alone=False))
            elif len(under_way) > 1:
                waiting.outcome.put(Lost(alone=True))
            else:
                seconds = monotonic() - waiting.started
                sentence = message or self._exit_sentence(status)
                waiting.outcome.put(Reply(None, "crash", sentence, None, seconds, self._printed(number)))

    @property
    def alive(self) -> bool:
        return not self._over and super().alive

    def _free(self) -> None:
        self._listener.join()
        super()._free()


def start(checkout: Checkout, mark: str) -> WorkerProcess:
    """A worker process of the kind that the checkout asks for."""
    return SharedProcess(checkout, mark) if checkout.threads > 1 else WorkerProcess(checkout, mark)
