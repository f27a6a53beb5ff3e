"""The cases that came out differently when they were repeated without any change, remembered from run to run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oloproof.store.database import Database

#: A case is forgotten when at least this many repeats at once all came out as the run did.
ENOUGH_REPEATS = 5


@dataclass(frozen=True)
class UnstableCase:
    """A case that is not to be relied on in a criterion: `differed` of its `repeats` so far did not come out as the run
    that they repeated."""

    case_id: str
    criterion: str
    differed: int
    repeats: int


class UnstableCases:
    """What is remembered. A case is known by its input and expected value, so an edited one is another."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, criterion: str, repeats: Iterable[tuple[bytes, int, int]]) -> None:
        """Take in what controls came to: for each case the digest of its input and expected value, and how many of how
        many observed repeats came out differently."""
        for pair, differed, observed in repeats:
            key = (pair, criterion)
            known = self._database.read(
                "SELECT differed, repeats FROM unstable WHERE pair = ? AND criterion = ?", key
            ).fetchone()
            if differed == 0 and known is not None and observed >= ENOUGH_REPEATS:
                self._database.write("DELETE FROM unstable WHERE pair = ? AND criterion = ?", [key])
            elif differed or known is not None:
                before = known or (0, 0)
                row = (*key, before[0] + differed, before[1] + observed)
                self._database.write("INSERT OR REPLACE INTO unstable VALUES (?, ?, ?, ?)", [row])

    def of_run(self, run_id: str) -> tuple[UnstableCase, ...]:
        """Those among the cases of a run, by id."""
        if self._database.read("SELECT 1 FROM unstable LIMIT 1").fetchone() is None:
            return ()
        rows = self._database.read(
            "SELECT c.case_id, u.criterion, u.differed, u.repeats FROM run_case c "
            "CROSS JOIN unstable u ON u.pair = c.pair WHERE c.run = ? ORDER BY c.case_id, u.criterion",
            (run_id,),
        )
        return tuple(UnstableCase(*row) for row in rows)
