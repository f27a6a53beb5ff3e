"""Tables with box lines, for terminals."""

from __future__ import annotations

from collections.abc import Sequence

import tabulate

# Columns are as wide as their contents; tabulate would add two to each heading.
tabulate.MIN_PADDING = 0


def grid(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table, every column left-aligned, never wrapped or cut. Cells hold no line breaks."""
    return tabulate.tabulate(
        rows, headers, tablefmt="simple_outline", disable_numparse=True, colalign=["left"] * len(headers)
    ).splitlines()
