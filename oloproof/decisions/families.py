"""Families of rules: several questions asked at once.

That all rules of a family hold is an intersection-union test, so each passes by its own interval (Berger,
"Multiparameter hypothesis testing and acceptance sampling", Technometrics 1982). That one of them is broken is a claim
about any, so it is corrected for how many could be (Holm, "A simple sequentially rejective multiple test procedure",
Scandinavian Journal of Statistics 1979).
"""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, each at most 1, in the order of those given: at most alpha when Holm's procedure at alpha
    refutes."""
    adjusted = [1.0] * len(p_values)
    so_far = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        so_far = max(so_far, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = so_far
    return adjusted
