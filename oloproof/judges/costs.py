"""What judging takes: prices, and the account of what was paid and what was kept from before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from oloproof.judges.providers import Tokens


@dataclass(frozen=True)
class JudgeCosts:
    """`calls` made now with their `input` and `output` tokens and their `cost`, in the currency of the user's prices;
    `unpriced` of them were to models without a price. `avoided` counts the answers that were kept from before, `saved`
    is what they would have cost again."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cost: float = 0.0
    unpriced: int = 0
    avoided: int = 0
    saved: float = 0.0


@dataclass(frozen=True)
class Price:
    """Cost per million tokens, in the currency of the user's prices."""

    input: float
    output: float

    def cost(self, tokens: Tokens) -> float:
        return (tokens.input * self.input + tokens.output * self.output) / 1_000_000


class Ledger:
    """Adds up costs, for itself and for the ledger of the whole that it is a part of."""

    def __init__(self, prices: Mapping[str, Price] | None = None, whole: Ledger | None = None) -> None:
        self._prices = {} if prices is None else prices
        self._whole = whole
        self._costs = JudgeCosts()
        self._later: list[Callable[[], None]] = []

    @property
    def costs(self) -> JudgeCosts:
        """What all came to so far."""
        while self._later:
            self._later.pop()()
        return self._costs

    def later(self, add: Callable[[], None]) -> None:
        """Have `add` called before anybody reads the costs: it adds here what it knows of by then."""
        self._later.append(add)
        if self._whole is not None:
            self._whole.later(add)

    def paid(self, model: str, calls: int, tokens: Tokens) -> None:
        """A question that took so many calls and tokens, whatever came of it."""
        price, costs = self._prices.get(model), self._costs
        self._costs = replace(
            costs,
            calls=costs.calls + calls,
            input=costs.input + tokens.input,
            output=costs.output + tokens.output,
            cost=costs.cost + (0.0 if price is None else price.cost(tokens)),
            unpriced=costs.unpriced + (calls if price is None and tokens != Tokens() else 0),
        )
        if self._whole is not None:
            self._whole.paid(model, calls, tokens)

    def kept(self, model: str, tokens: Tokens, answers: int = 1) -> None:
        """So many answers that took so many tokens before, and none now."""
        price, costs = self._prices.get(model), self._costs
        saved = 0.0 if price is None else price.cost(tokens)
        self._costs = replace(costs, avoided=costs.avoided + answers, saved=costs.saved + saved)
        if self._whole is not None:
            self._whole.kept(model, tokens, answers)
