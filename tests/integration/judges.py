"""A model on a local port that judges by a rule of the test's, in OpenAI's wire format."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Model:
    """The server; `verdict` gives the answer to a prompt, `asked` the prompts so far."""

    def __init__(self, verdict: Callable[[str], str]) -> None:
        self.verdict = verdict
        self.asked: list[str] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                prompt = body["messages"][-1]["content"]
                model.asked.append(prompt)
                said = json.dumps({"verdict": model.verdict(prompt), "rationale": "", "quotes": []})
                answer: dict[str, Any] = {
                    "choices": [{"message": {"content": said}, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 100, "completion_tokens": 10},
                }
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"


@contextmanager
def judging_model(verdict: Callable[[str], str]) -> Iterator[Model]:
    """A model that answers as long as the block lasts."""
    model = Model(verdict)
    thread = threading.Thread(target=model.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield model
    finally:
        model.server.shutdown()
        model.server.server_close()
        thread.join()
