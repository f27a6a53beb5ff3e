"""Fetching the history that a shallow clone lacks: actions/checkout leaves all but one commit out unless it is told."""

from __future__ import annotations

import base64
from collections.abc import Callable

from oloproof_ci.git import Repository

#: How much more history is asked for, step by step, when it is not known how far back two branches part.
DEPTHS = (50, 500)


class Fetching:
    """Fetches from origin, with a token that goes by environment: never in a URL or an argument, where other
    processes and logs would show it."""

    def __init__(self, repository: Repository, server_url: str, token: str) -> None:
        self._repository = repository
        self._settings = authorization(server_url, token) if token else ()
        #: Why the last fetch failed, as git said it.
        self.failure = ""

    def commit(self, sha: str) -> bool:
        """Have a commit, without its history; whether it is there."""
        return self._until(lambda: self._repository.has(sha), [["--depth=1", "origin", sha]])

    def branch(self, name: str) -> bool:
        """Have the tip of a branch of origin, under the name that git gives it there."""
        remote = f"origin/{name}"
        refspec = f"+refs/heads/{name}:refs/remotes/{remote}"
        return self._until(lambda: self._repository.has(remote), [["--depth=1", "origin", refspec]])

    def history(self, one: str, other: str) -> bool:
        """Have as much history as shows where two commits part."""
        related, shas = self._repository.related, (one, other)
        if not self._repository.is_shallow():
            return related(one, other)
        steps = [[f"--depth={depth}", "origin", *shas] for depth in DEPTHS]
        return self._until(lambda: related(one, other), [*steps, ["--unshallow", "origin", *shas]])

    def _until(self, enough: Callable[[], bool], fetches: list[list[str]]) -> bool:
        for arguments in fetches:
            if enough():
                return True
            self.failure = self._repository.fetch(arguments, self._settings)
            if self.failure:
                return False
        return enough()


def authorization(server_url: str, token: str) -> tuple[tuple[str, str], ...]:
    """git's settings for a token of that server. The empty value drops what a checkout has left: two headers would be
    refused."""
    key = f"http.{server_url}/.extraheader"
    credentials = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return (key, ""), (key, f"AUTHORIZATION: basic {credentials}")
