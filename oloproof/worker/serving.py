"""Serving requests inside a worker: one at a time on the main thread, or several at once.

Several at once: `threads` threads each take a request, answer it and take the next, while the main thread waits until
a stage is an `async def` and from then on runs the one loop of all coroutines. The app is imported and constructed on
the main thread in any case. Loaded inside the worker, so standard library only.
"""

from __future__ import annotations

import os
import threading
import traceback
from json import loads
from typing import TYPE_CHECKING, Any

from oloproof.worker.app import App
from oloproof.worker.bytecode import distrust_early_bytecode
from oloproof.worker.channel import LEFTOVER, Channel, encoded
from oloproof.worker.current import CALL, Call, follow_threads
from oloproof.worker.keeper import Kept
from oloproof.worker.lifeline import end_with
from oloproof.worker.printing import PAGE_SIZE, Log, Page
from oloproof.worker.reads import Reads

if TYPE_CHECKING:
    import asyncio

#: Requests before which nothing need be at work beside the main thread.
PREPARING = frozenset({"describe", "packages", "construct", "find"})


class Setting:
    """What the engine says when it starts a worker; `requests`, `replies`, `lifeline` and `pages` are descriptors.
    `pages` is None in a worker that serves one call at a time."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.requests: int = given["requests"]
        self.replies: int = given["replies"]
        self.lifeline: int = given["lifeline"]
        self.pages: int | None = given["pages"]
        self.root: str = given["root"]
        self.target: str = given["target"]
        self.watch: str = given["watch"]
        self.threads: int = given["threads"]
        self.memory_mb: int | None = given["memory_mb"]


def serve(setting: Setting, keeper: Kept | None) -> None:
    """Answer requests until the engine closes its end of the pipe."""
    import faulthandler

    faulthandler.enable(2)
    ties = (
        [end_with(setting.lifeline)] if keeper is None else [end_with(setting.lifeline), end_with(keeper.tie)]
    )
    channel = Channel(setting.requests, setting.replies, *ties)
    if setting.memory_mb is not None:
        _limit_memory(setting.memory_mb)
    log = Log(shared=setting.pages is not None)
    distrust_early_bytecode()
    reads = Reads(setting.watch)
    coroutines = Coroutines()
    app = App(setting.root, setting.target, coroutines.finish, setting.memory_mb)
    server = Server(channel, log, reads, app)
    if keeper is not None:
        keeper.wait_until_ready()
    if setting.pages is None:
        server.serve_alone()
    else:
        follow_threads()
        pages = _pages(setting.pages, setting.threads)
        begun = server.prepare(pages[0])
        for page in pages:
            threading.Thread(target=server.serve_beside, args=(page, begun), daemon=True).start()
            begun = b""
        coroutines.run()


def _limit_memory(megabytes: int) -> None:
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = megabytes * 1024 * 1024
    if most != resource.RLIM_INFINITY:
        limit = min(limit, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _pages(fd: int, count: int) -> list[Page]:
    import mmap

    memory = memoryview(mmap.mmap(fd, count * PAGE_SIZE))
    os.close(fd)
    return [Page(memory[at * PAGE_SIZE : (at + 1) * PAGE_SIZE]) for at in range(count)]


class Server:
    """Takes requests from the channel, has the app answer them, and sends the replies."""

    def __init__(self, channel: Channel, log: Log, reads: Reads, app: App) -> None:
        self._channel = channel
        self._log = log
        self._reads = reads
        self._app = app
        self._process = os.getpid()
        self._replying = threading.Lock()
        self._looked_after: set[str] = set()
        self._retrieved = False

    def serve_alone(self) -> None:
        """One request after the other, on this thread."""
        while line := self._receive_alone():
            self._serve(loads(line), None)

    def prepare(self, page: Page) -> bytes:
        """The requests up to the app's construction, one after the other. Gives the first request that may be served
        beside others, when one has been taken already."""
        while line := self._receive_alone():
            request = loads(line)
            if request["op"] not in PREPARING:
                return line
            if self._serve(request, page) and request["op"] == "construct":
                return b""
        os._exit(0)

    def serve_beside(self, page: Page, begun: bytes) -> None:
        """One request after the other while other threads serve others; `begun` is one that has been taken already."""
        try:
            while line := begun or self._channel.receive():
                begun = b""
                self._serve(loads(line), page)
        except BaseException:  # noqa: BLE001 - without a thread its requests would wait for ever
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def _receive_alone(self) -> bytes:
        try:
            return self._channel.receive()
        except BaseException:  # noqa: BLE001 - a signal handler of the user's code may raise anything
            traceback.print_exc()
            os._exit(LEFTOVER)

    def _serve(self, request: dict[str, Any], page: Page | None) -> bool:
        """Answer a request; whether it was answered without an error."""
        number = request["number"]
        call = Call(request["op"], page, retrieved=self._retrieved)
        if page is not None:
            page.turn(number)
        CALL.set(call)
        reply = self._app.answer(request)
        CALL.set(None)
        call.over = True
        if os.getpid() != self._process:  # the user's code forked and both came back: the parent answers
            os._exit(0)
        self._channel.check()
        self._retrieved = self._retrieved or (request["op"] == "retrieve" and "error" not in reply)
        reply["number"] = number
        # What one reply says of prints and files, no later one says again: so they must leave in this order.
        with self._replying:
            printed = (page.text if page is not None else "") + self._log.drain()
            if printed:
                reply["log"] = printed
            if request["op"] not in self._looked_after:  # once each: it takes longer than a small call
                self._looked_after.add(request["op"])
                self._reads.note_held(call.reader)
            opened = self._reads.drain()
            if opened is not None:
                reply["reads"] = opened
            self._channel.send(self._encoded(reply))
        return "error" not in reply

    def _encoded(self, reply: dict[str, Any]) -> bytes:
        try:
            return encoded(reply)
        except MemoryError as error:
            failed = self._app.failure(error)
            return encoded({"error": failed, "number": reply["number"], "seconds": reply["seconds"]})


class Coroutines:
    """The loop on which what stages await is run: the main thread's, where it has not begun on first need."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._needed = threading.Event()
        self._begun = threading.Event()

    def finish(self, value: Any) -> Any:
        """The value itself, or what it gives when it is awaited."""
        if not hasattr(value, "__await__"):
            return value
        import asyncio

        if threading.current_thread() is threading.main_thread():
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
            return self._loop.run_until_complete(value)
        self._needed.set()
        self._begun.wait()
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(_awaited(value), self._loop).result()

    def run(self) -> None:
        """On the main thread: wait until the loop is needed, then run it for good. The user's signal handlers run here
        too, and whatever they raise belongs to no call."""
        while not self._needed.is_set():
            try:
                self._needed.wait()
            except BaseException:  # noqa: BLE001 - see above
                traceback.print_exc()
        import asyncio

        self._loop = self._loop or asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._begun.set()
        while not self._loop.is_closed():
            try:
                self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                continue  # raised in a task, and its call's outcome
            except BaseException:  # noqa: BLE001 - see above
                traceback.print_exc()


async def _awaited(value: Any) -> Any:
    return await value
