"""What judging took."""

from __future__ import annotations

from typing import NamedTuple


class JudgeCosts(NamedTuple):
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
