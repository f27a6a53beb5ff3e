"""What judges answered, by question: the same question to the same model is never paid twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oloproof.judges.providers import Answered, Tokens
from oloproof.store.database import Database


class JudgeCalls:
    """Answers of models. They are never overwritten, but for answers that were asked for anew."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def find(self, ids: Sequence[bytes]) -> dict[bytes, Answered]:
        return {
            identity: _answered(row) for identity, row in self._database.find_all("judge_call", ids).items()
        }

    def claim(self, identity: bytes) -> bool:
        """Say that this process is going to ask; False while another one is at it. May be called on any thread."""
        return self._database.claims.take(identity)

    def unclaim(self, identity: bytes) -> None:
        """Let another process ask."""
        self._database.claims.give_back(identity)

    def put(self, identity: bytes, model: str, answered: Answered, *, anew: bool) -> Answered:
        """Keep an answer; gives the one that is kept. That is another one when another run had it first, unless it was
        asked for `anew`. The claim lasts until others can read it."""
        tokens = answered.tokens
        said = (answered.text, answered.fault, answered.detail, tokens.input, tokens.output)
        row = (identity, model, *said, self._clock())
        way = "REPLACE" if anew else "IGNORE"
        self._database.claims.settle(identity)
        self._database.write_among_others(
            f"INSERT OR {way} INTO judge_call VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [row]
        )
        return self.find([identity])[identity]


def _answered(row: tuple[object, ...]) -> Answered:
    _, _, text, fault, detail, read, written, _ = row
    return Answered(str(text), Tokens(int(str(read)), int(str(written))), str(fault), str(detail))
