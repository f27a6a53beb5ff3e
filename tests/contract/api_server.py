"""A GitHub for the tests: the stateful server of `emulate`, behind a proxy of our own that holds every exchange against
GitHub's description of its API, and makes faults where a test wants them.

What `emulate` has none of stands in the proxy: commit statuses, and which commit is the head of a pull request.
"""

from __future__ import annotations

import json
import re
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from description import Description
from proxied import Proxied, send

OWNER = "octo"
JOB_TOKEN, PERSON_TOKEN, OTHER_TOKEN = "job-token", "person-token", "other-token"
JOB_LOGIN = "github-actions[bot]"
LOGINS = {JOB_TOKEN: JOB_LOGIN, PERSON_TOKEN: OWNER, OTHER_TOKEN: "mallory"}
#: The prefix of the API on GitHub Enterprise Server.
ENTERPRISE = "/api/v3"
#: The most characters that GitHub takes as a comment; `emulate` takes more.
LONGEST = 65_536
_WRITTEN = re.compile(r"/issues/(\d+/comments|comments/\d+)$")
_STATUS = re.compile(r"/repos/([^/]+/[^/]+)/statuses/([0-9a-f]+)")
_COMBINED = re.compile(r"/repos/([^/]+/[^/]+)/commits/([0-9a-f]+)/status")
_PULL = re.compile(r"/repos/([^/]+/[^/]+)/pulls(?:/(\d+))?")


@dataclass
class Fault:
    """What goes wrong with the next `times` requests that match. `status` answers in GitHub's place; with `written`
    the request is carried out first; `drop` closes the connection without an answer; `delay` waits before. Only
    requests match whose body has `holding` in it."""

    method: str
    path: str
    holding: str = ""
    times: int = 1
    status: int = 0
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    written: bool = False
    drop: bool = False
    delay: float = 0.0


