"""A model provider for the tests: aimock, which speaks OpenAI's and Anthropic's formats, behind a proxy of our own that
counts what is asked and breaks what aimock cannot: connections, time, and what is no JSON.

What happens to a question stands in its text, as `fault:NAME`, so that one run can meet all of it.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from proxied import Proxied, send

QUOTED = "Refunds take 14 days"


def verdict(name: str, quote: str = QUOTED, rationale: str = "so it says") -> dict[str, Any]:
    quotes = [{"passage": 1, "text": quote}] if quote else []
    return {"verdict": name, "rationale": rationale, "quotes": quotes}


def said(found: Any, **more: Any) -> dict[str, Any]:
    """An answer of aimock in both formats."""
    return {"tool": found, "plain": {"content": json.dumps(found), **more}}


def words(text: str, **more: Any) -> dict[str, Any]:
    return {"plain": {"content": text, **more}}


def refused(status: int, message: str, **more: Any) -> dict[str, Any]:
    return {"plain": {"error": {"message": message, "type": "error"}, "status": status, **more}}


#: How OpenAI's models decline to answer, which aimock does not say.
DECLINED = {
    "choices": [
        {"message": {"role": "assistant", "content": None, "refusal": "I cannot."}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 40, "completion_tokens": 4},
}
#: How Anthropic's do, in the midst of an answer.
STOPPED = {
    "content": "I can",
    "finishReason": "refusal",
    "usage": {"input_tokens": 40, "output_tokens": 2},
}
#: What aimock answers to questions that hold `fault:NAME`; the last one is for all others.
ANSWERS: dict[str, dict[str, Any]] = {
    "bad-request": refused(400, "temperature is not supported"),
    "too-long": refused(400, "maximum context length is 128000 tokens"),
    "wrong-key": refused(401, "incorrect key"),
    "no-model": refused(404, "the model does not exist"),
    "asked-too-often": refused(429, "slow down", retryAfter=7),
    "asked-far-too-often": refused(429, "come back tomorrow", retryAfter=86_400),
    "broken": refused(500, "internal error"),
    "overloaded": refused(529, "overloaded"),
    "empty": words(""),
    "cut-short": words('{"verdict": "grou', finishReason="length"),
    "refusal": words("", finishReason="content_filter") | {"tooled": STOPPED},
    "declined": words("") | {"tooled": STOPPED},
    "german": said(verdict("fundiert")),
    "chatty": words("I think that the answer is grounded."),
    "invented-quote": said(verdict("grounded", "Refunds take a year")),
    "passes": said(verdict("pass", "")),
    "fails": said(verdict("fail", "")),
    "ungrounded": said(verdict("not_grounded", "")),
    "": said(verdict("grounded")),
}


class ModelServer(Proxied):
    """The server. `requests` are the bodies and headers that came in, `delay` is waited before each answer."""

    program = "models.mjs"

    def __init__(self) -> None:
        super().__init__()
        self.url += "/v1"
        self.requests: list[tuple[dict[str, str], Any]] = []
        self.delay = 0.0
        #: How often each fault of FIRST was met.
        self._met: Counter[str] = Counter()

    def settings(self) -> Mapping[str, Any]:
        return {"answers": [{"holding": f"fault:{n}" if n else "", **each} for n, each in ANSWERS.items()]}

    def forget(self) -> None:
        with self._lock:
            self.requests = []
            self._met.clear()
            self.delay = 0.0

    def asked(self, holding: str = "") -> int:
        """How many requests held a text."""
        with self._lock:
            return sum(holding in json.dumps(body) for _, body in self.requests)

    def serve(self, handler: BaseHTTPRequestHandler, data: bytes) -> None:
        body = json.loads(data)
        question = body["messages"][-1]["content"]
        with self._lock:
            self.requests.append((dict(handler.headers), body))
        time.sleep(self.delay)
        marker = re.search(r"fault:([\w-]+)", question)
        fault = marker[1] if marker else ""
        with self._lock:
            self._met[fault] += 1
            first = self._met[fault] == 1
        if first and fault == "once-broken":
            return send(handler, 500, b"{}")
        if first and fault == "once-too-often":
            return send(handler, 429, b"{}", {"Retry-After": "1"})
        if fault == "echo":
            key = handler.headers.get("Authorization", "") + handler.headers.get("x-api-key", "")
            text = json.dumps({"error": {"message": f"no such header: {key.removeprefix('Bearer ')}"}})
            return send(handler, 400, text.encode())
        if fault == "declined" and "tools" not in body:
            return send(handler, 200, json.dumps(DECLINED).encode())
        if fault == "html":
            return send(handler, 200, b"<html><body>Please log in</body></html>")
        if fault == "late":
            time.sleep(30)
        if fault == "dripping":
            return _drip(handler)
        if fault == "dripping-headers":
            return _drip_headers(handler)
        if fault == "cut":
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(b'{"choices": [')
            handler.close_connection = True
            return None
        if fault == "hung-up":
            handler.close_connection = True
            return None
        return self._forward(handler, data)

    def _forward(self, handler: BaseHTTPRequestHandler, data: bytes) -> None:
        kept = {n: v for n, v in handler.headers.items() if n.lower() not in ("host", "accept-encoding")}
        status, given, found = self.upstream("POST", handler.path, data, kept)
        send(handler, status, found, {"Retry-After": value} if (value := given.get("Retry-After")) else {})


def _drip_headers(handler: BaseHTTPRequestHandler) -> None:
    """A header every now and then, so that none is late and the answer never begins."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(90):
        handler.wfile.write(f"X-{number}: y\r\n".encode())
        handler.wfile.flush()
        time.sleep(0.1)


def _drip(handler: BaseHTTPRequestHandler) -> None:
    """A byte every now and then, so that each arrives in time and the whole never does."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)
