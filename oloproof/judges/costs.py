"""What judging takes: prices, and the account of what was paid and what was kept from before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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


@dataclass
class Ledger:
    """Adds up costs, for itself and for the ledger of the whole that it is a part of."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    whole: Ledger | None = None
    costs: JudgeCosts = field(default_factory=JudgeCosts)

    def paid(self, model: str, calls: int, tokens: Tokens) -> None:
        """A question that took so many calls and tokens, whatever came of it."""
        price, costs = self.prices.get(model), self.costs
        self.costs = replace(
            costs,
            calls=costs.calls + calls,
            input=costs.input + tokens.input,
            output=costs.output + tokens.output,
            cost=costs.cost + (0.0 if price is None else price.cost(tokens)),
            unpriced=costs.unpriced + (calls if price is None and tokens != Tokens() else 0),
        )
        if self.whole is not None:
            self.whole.paid(model, calls, tokens)

    def kept(self, model: str, tokens: Tokens) -> None:
        """An answer that took so many tokens before, and none now."""
        price, costs = self.prices.get(model), self.costs
        saved = 0.0 if price is None else price.cost(tokens)
        self.costs = replace(costs, avoided=costs.avoided + 1, saved=costs.saved + saved)
        if self.whole is not None:
            self.whole.kept(model, tokens)
