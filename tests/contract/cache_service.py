"""A cache service of version 2 as github.com runs it: three calls in twirp's JSON, blobs in Azurite, faults on demand.

The official client (npm `@actions/cache`) saves and restores through it, which shows that it is true.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import requests
from blobs import Blobs

PATH = "/twirp/github.actions.results.api.v1.CacheService/"
#: How many bytes of a blob a transfer that breaks off gives.
CUT = 600


@dataclass
class Saved:
    key: str
    version: str
    blob: str
    finished: bool = False


@dataclass
class Fault:
    """What to answer to the next calls of a method, in the place of the truth."""

    status: int
    body: Any


@dataclass
class CacheServer:
    """The running service. `calls` are the methods called since the last `forget`."""

    blobs: Blobs
    entries: list[Saved] = field(default_factory=list)
    faults: dict[str, deque[Fault]] = field(default_factory=dict)
    #: How downloads go wrong: `cut` once, `cut always`, `expired`, `garbage`; empty when they do not.
    downloads: str = ""
    calls: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                service.tokens.add(self.headers["Authorization"])
                status, body = service.answer(self.path, json.loads(data))
                text = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.respond(status, text)

            def do_GET(self) -> None:
                service.calls.append("download")
                status, text, length = service.transfer(self.path, self.headers.get("Range", ""))
                self.respond(status, text, length)

            def respond(self, status: int, text: bytes, length: int | None = None) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text) if length is None else length))
                self.end_headers()
                self.wfile.write(text)
                if length is not None and length != len(text):
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def forget(self) -> None:
        self.entries.clear()
        self.faults.clear()
        self.calls.clear()
        self.downloads = ""

    def fail(self, method: str, status: int, body: Any = None, times: int = 1) -> None:
        self.faults.setdefault(method, deque()).extend([Fault(status, body or {"msg": "a fault"})] * times)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def environment(self) -> dict[str, str]:
        """What the runner tells a job about this service."""
        return {"ACTIONS_RESULTS_URL": self.url + "/", "ACTIONS_RUNTIME_TOKEN": "runtime-token"}

    # ------------------------------------------------------------------------------------ answers

    def answer(self, path: str, request: dict[str, Any]) -> tuple[int, Any]:
        method = path.removeprefix(PATH)
        self.calls.append(method)
        waiting = self.faults.get(method)
        if waiting:
            fault = waiting.popleft()
            return fault.status, fault.body
        found: tuple[int, Any] = getattr(self, f"_{method}")(request)
        return found

    def _GetCacheEntryDownloadURL(self, request: dict[str, Any]) -> tuple[int, Any]:  # noqa: N802
        wanted = [request["key"], *request.get("restore_keys", [])]
        assert len(wanted) <= 10, "GitHub takes at most ten keys"
        assert all(len(key) <= 512 and "," not in key for key in wanted), "GitHub refuses such a key"
        mine = [e for e in reversed(self.entries) if e.version == request["version"] and e.finished]
        for key in wanted:
            found = [e for e in mine if e.key.lower() == key.lower()]
            found += [e for e in mine if e.key.lower().startswith(key.lower())]
            if found:
                url = self.blobs.signed(found[0].blob, "r")
                if self.downloads:
                    url = f"{self.url}/download?from={quote(url, safe='')}"
                return 200, {"ok": True, "signed_download_url": url, "matched_key": found[0].key}
        return 200, {"ok": False, "signed_download_url": "", "matched_key": ""}

    def _CreateCacheEntry(self, request: dict[str, Any]) -> tuple[int, Any]:  # noqa: N802
        key, version = request["key"], request["version"]
        assert len(key) <= 512, "GitHub refuses such a key"
        assert "," not in key, "GitHub refuses such a key"
        if any(e.key.lower() == key.lower() and e.version == version for e in self.entries):
            return 409, {"code": "already_exists", "msg": "cache entry with the same key and version exists"}
        entry = Saved(key, version, f"blob{len(self.entries)}-{len(self.calls)}")
        self.entries.append(entry)
        return 200, {"ok": True, "signed_upload_url": self.blobs.signed(entry.blob, "cw"), "message": ""}

    def _FinalizeCacheEntryUpload(self, request: dict[str, Any]) -> tuple[int, Any]:  # noqa: N802
        entry = next(e for e in self.entries if (e.key, e.version) == (request["key"], request["version"]))
        held = requests.head(self.blobs.signed(entry.blob, "r"), timeout=20).headers["Content-Length"]
        assert request["size_bytes"] == held, "the size is not that of the blob"
        entry.finished = True
        return 200, {"ok": True, "entry_id": str(self.entries.index(entry) + 1), "message": ""}

    def transfer(self, path: str, ranged: str) -> tuple[int, bytes, int | None]:
        """A download that goes wrong."""
        (source,) = parse_qs(urlsplit(path).query)["from"]
        how = self.downloads
        if how == "expired":
            return 403, b"<Error><Code>AuthenticationFailed</Code></Error>", None
        if how == "garbage":
            return 200, b"<html>not an archive</html>", None
        if how == "cut":
            self.downloads = "whole"
        answer = requests.get(source, headers={"Range": ranged} if ranged else {}, timeout=20)
        if how.startswith("cut"):
            return answer.status_code, answer.content[:CUT], len(answer.content)
        return answer.status_code, answer.content, None
