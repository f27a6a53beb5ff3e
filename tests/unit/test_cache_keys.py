"""Keys of cache entries: what a user names must not find what another name has."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oloproof_ci.actions_cache import keys

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.text(max_size=600)


@given(NAMES, NAMES, NAMES)
def test_a_key_is_legal_whatever_the_names(suite: str, index_version: str, stored: str) -> None:
    key = keys.stage_key(2, suite, index_version, stored)
    assert len(key) <= 512
    assert key == key.lower()
    assert key.isascii()
    assert not set(key) - set("abcdefghijklmnopqrstuvwxyz0123456789._-")


@given(NAMES, NAMES)
def test_different_names_never_find_each_other(one: str, other: str) -> None:
    for prefix in (
        lambda name: keys.stage_prefix(2, "suite", name),
        lambda name: keys.any_stage_prefix(2, name),
        lambda name: keys.baseline_key(2, "suite", name, "inputs"),
    ):
        found = prefix(other).lower().startswith(prefix(one).lower())
        assert found == (one == other)


@pytest.mark.parametrize(
    ("one", "other"), [("kb", "kb-2026"), ("kb", "KB"), ("a,b", "a_b"), ("é", "e"), ("", "x")]
)
def test_names_that_look_alike_have_keys_of_their_own(one: str, other: str) -> None:
    prefixes = [keys.stage_prefix(2, "suite", name) for name in (one, other)]
    assert not prefixes[0].startswith(prefixes[1])
    assert not prefixes[1].startswith(prefixes[0])


def test_a_look_up_by_suite_finds_the_stages_of_every_index_version_and_no_baseline() -> None:
    prefix = keys.any_stage_prefix(2, "suite")
    assert keys.stage_key(2, "suite", "kb", "digest").startswith(prefix)
    assert not keys.baseline_key(2, "suite", "commit", "inputs").startswith(prefix)
    assert not keys.stage_key(3, "suite", "kb", "digest").startswith(prefix)


def test_the_version_is_that_of_the_official_client() -> None:
    assert (
        keys.cache_version([".stage"]) == "9d755918284f3c94f14c9fe95a98359246261b43fa13d67285b0306cedd139ee"
    )
    joined = "|".join(["a", "b", "zstd-without-long", "1.0"])
    assert keys.cache_version(["a", "b"]) == hashlib.sha256(joined.encode()).hexdigest()