@dataclass(frozen=True)
class Exchange:
    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    status: int


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class ApiServer(Proxied):
    """The server, with what it was asked and how that kept to the description."""

    program = "emulator.mjs"

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[Fault] = []
        self.exchanges: list[Exchange] = []
        self.violations: list[str] = []
        #: Commit statuses, oldest first, as they were asked for, with `sha`.
        self.statuses: list[dict[str, Any]] = []
        #: Heads of pull requests by repository and number, in the place of those that `emulate` made up.
        self.heads: dict[tuple[str, int], str] = {}
        self._description = Description()

    def settings(self) -> Mapping[str, Any]:
        return {
            "baseUrl": self.url,
            "seed": {
                "tokens": {token: {"login": login, "scopes": ["repo"]} for token, login in LOGINS.items()},
                "github": {"users": [{"login": login} for login in LOGINS.values()]},
            },
        }

    # ------------------------------------------------------------------------------------- for tests

    def forget(self) -> None:
        """Begin the next test; what was posted stays, in repositories of their own."""
        with self._lock:
            self.faults, self.exchanges, self.violations, self.statuses = [], [], [], []
            self.heads = {}

    def ask(self, method: str, path: str, body: Any = None, token: str = PERSON_TOKEN) -> Any:
        """A request of the test's own, past the proxy."""
        data = b"" if body is None else json.dumps(body).encode()
        answer = self._forward(method, path, {"Authorization": f"token {token}"}, data)
        assert answer.status < 300, (method, path, answer)
        return json.loads(answer.body or b"null")

    def make_pull_request(self, head: str = "") -> tuple[str, int]:
        """A repository of its own with one open pull request, whose head can be given; its name and the number."""
        name = f"repo-{uuid.uuid4().hex[:8]}"
        self.ask("POST", "/user/repos", {"name": name, "auto_init": True})
        for login in (JOB_LOGIN, LOGINS[OTHER_TOKEN]):
            self.ask("PUT", f"/repos/{OWNER}/{name}/collaborators/{login}", {"permission": "push"})
        pull = {"title": "A change", "head": "feature", "base": "main"}
        number = self.ask("POST", f"/repos/{OWNER}/{name}/pulls", pull)["number"]
        if head:
            self.heads[f"{OWNER}/{name}", number] = head
        return f"{OWNER}/{name}", number

    def comments(self, repository: str, number: int) -> list[Any]:
        found: list[Any] = []
        for page in range(1, 20):
            listed = self.ask("GET", f"/repos/{repository}/issues/{number}/comments?per_page=100&page={page}")
            found += listed
            if len(listed) < 100:
                break
        return found

    def add_comment(self, repository: str, number: int, body: str, token: str = OTHER_TOKEN) -> int:
        posted = self.ask("POST", f"/repos/{repository}/issues/{number}/comments", {"body": body}, token)
        return int(posted["id"])

    def fail(self, method: str, path: str, **what: Any) -> None:
        with self._lock:
            self.faults.append(Fault(method, path, **what))

    def calls(self) -> list[str]:
        """The requests so far: method and path."""
        return [f"{exchange.method} {exchange.path}" for exchange in self.exchanges]

    # ------------------------------------------------------------------------------------ the proxy

    def serve(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        target = handler.path
        prefix = ENTERPRISE if target.startswith(f"{ENTERPRISE}/") else ""
        target = target.removeprefix(prefix)
        address = urlsplit(target)
        fault = self._next_fault(handler.command, address.path, body)
        if fault and fault.delay:
            time.sleep(fault.delay)
        if fault and (fault.status or fault.drop) and not fault.written:
            answer = _faulty(fault)
        else:
            answer = self._answer(handler.command, target, handler.headers, body)
            if fault and fault.status:
                answer = _faulty(fault)
        self._record(handler.command, address.path, address.query, body, answer, fault)
        if fault and fault.drop:
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
            return
        self._send(handler, answer, prefix)

    def _send(self, handler: BaseHTTPRequestHandler, answer: Answer, prefix: str) -> None:
        """Addresses in the answer lead back to us, on an Enterprise Server under its prefix."""
        api = f"{self.url}{prefix}/"
        body = answer.body.replace(f"{self.url}/".encode(), api.encode())
        headers = {n: text.replace(f"http://{self._upstream}/", api) for n, text in answer.headers.items()}
        send(handler, answer.status, body, headers)

    def _next_fault(self, method: str, path: str, body: bytes) -> Fault | None:
        with self._lock:
            for fault in self.faults:
                matches = fault.method == method and re.search(fault.path, path)
                if fault.times > 0 and matches and fault.holding.encode() in body:
                    fault.times -= 1
                    return fault
        return None

    def _answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        path = urlsplit(target).path
        if (
            method in ("POST", "PATCH")
            and _WRITTEN.search(path)
            and len(json.loads(body).get("body", "")) > LONGEST
        ):
            return _faulty(Fault(method, path, status=422, message="Validation Failed: body is too long"))
        if method == "POST" and (found := _STATUS.fullmatch(path)):
            return self._set_status(found[1], found[2], headers, json.loads(body))
        if method == "GET" and (found := _COMBINED.fullmatch(path)):
            return self._combined_status(found[1], found[2], headers)
        answer = self._forward(method, target, headers, body)
        if method == "GET" and answer.status == 200 and (found := _PULL.fullmatch(path)):
            return self._with_heads(found[1], answer)
        return answer

    def _forward(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        passed = {"Authorization": headers.get("Authorization") or "", "Content-Type": "application/json"}
        status, given, found = self.upstream(method, target, body, passed)
        kept = {name: value for name in ("Content-Type", "Link") if (value := given.get(name))}
        return Answer(status, kept, found)

    def _set_status(
        self, repository: str, sha: str, headers: Mapping[str, str], asked: Mapping[str, Any]
    ) -> Answer:
        login = LOGINS[(headers.get("Authorization") or "").split()[-1]]
        with self._lock:
            self.statuses.append({**asked, "repository": repository, "sha": sha, "creator": login})
            number = len(self.statuses)
        creator = json.loads(self._forward("GET", f"/users/{login}", headers, b"").body)
        made = {
            "url": f"{self.url}/repos/{repository}/statuses/{sha}",
            "avatar_url": None,
            "id": number,
            "node_id": f"SC_{number}",
            "state": asked["state"],
            "description": asked.get("description"),
            "target_url": asked.get("target_url"),
            "context": asked.get("context", "default"),
            "created_at": "2026-11-29T10:00:00Z",
            "updated_at": "2026-11-29T10:00:00Z",
            "creator": creator,
        }
        return Answer(201, {"Content-Type": "application/json"}, json.dumps(made).encode())

    def _combined_status(self, repository: str, sha: str, headers: Mapping[str, str]) -> Answer:
        """The newest status of each name."""
        with self._lock:
            newest = {
                status["context"]: (number, status)
                for number, status in enumerate(self.statuses, 1)
                if (status["repository"], status["sha"]) == (repository, sha)
            }
        url = f"{self.url}/repos/{repository}/commits/{sha}"
        listed = [
            {
                "url": f"{self.url}/repos/{repository}/statuses/{sha}",
                "avatar_url": None,
                "id": number,
                "node_id": f"SC_{number}",
                "state": status["state"],
                "description": status.get("description"),
                "target_url": status.get("target_url"),
                "context": context,
                "created_at": "2026-11-29T10:00:00Z",
                "updated_at": "2026-11-29T10:00:00Z",
            }
            for context, (number, status) in newest.items()
        ]
        found = {
            "state": "pending",
            "statuses": listed,
            "sha": sha,
            "total_count": len(listed),
            "repository": json.loads(self._forward("GET", f"/repos/{repository}", headers, b"").body),
            "commit_url": url,
            "url": f"{url}/status",
        }
        return Answer(200, {"Content-Type": "application/json"}, json.dumps(found).encode())

    def _with_heads(self, repository: str, answer: Answer) -> Answer:
        found = json.loads(answer.body)
        for pull in found if isinstance(found, list) else [found]:
            head = self.heads.get((repository, pull["number"]))
            if head is not None:
                pull["head"]["sha"] = head
        return Answer(answer.status, answer.headers, json.dumps(found).encode())

    def _record(
        self, method: str, path: str, query: str, body: bytes, answer: Answer, fault: Fault | None
    ) -> None:
        given = dict(parse_qsl(query))
        asked = json.loads(body) if body else None
        found = []
        if fault is None or (fault.body is None and not fault.drop):
            found = self._description.violations(
                method, path, given, body, answer.status, answer.headers, answer.body
            )
        with self._lock:
            self.exchanges.append(Exchange(method, path, given, asked, answer.status))
            self.violations += found


def _faulty(fault: Fault) -> Answer:
    if fault.body is not None:
        return Answer(fault.status, {"Content-Type": "text/html", **fault.headers}, fault.body.encode())
    told = {"message": fault.message, "documentation_url": "https://docs.github.com/rest"}
    return Answer(
        fault.status, {"Content-Type": "application/json", **fault.headers}, json.dumps(told).encode()
    )
