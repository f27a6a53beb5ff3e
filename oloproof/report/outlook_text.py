"""What would settle an open rule, in words."""

from __future__ import annotations

from oloproof.decisions.records import Outlook

#: Why more cases would not help; the reason code of the rule says the rest.
OBSTACLES = {
    "estimate_near_bound": "no number of cases like these would settle it",
    "too_many_missing": "more cases would not settle it while so many results are missing",
    "unstable_cases": "more cases would not settle it while the unstable ones are",
}


def outlook_text(outlook: Outlook | None) -> str:
    """`about 40 more cases like these would settle it as PASS (55% of the time)`; empty without anything to say."""
    if outlook is None:
        return ""
    if outlook.more is None:
        return OBSTACLES.get(outlook.obstacle or "", "")
    cases = "1 more case" if outlook.more == 1 else f"about {about(outlook.more)} more cases"
    state = "" if outlook.settles is None else f" as {outlook.settles.value}"
    return f"{cases} like these would settle it{state}{chance_text(outlook.chance)}"


def chance_text(chance: float | None) -> str:
    """` (55% of the time)`, to the nearest twentieth, which is as good as it is known; nothing when it is always."""
    if chance is None or chance == 1.0:
        return ""
    return f" ({min(95, max(5, 5 * round(20 * chance)))}% of the time)"


def about(count: int) -> str:
    """A number that is only about right: two digits of it, rounded up, as `14,000`."""
    unit = 10 ** max(0, len(str(count)) - 2)
    return f"{-(-count // unit) * unit:,}"
