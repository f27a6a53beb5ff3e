"""The engine believes no reply that a worker of ours cannot have sent, whatever the user's code did to the worker."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from oloproof.worker.opened import Opened
from oloproof.worker.process import NO_REPLY
from oloproof.worker.replies import checked, error_of

ROW = ["d1", None, 0.5, "blue"]
REQUESTS: dict[str, dict[str, Any]] = {
    "describe": {"op": "describe"},
    "retrieve": {"op": "retrieve", "input": {}, "depth": 2},
    "count_tokens": {"op": "count_tokens", "passages": [ROW, ROW]},
    "generate": {"op": "generate", "input": {}, "context": []},
    "rerank": {"op": "rerank", "candidates": [ROW, ROW]},
    "evaluate": {"op": "evaluate"},
}
SETTINGS = {"name": "n", "version": "1", "depth": 2, "top_k": 1, "token_budget": None, "index_version": "1"}
DESCRIPTION = {
    "settings": SETTINGS,
    "counts_tokens": True,
    "modules": {"app": "/app.py"},
    "search": ["/"],
    "installed": ["yaml"],
    "python": "3.11",
}


def found(*rows: Any, query: Any = '"q"') -> dict[str, Any]:
    return {"query": query, "candidates": list(rows)}


SOUND = [
    ("describe", DESCRIPTION),
    ("retrieve", found()),
    ("retrieve", found(ROW, ["d1", "c", None, None], query='{"a": [1e300, "\\u0000 \U0001f6d1"]}')),
    ("count_tokens", [0, 7]),
    ("generate", '{"answer": "bl\xfce", "n": -1.5}'),
    ("rerank", [1, 0]),
    ("rerank", []),
    ("evaluate", None),
    ("evaluate", True),
    ("evaluate", 0.25),
    ("construct", None),
]

FORGED = [
    ("describe", None),
    ("describe", {**DESCRIPTION, "settings": {**SETTINGS, "depth": "2"}}),
    ("describe", {**DESCRIPTION, "settings": {**SETTINGS, "name": None}}),
    ("describe", {**DESCRIPTION, "modules": ["app"]}),
    ("describe", {**DESCRIPTION, "search": 5}),
    ("describe", {**DESCRIPTION, "installed": [5]}),
    ("describe", {**DESCRIPTION, "counts_tokens": "yes"}),
    ("describe", {**DESCRIPTION, "settings": {**SETTINGS, "more": 1}}),
    ("describe", {**DESCRIPTION, "settings": [1]}),
    ("retrieve", None),
    ("retrieve", []),
    ("retrieve", found(5)),
    ("retrieve", found([1, 2, 3, 4])),
    ("retrieve", found(["", None, 0.5, "blue"])),
    ("retrieve", found(["d1", None, math.nan, "blue"])),
    ("retrieve", found(["d1", None, True, "blue"])),
    ("retrieve", found(["d1", None, 0.5, "\ud800"])),
    ("retrieve", found(["d1", 7, 0.5, "blue"])),
    ("retrieve", found(ROW, ROW)),
    ("retrieve", found(ROW, ["d2", None, 0.5, ""], ["d3", None, 0.5, ""])),
    ("retrieve", found(ROW, query=5)),
    ("retrieve", found(ROW, query="q")),
    ("retrieve", found(ROW, query="[" * 100_000)),
    ("count_tokens", 7),
    ("count_tokens", [1]),
    ("count_tokens", [1, -1]),
    ("count_tokens", [1, 2.5]),
    ("count_tokens", [1, True]),
    ("count_tokens", [1, 2**63]),
    ("generate", {"answer": "blue"}),
    ("generate", '["blue"]'),
    ("generate", '{"answer": NaN}'),
    ("generate", '{"answer": 1e400}'),
    ("generate", '{"answer": "\\udc00"}'),
    ("generate", json.dumps({"answer": json.loads("[" * 120 + "]" * 120)})),
    ("rerank", [0, 0]),
    ("rerank", [2]),
    ("rerank", [True]),
    ("rerank", "0"),
    ("evaluate", 1.5),
    ("evaluate", math.nan),
    ("evaluate", "passed"),
]


@pytest.mark.parametrize(("operation", "value"), SOUND)
def test_what_a_worker_sends_is_believed(operation: str, value: Any) -> None:
    request = REQUESTS.get(operation, {"op": operation})
    assert checked(request, value) is value


@pytest.mark.parametrize(("operation", "value"), FORGED)
def test_what_no_worker_sends_is_no_reply(operation: str, value: Any) -> None:
    with pytest.raises(NO_REPLY):
        checked(REQUESTS[operation], value)


@pytest.mark.parametrize("name", ["kind", "message", "traceback"])
@pytest.mark.parametrize("value", [5, [], {}, "\ud800"])
def test_an_error_of_another_form_is_no_reply(name: str, value: Any) -> None:
    error = {"kind": "exception", "message": "ValueError: x", "traceback": None}
    assert error_of(error) == ("exception", "ValueError: x", None)
    with pytest.raises(NO_REPLY):
        error_of({**error, name: value})


@pytest.mark.parametrize("reads", [5, [], [[["a", 5]], []], [[["\ud800", "1"]], []], [[["a"]], []], "ab"])
def test_files_of_another_form_are_no_reply(reads: Any) -> None:
    with pytest.raises(NO_REPLY):
        Opened().after(reads, "retrieve")
