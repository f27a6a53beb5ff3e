"""Canonical JSON and digests."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oloproof.canonical import canonical_json, digest, framed, given_json
from oloproof.jsontext import json_writer

leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(values)
def test_the_texts_are_those_of_the_json_module(value: object) -> None:
    compact = (",", ":")
    assert canonical_json(value) == json.dumps(value, sort_keys=True, separators=compact)
    assert given_json(value) == json.dumps(value, separators=compact)
    assert json_writer()(value) == json.dumps(value)
    assert json_writer(ensure_ascii=False)(value) == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_json_number_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": [number]})


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError, match="set is not JSON serializable"):
        canonical_json({1, 2})


def test_a_digest_is_that_of_its_parts_each_behind_its_length() -> None:
    assert framed("case", b"\x00", "ü") == b"4:case1:\x002:\xc3\xbc"
    assert digest("case", b"\x00", "ü") == hashlib.sha256(framed("case", b"\x00", "ü")).digest()
    assert digest("ab", "c") != digest("a", "bc")
