"""Canonical JSON and digests: equal values give equal bytes, on every machine and Python.

Keys are sorted, no white space, no escapes beyond JSON's own, NaN and infinities refused. 1 and 1.0 differ.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_ENCODER = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"), check_circular=False
)
_GIVEN = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), check_circular=False)


def canonical_json(value: Any) -> str:
    """The one JSON text of a value. Raises ValueError for NaN, TypeError for what is not JSON."""
    return _ENCODER.encode(value)


def given_json(value: Any) -> str:
    """The same with the keys in the order in which they are given, which code that goes through them can tell."""
    return _GIVEN.encode(value)


def digest(*parts: str | bytes) -> bytes:
    """SHA-256 (32 bytes) over parts, each preceded by its length, so that no two lists of parts collide."""
    chunks: list[bytes] = []
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        chunks += (b"%d:" % len(data), data)
    return hashlib.sha256(b"".join(chunks)).digest()


def content_id(value: Any) -> str:
    """`sha256:<hex>` of a value's canonical JSON: the id of a comparison or diagnosis."""
    return "sha256:" + hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()
