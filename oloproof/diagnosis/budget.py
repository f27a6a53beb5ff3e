"""What a diagnosis that nobody asked for by name may cost, and which cases it takes when that is not enough."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class CallBudget:
    """At most `limit` calls of `generate`. `attempts` is how often one call may be made before it counts as failed.
    What is spent are the calls really made: a result that is stored costs nothing."""

    limit: int
    attempts: int = 1
    spent: int = 0

    @property
    def left(self) -> int:
        return max(0, self.limit - self.spent)

    def cases(self, calls_each: int) -> int:
        """How many cases can be afforded, when each may need `calls_each` results that are not stored."""
        return self.left // (calls_each * self.attempts)


def sample(case_ids: Sequence[str], limit: int) -> tuple[str, ...]:
    """At most `limit` of the cases, in their order; which ones depends on their ids alone, and a larger sample holds
    a smaller one."""
    if len(case_ids) <= limit:
        return tuple(case_ids)
    chosen = set(ranked(case_ids)[:limit])
    return tuple(name for name in case_ids if name in chosen)


def ranked(case_ids: Sequence[str]) -> list[str]:
    """The cases in an order that is as good as random, and the same every time."""
    return sorted(case_ids, key=lambda name: hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest())
