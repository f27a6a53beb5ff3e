"""The program inside a worker process: imports the user's app and runs its stages on request.

Started by path with the user's own interpreter, so it uses the standard library and the contract module only.
One JSON message a line comes in on one pipe, one goes out on another; both are private. Whatever the user's
code prints goes to file descriptors 1 and 2, which are one log file that the engine made; what a call printed
is read back from it and sent with the reply.

Arguments: request fd, reply fd, the project's folder, `module:Class`, the folder of the oloproof package.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import sys
import traceback
from time import perf_counter
from typing import Any

#: Longest answer or passage list that is sent back, in characters of JSON.
MAX_REPLY = 16_000_000
#: How much of what a call printed is kept: the beginning and the end.
LOG_HEAD, LOG_TAIL = 4_000, 12_000


class InvalidReturn(Exception):
    """A stage returned something that cannot be recorded; the text says what and what was expected."""


def main(arguments: list[str]) -> None:
    requests = open(int(arguments[0]), "rb")  # noqa: SIM115 - open for the life of the process
    replies = int(arguments[1])
    for fd in (requests.fileno(), replies):
        os.set_inheritable(fd, False)
    _enable_fault_traceback()
    root, target, package = arguments[2:5]
    sys.argv = [target]
    _load_contract(package)
    sys.path[0] = root
    host = Host(target, package)
    while line := requests.readline():
        _send(replies, host.answer(json.loads(line)))


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


def _send(fd: int, reply: dict[str, Any]) -> None:
    data = json.dumps(reply, separators=(",", ":")).encode() + b"\n"
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Host:
    """The user's app in this process: imported once, constructed at the first stage call."""

    def __init__(self, target: str, package: str) -> None:
        self._target = target
        self._package = package
        self._class: Any = None
        self._system: Any = None
        self._loop: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request; never raises."""
        started = perf_counter()
        try:
            value = self._perform(request)
            reply = {"value": value}
        except BaseException as error:  # noqa: BLE001 - whatever user code raises is an outcome of the case
            reply = {"error": _describe(error)}
        reply["seconds"] = perf_counter() - started
        if log := _drain_log():
            reply["log"] = log
        return reply

    def _perform(self, request: dict[str, Any]) -> Any:
        operation = request["op"]
        if operation == "describe":
            return self._settings()
        if self._system is None:
            self._system = self._load()()
        if operation == "retrieve":
            found = self._finish(self._system.retrieve(request["input"], request["depth"]))
            return _retrieval(found, request["depth"])
        if operation == "count_tokens":
            return [
                _count(self._finish(self._system.count_tokens(p))) for p in _passages(request["passages"])
            ]
        answer = self._finish(self._system.generate(request["input"], _passages(request["context"])))
        return _answer(answer)

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
                    raise InvalidReturn(f"module {module_name} has no {path}")
                found = getattr(found, part)
            self._class = found
        return self._class

    def _settings(self) -> dict[str, Any]:
        from oloproof.contract import SETTINGS_ATTRIBUTE

        found = self._load()
        settings = getattr(found, SETTINGS_ATTRIBUTE, None) if isinstance(found, type) else None
        if settings is None:
            raise InvalidReturn(
                f"{self._target} is not a RAG system: expected a class decorated with "
                f"@rag_system(...), found {_kind(found)}"
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


# ------------------------------------------------------------------------------- what stages return


def _passages(rows: list[list[Any]]) -> tuple[Any, ...]:
    from oloproof.contract import Passage

    return tuple(Passage(doc_id=d, chunk_id=c, score=s, text=t) for d, c, s, t in rows)


def _retrieval(value: Any, depth: int) -> dict[str, Any]:
    from oloproof.contract import Passage, Retrieval

    if not isinstance(value, Retrieval):
        raise InvalidReturn(f"retrieve must return a Retrieval, got {_kind(value)}")
    candidates = value.candidates
    if not isinstance(candidates, (tuple, list)):
        raise InvalidReturn(f"Retrieval.candidates must be a tuple of Passage, got {_kind(candidates)}")
    if len(candidates) > depth:
        raise InvalidReturn(f"retrieve returned {len(candidates)} candidates for a depth of {depth}")
    rows = []
    seen: dict[tuple[str, str | None], int] = {}
    for position, passage in enumerate(candidates, 1):
        if not isinstance(passage, Passage):
            raise InvalidReturn(f"candidate {position} must be a Passage, got {_kind(passage)}")
        row = _passage_row(passage, f"candidate {position}")
        first = seen.setdefault((row[0], row[1]), position)
        if first != position:
            name = row[0] if row[1] is None else f"{row[0]}#{row[1]}"
            raise InvalidReturn(f"candidates {first} and {position} are the same passage, {name!r}")
        rows.append(row)
    return {"query": _json_text(value.query, "Retrieval.query"), "candidates": rows}


def _passage_row(passage: Any, where: str) -> list[Any]:
    doc_id = _text(passage.doc_id, f"{where}: doc_id")
    if not doc_id:
        raise InvalidReturn(f"{where}: doc_id must not be empty")
    chunk_id = None if passage.chunk_id is None else _text(passage.chunk_id, f"{where}: chunk_id")
    text = None if passage.text is None else _text(passage.text, f"{where}: text")
    score = passage.score
    if score is not None:
        score = _plain(score)
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
            raise InvalidReturn(f"{where}: score must be a finite number, got {_kind(score)}")
        score = float(score)
    return [doc_id, chunk_id, score, text]


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidReturn(f"{where} must be a string, got {_kind(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidReturn(f"{where} is not valid Unicode: it holds a lone surrogate") from None
    return str(value)


def _count(value: Any) -> int:
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidReturn(f"count_tokens must return a whole number of at least 0, got {_kind(value)}")
    return int(value)


def _answer(value: Any) -> str:
    """The answer as JSON text; the engine stores it as it is."""
    if not isinstance(value, dict):
        raise InvalidReturn(f"generate must return a dict, got {_kind(value)}")
    return _json_text(value, "the answer of generate")


def _json_text(value: Any, where: str) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain_or_refuse)
        text.encode()
    except InvalidReturn as error:
        raise InvalidReturn(f"{where} {error}") from None
    except UnicodeEncodeError:
        raise InvalidReturn(f"{where} is not valid Unicode: it holds a lone surrogate") from None
    except RecursionError:
        raise InvalidReturn(f"{where} is nested too deeply to be recorded") from None
    except (TypeError, ValueError) as error:
        reason = str(error)
        if "Circular" in reason:
            reason = "it contains itself"
        elif "JSON compliant" in reason:
            reason = "it holds NaN or an infinity"
        raise InvalidReturn(f"{where} is not JSON: {reason}") from None
    if len(text) > MAX_REPLY:
        raise InvalidReturn(
            f"{where} is {len(text):,} characters long; at most {MAX_REPLY:,} can be recorded"
        )
    return text


def _plain(value: Any) -> Any:
    """A numpy scalar as the Python number it holds; anything else as it is."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    return value


