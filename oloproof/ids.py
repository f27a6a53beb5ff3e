"""ULIDs: ids that sort by the time they were made, 48 bits of milliseconds and 80 random ones.

Source: github.com/ulid/spec.
"""

from __future__ import annotations

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(milliseconds: int, randomness: bytes) -> str:
    """26 characters of Crockford base 32. `randomness` holds 10 bytes."""
    number = (milliseconds << 80) | int.from_bytes(randomness[:10], "big")
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def milliseconds(text: str) -> int:
    """When a ULID was made, in milliseconds since the epoch: its first ten characters."""
    value = 0
    for letter in text[:10]:
        value = value * 32 + _ALPHABET.index(letter)
    return value
