"""Canonical JSON and digests: equal values give equal bytes, on every machine and Python.

Keys are sorted, no white space, no escapes beyond JSON's own, NaN and infinities refused. 1 and 1.0 differ.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from oloproof.jsontext import json_writer

_canonical = json_writer(allow_nan=False, sort_keys=True, separators=(",", ":"))
_given = json_writer(allow_nan=False, separators=(",", ":"))


def canonical_json(value: Any) -> str:
    """The one JSON text of a value. Raises ValueError for NaN, TypeError for what is not JSON."""
    return _canonical(value)


def given_json(value: Any) -> str:
    """The same with the keys in the order in which they are given, which code that goes through them can tell."""
    return _given(value)


def framed(*parts: str | bytes) -> bytes:
    """Parts one after the other, each preceded by its length, so that no two lists of parts collide."""
    chunks: list[bytes] = []
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        chunks += (b"%d:" % len(data), data)
    return b"".join(chunks)


def digest(*parts: str | bytes) -> bytes:
    """SHA-256 (32 bytes) over parts, as `framed` puts them together."""
    return sha256(framed(*parts)).digest()


def content_id(value: Any) -> str:
    """`sha256:<hex>` of a value's canonical JSON: the id of a comparison or diagnosis."""
    return "sha256:" + sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()
