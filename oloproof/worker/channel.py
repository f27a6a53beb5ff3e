"""The worker's end of the private pipes to the engine: one JSON message a line each way.

Loaded inside the worker, so standard library only.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from oloproof.jsontext import json_writer
from oloproof.worker.printing import file_identity

#: Exit status that says: the user's code closed or replaced the pipes.
PIPES_LOST = 114
#: Exit status that says: what an earlier call left behind raised something before the next request was taken.
LEFTOVER = 115

_compact_json = json_writer(separators=(",", ":"))


class Channel:
    """The pipes. When the user's code has closed one, or its number now belongs to something else, the process ends
    before anything is sent: so the call that did it is the one without an answer."""

    def __init__(self, requests: int, replies: int, *others: int) -> None:
        self._requests = open(requests, "rb")  # noqa: SIM115 - open for the life of the process
        self._replies = replies
        self._pipes = (requests, replies)
        self._known = [(fd, file_identity(fd)) for fd in (requests, replies, *others)]
        self._receiving = threading.Lock()
        for fd, _ in self._known:
            os.set_inheritable(fd, False)

    def receive(self) -> bytes:
        """The next request; empty when the engine has closed its end."""
        with self._receiving:
            return self._requests.readline()

    def check(self) -> None:
        """End the process when a pipe is lost, and let no read or write return early, which code may have asked for."""
        for fd, known in self._known:
            if file_identity(fd) != known:
                os._exit(PIPES_LOST)
        for fd in self._pipes:
            os.set_blocking(fd, True)

    def send(self, message: bytes) -> None:
        """Send a reply; not for two threads at once."""
        view = memoryview(message)
        while view:
            view = view[os.write(self._replies, view) :]


def encoded(reply: dict[str, Any]) -> bytes:
    return _compact_json(reply).encode() + b"\n"
