"""JSON texts of many small values. Loaded inside the worker too, so standard library only."""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable
from typing import Any

#: What `json` makes anew for each value that it encodes, which takes longer than a small value does.
_make_encoder: Callable[..., Any] | None = getattr(json.encoder, "c_make_encoder", None)


def json_writer(
    *,
    ensure_ascii: bool = True,
    allow_nan: bool = True,
    sort_keys: bool = False,
    separators: tuple[str, str] = (", ", ": "),
    default: Callable[[Any], Any] | None = None,
) -> Callable[[Any], str]:
    """A function that gives the text which `json.dumps` gives with these settings, sooner when it is called often. Of a
    value that contains itself it says that it is nested too deep: RecursionError."""
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii,
        allow_nan=allow_nan,
        sort_keys=sort_keys,
        separators=separators,
        check_circular=False,
        default=default,
    )
    if _make_encoder is None:
        return encoder.encode
    text = json.encoder.encode_basestring_ascii if ensure_ascii else json.encoder.encode_basestring
    between, after_key = separators
    parts = _make_encoder(None, encoder.default, text, None, after_key, between, sort_keys, False, allow_nan)

    def write(value: Any) -> str:
        return "".join(parts(value, 0))

    return write
