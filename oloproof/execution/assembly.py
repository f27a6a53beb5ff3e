"""Assembly: which of the recorded candidates reach the generator."""

from __future__ import annotations

from collections.abc import Sequence


def kept_within_budget(tokens: Sequence[int], budget: int | None) -> int:
    """How many of the passages, from the top, fit a token budget. `tokens` holds their counts, best first.

    The first passage that does not fit ends the context: a later, smaller one is not pulled forward. A context of
    exactly the budget fits.
    """
    if budget is None:
        return len(tokens)
    used = 0
    for kept, count in enumerate(tokens):
        used += count
        if used > budget:
            return kept
    return len(tokens)
