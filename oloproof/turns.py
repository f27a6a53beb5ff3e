"""What steps ask for that no worker gets: to wait for one another, for another process, or for a model."""

from __future__ import annotations

#: The operation of a request that lets the steps wait for a `turn`.
WAIT = "wait"
#: Of one that waits for a claim: tries to `take` it, on any thread, for so many `seconds` at most.
CLAIM = "claim"
#: Of one that a model answers.
TO_MODEL = "judge"


class Turn:
    """What one case's steps are getting and others need too; `over` once it is there, or has failed."""

    def __init__(self) -> None:
        self.over = False
