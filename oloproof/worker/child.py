"""The program inside a worker process: imports the user's app and runs its stages on request.

Started by path with the user's own interpreter, so it uses the standard library and the contract module only.
One JSON message a line comes in on one pipe, one goes out on another; both are private, and a reply carries the
number of its request. Whatever the user's code prints goes to file descriptors 1 and 2, which are one log file
that the engine made; what a call printed is read back from it and sent with the reply.

Arguments: request fd, reply fd, the project's folder, `module:Class`, the folder of the oloproof package.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
from time import perf_counter
from typing import Any

#: Exit status that says: the user's code closed or replaced the pipes.
PIPES_LOST = 114
#: How much of what a call printed is kept: the beginning and the end.
LOG_HEAD, LOG_TAIL = 4_000, 12_000


def main(arguments: list[str]) -> None:
    pipes = Pipes(int(arguments[0]), int(arguments[1]))
    _enable_fault_traceback()
    root, target, package = arguments[2:5]
    sys.argv = [target]
    _load_contract(package)
    sys.path[0] = root
    log = Log()
    host = Host(target)
    process = os.getpid()
    while line := pipes.receive():
        request = json.loads(line)
        reply = host.answer(request)
        if os.getpid() != process:  # the user's code forked and both came back: the parent answers
            os._exit(0)
        pipes.check()
        if printed := log.drain():
            reply["log"] = printed
        reply["number"] = request["number"]
        pipes.send(reply)


def _enable_fault_traceback() -> None:
    import faulthandler

    faulthandler.enable(2)


def _load_contract(package: str) -> None:
    """Make `import oloproof` find our package whatever the interpreter has installed, and nothing else of ours."""
    spec = importlib.util.spec_from_file_location(
        "oloproof", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["oloproof"] = module
    spec.loader.exec_module(module)


class Pipes:
    """The two private pipes. When the user's code has closed one, or its number now belongs to something else,
    the process ends before anything is sent: so the call that did it is the one without an answer."""

    def __init__(self, requests: int, replies: int) -> None:
        self._requests = open(requests, "rb")  # noqa: SIM115 - open for the life of the process
        self._replies = replies
        self._known = {fd: _file_identity(fd) for fd in (requests, replies)}
        for fd in self._known:
            os.set_inheritable(fd, False)

    def receive(self) -> bytes:
        """The next request; empty when the engine has closed its end."""
        return self._requests.readline()

    def check(self) -> None:
        """End the process when a pipe is lost."""
        if any(_file_identity(fd) != known for fd, known in self._known.items()):
            os._exit(PIPES_LOST)

    def send(self, reply: dict[str, Any]) -> None:
        view = memoryview(json.dumps(reply, separators=(",", ":")).encode() + b"\n")
        while view:
            view = view[os.write(self._replies, view) :]


class Log:
    """What the user's code prints: a private descriptor of the log file, which it keeps on 1 and 2."""

    def __init__(self) -> None:
        self._fd = os.dup(1)
        self._known = _file_identity(self._fd)
        for stream in (sys.stdout, sys.stderr):
            # Nothing printed may fail on a glyph, or be lost in a buffer when the process is ended.
            stream.reconfigure(  # type: ignore[union-attr]
                encoding="utf-8", errors="backslashreplace", line_buffering=True
            )

    def drain(self) -> str:
        """What was printed since the last call, shortened in the middle; the log file is emptied."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:  # noqa: BLE001 - the user's code may have put anything there
                continue
        if _file_identity(self._fd) != self._known:
            return ""
        self._restore()
        try:
            text = read_log(self._fd)
            if text:
                os.ftruncate(self._fd, 0)
        except OSError:
            return ""
        return text

    def _restore(self) -> None:
        """Put back what a call closed, so that the next one can print."""
        for fd, name in ((1, "stdout"), (2, "stderr")):
            if _file_identity(fd) is None:
                os.dup2(self._fd, fd)
            stream = getattr(sys, name)
            if stream is None or getattr(stream, "closed", False):
                setattr(sys, name, open(fd, "w", 1, "utf-8", "backslashreplace", closefd=False))  # noqa: SIM115


def read_log(fd: int) -> str:
    """The text of a log file, a long one without its middle."""
    size = os.fstat(fd).st_size
    if size <= LOG_HEAD + LOG_TAIL:
        return os.pread(fd, size, 0).decode("utf-8", "replace")
    head = os.pread(fd, LOG_HEAD, 0).decode("utf-8", "replace")
    tail = os.pread(fd, LOG_TAIL, size - LOG_TAIL).decode("utf-8", "replace")
    return f"{head}{left_out(size - LOG_HEAD - LOG_TAIL)}{tail}"


def left_out(size: int) -> str:
    """The line that stands for the middle of a log."""
    return f"\n... {size:,} bytes left out ...\n"


def _file_identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class Host:
    """The user's app in this process: imported once, constructed when that is asked for."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._class: Any = None
        self._system: Any = None
        self._loop: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request; never raises."""
        operation = request["op"]
        folder = _current_folder()
        started = perf_counter()
        try:
            reply = {"value": self._perform(operation, request)}
        except BaseException as error:  # noqa: BLE001 - whatever user code raises is an outcome of the case
            reply = {"error": _describe(error, f"{self._target}()" if operation == "construct" else "")}
        reply["seconds"] = perf_counter() - started
        if operation not in ("describe", "construct"):
            _return_to(folder)
        return reply

    def _perform(self, operation: str, request: dict[str, Any]) -> Any:
        from oloproof.worker import returns

        if operation == "describe":
            return self._settings()
        if operation == "construct":
            self._system = self._load()()
            return None
        system, finish = self._system, self._finish
        if operation == "retrieve":
            depth = request["depth"]
            return returns.retrieval(finish(system.retrieve(request["input"], depth)), depth)
        if operation == "count_tokens":
            passages = returns.passages(request["passages"])
            return [returns.token_count(finish(system.count_tokens(passage))) for passage in passages]
        return returns.answer(finish(system.generate(request["input"], returns.passages(request["context"]))))

    def _finish(self, value: Any) -> Any:
        """The value itself, or what it gives when the stage is an `async def`."""
        if not hasattr(value, "__await__"):
            return value
        import asyncio

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(value)

    def _load(self) -> Any:
        if self._class is None:
            module_name, _, path = self._target.partition(":")
            found: Any = importlib.import_module(module_name)
            for part in path.split("."):
                if not hasattr(found, part):
                    from oloproof.worker.returns import InvalidReturn

                    raise InvalidReturn(f"module {module_name} has no {path}")
                found = getattr(found, part)
            self._class = found
        return self._class

    def _settings(self) -> dict[str, Any]:
        from oloproof.contract import SETTINGS_ATTRIBUTE
        from oloproof.worker.returns import InvalidReturn, kind

        found = self._load()
        settings = getattr(found, SETTINGS_ATTRIBUTE, None) if isinstance(found, type) else None
        if settings is None:
            raise InvalidReturn(
                f"{self._target} is not a RAG system: expected a class decorated with "
                f"@rag_system(...), found {kind(found)}"
            )
        return {
            "settings": {name: getattr(settings, name) for name in settings.__dataclass_fields__},
            "counts_tokens": callable(getattr(found, "count_tokens", None)),
            "modules": self._project_modules(),
            "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        }

    def _project_modules(self) -> dict[str, str]:
        """Source files of the imported modules that are neither installed packages nor the standard library."""
        prefixes = {os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
        library = os.path.realpath(os.path.dirname(os.__file__))
        found = {}
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if not isinstance(file, str) or not file.endswith(".py") or name == "__main__":
                continue
            path = os.path.realpath(file)
            parts = path.split(os.sep)
            if "site-packages" in parts or "dist-packages" in parts or path.startswith(library + os.sep):
                continue
            if name == "oloproof" or name.startswith("oloproof."):
                continue
            if any(path.startswith(os.path.join(p, "lib") + os.sep) for p in prefixes):
                continue
            found[name] = path
        return found


# --------------------------------------------------------------------------------------------- errors


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _return_to(folder: str | None) -> None:
    """Undo a change of the current folder, so that a case does not depend on those before it."""
    if folder is not None and _current_folder() != folder:
        try:
            os.chdir(folder)
        except OSError:
            return


def _describe(error: BaseException, where: str) -> dict[str, Any]:
    """An error as it is sent; `where` says in what it was raised, when that is no stage."""
    from oloproof.worker.returns import InvalidReturn

    if isinstance(error, InvalidReturn):
        return {"kind": "invalid_return", "message": str(error), "traceback": None}
    if isinstance(error, SystemExit):
        kind, message = "exit", f"the code called sys.exit({error.code!r})"
    else:
        kind = "exception"
        try:
            text = str(error)
        except BaseException:  # noqa: BLE001 - a user's __str__ may do anything
            text = "(its message could not be read)"
        message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    message = f"{where} failed: {message}" if where else message
    try:
        lines = traceback.format_exception(type(error), error, _own_frames(error), limit=-30)
        trace = _clean("".join(lines)[-20_000:]) if len(lines) > 1 else None
    except BaseException:  # noqa: BLE001 - as above
        trace = None
    return {"kind": kind, "message": _clean(message[:2000]), "traceback": trace}


def _own_frames(error: BaseException) -> Any:
    """The traceback from the first frame of the user's code on; None when it never got there."""
    machinery = (__file__, importlib.__file__)
    frame = error.__traceback__
    while frame is not None and (name := frame.tb_frame.f_code.co_filename):
        if name not in machinery and not name.startswith("<frozen importlib"):
            break
        frame = frame.tb_next
    return frame


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


if __name__ == "__main__":
    main(sys.argv[1:])
