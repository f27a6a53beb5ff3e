"""How a question to a model goes over the wire."""

from __future__ import annotations

import array
import fcntl
import json
import socket
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oloproof.judges.calling import Limits, Provider
from oloproof.judges.providers import Answered, Model
from oloproof.judges.sending import Call

BODY = json.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}).encode()


class Server:
    """Answers like many a small server: headers in a packet of their own. Notes what it was sent, on how many
    connections, and how many seconds it took each time until the other side had said that the headers were there."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.waits: list[float] = []
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            with connection, connection.makefile("rb") as lines:
                while head := self._head(lines):
                    self.heads.append(head)
                    length = next(
                        line for line in head.splitlines() if line.lower().startswith("content-length")
                    )
                    lines.read(int(length.partition(":")[2]))
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY))
                    self.waits.append(_acknowledged(connection))
                    connection.sendall(BODY)

    @staticmethod
    def _head(lines: Iterator[bytes]) -> str:
        found = b""
        for line in lines:
            if line == b"\r\n":
                break
            found += line
        return found.decode()


def _acknowledged(connection: socket.socket) -> float:
    """How many seconds pass until all that was sent is acknowledged; at most one."""
    waiting = array.array("i", [0])
    started = time.monotonic()
    while (passed := time.monotonic() - started) < 1:
        fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, waiting)
        if not waiting[0]:
            break
        time.sleep(0.0005)
    return passed


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def _ask(server: Server, times: int) -> list[Answered]:
    provider = Provider({"KEY": "sk-secret"}, Limits())
    model = Model("openai", "m", f"http://127.0.0.1:{server.port}/v1", 0.0, 16)
    return [provider.call(Call(model, {"question": "Grüße"}, "KEY", 20.0)) for _ in range(times)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a program acknowledge at once")
def test_a_server_that_sends_headers_first_is_not_kept_from_sending_the_rest(server: Server) -> None:
    assert [each.text for each in _ask(server, 8)] == ["yes"] * 8
    # A connection starts with acknowledging at once; left to itself, it delays each from the second answer on by 40 ms.
    assert min(server.waits[1:]) < 0.035


def test_all_questions_of_a_thread_go_over_one_connection_each_with_its_own_length(server: Server) -> None:
    _ask(server, 2)
    assert server.connections == 1
    first, second = server.heads
    assert first == second
    assert "Authorization: Bearer sk-secret" in first
    assert f"Content-Length: {len(json.dumps({'question': 'Grüße'}))}" in first
    assert "Content-Type: application/json" in first


def test_a_password_of_the_netrc_file_does_not_take_the_place_of_the_key(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    _ask(server, 1)
    assert "Authorization: Bearer sk-secret" in server.heads[0]


def test_the_proxy_that_the_environment_names_is_asked(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    provider = Provider({"KEY": "sk-secret"}, Limits())
    model = Model("openai", "m", "http://models.example/v1", 0.0, 16)
    assert provider.call(Call(model, {}, "KEY", 20.0)).text == "yes"
    assert server.heads[0].startswith("POST http://models.example/v1/chat/completions HTTP/1.1\r\n")
