"""Waiting for one another: what the steps of one case are getting, and those of others need too."""

from __future__ import annotations

#: The operation of a request that no worker gets: it lets the steps wait for a `turn`.
WAIT = "wait"


class Turn:
    """What one case's steps are getting and others need too; `over` once it is there, or has failed."""

    def __init__(self) -> None:
        self.over = False
