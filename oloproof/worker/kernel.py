"""What the engine asks of the operating system for its workers: files without a name, and an eye on processes."""

from __future__ import annotations

import fcntl
import os
import signal
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from oloproof.worker.account import Account, seeing_as

#: Environment variable that marks a worker and whatever it starts, however it is detached.
MARK = "OLOPROOF_WORKER"


def scratch_file(name: str) -> int:
    """The descriptor of a temporary file without a name, written at its end only."""
    fd, path = tempfile.mkstemp(prefix=f"oloproof-{name}-")
    os.unlink(path)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND)
    return fd


def memory_file(size: int) -> int:
    """The descriptor of a file of this size that is not on a disk, which could be full."""
    try:
        fd = os.memfd_create("oloproof-pages")
    except (OSError, AttributeError):  # Linux has it
        fd = scratch_file("pages")
    os.ftruncate(fd, size)
    return fd


def oom_kills() -> int:
    """How many processes the kernel has ended for want of memory; 0 where that is not told."""
    try:
        text = Path("/proc/vmstat").read_text()
    except OSError:
        return 0
    _, _, rest = text.partition("\noom_kill ")
    return int(rest.split("\n", 1)[0] or 0)


def processes(file: str) -> Iterator[tuple[int, Path]]:
    """A file that tells of a process, for every process there is; none where there is no /proc. One that ends meanwhile
    is no error here, but its file cannot be read any more."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit():
            yield int(name), Path("/proc", name, file)


def end_marked(mark: str, account: Account | None = None, spare: Collection[int] = ()) -> None:
    """Kill every process that carries a worker's mark in its environment: what the user's code started and detached
    outlives its worker's process group. `account` is the user that the workers ran as, `spare` are processes that end
    by themselves. Does nothing where there is no /proc."""
    entry = f"{MARK}={mark}".encode()
    for _ in range(3):  # one that is just being started may be missed the first time
        found = False
        for process, environ in processes("environ"):
            if process in spare:
                continue
            try:
                with seeing_as(account):
                    marked = entry in environ.read_bytes().split(b"\0")
                if not marked:
                    continue
                os.kill(process, signal.SIGKILL)
                found = True
            except OSError:
                continue
        if not found:
            return