def _plain_or_refuse(value: Any) -> Any:
    plain = _plain(value)
    if plain is value:
        raise InvalidReturn(f"holds {_kind(value)}, which is not JSON")
    return plain


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float)):
        return f"{type(value).__name__} {value!r}"
    return (
        f"an object of type {type(value).__name__}"
        if not isinstance(value, type)
        else f"class {value.__name__}"
    )


# ------------------------------------------------------------------------------------ errors and logs


def _describe(error: BaseException) -> dict[str, Any]:
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
    try:
        trace = "".join(traceback.format_exception(type(error), error, _own_frames(error), limit=-30))
    except BaseException:  # noqa: BLE001 - as above
        trace = message
    return {"kind": kind, "message": _clean(message[:2000]), "traceback": _clean(trace[-20_000:])}


def _own_frames(error: BaseException) -> Any:
    """The traceback from the first frame of the user's code on."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next
    return frame or error.__traceback__


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _drain_log() -> str:
    """What was printed since the last call, shortened in the middle; the log file is emptied."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    try:
        size = os.fstat(1).st_size
        if not size:
            return ""
        if size <= LOG_HEAD + LOG_TAIL:
            text = os.pread(1, size, 0).decode("utf-8", "replace")
        else:
            head = os.pread(1, LOG_HEAD, 0).decode("utf-8", "replace")
            tail = os.pread(1, LOG_TAIL, size - LOG_TAIL).decode("utf-8", "replace")
            text = f"{head}\n... {size - LOG_HEAD - LOG_TAIL:,} bytes left out ...\n{tail}"
        os.ftruncate(1, 0)
        return text
    except OSError:
        return ""


if __name__ == "__main__":
    main(sys.argv[1:])
