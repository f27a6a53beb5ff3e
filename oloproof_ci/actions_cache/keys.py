"""Keys of cache entries, and the version that makes our entries and those of `actions/cache` the same.

The service finds an entry by the beginning of its key, without regard to case, newest first. So each component is a
readable slug with 12 hex digits of the digest of its exact text, closed by a hyphen: `kb` is not found for `kb-2026`,
and `KB` is not `kb`. A slug has no hyphen of its own, and no comma, which the service forbids.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence

PREFIX = "oloproof-"
#: The longest slug; four components stay far below the 512 characters of a key.
SLUG = 48
DIGEST = 12
#: The compression method that `actions/cache` names where it finds zstd.
METHOD = "zstd-without-long"


def component(text: str) -> str:
    """One component of a key: legal whatever the text, and different for different texts."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9._]+", "_", plain.lower()).strip("_.")[:SLUG]
    return f"{slug or 'x'}.{_digest(text)}-"


def suite_prefix(schema: int, suite: str) -> str:
    """What the keys of all entries of a suite begin with."""
    return f"{PREFIX}{component(f'store{schema}')}{component(suite)}"


def stage_prefix(schema: int, suite: str, index_version: str) -> str:
    """What the keys of a suite's entries of one index version begin with."""
    return suite_prefix(schema, suite) + "stages-" + component(index_version)


def stage_key(schema: int, suite: str, index_version: str, stored: str) -> str:
    """The key of an entry; `stored` is the digest of the keys of all results in it."""
    return stage_prefix(schema, suite, index_version) + component(stored[:DIGEST])


def any_stage_prefix(schema: int, suite: str) -> str:
    """What the keys of a suite's entries begin with, of whichever index version."""
    return suite_prefix(schema, suite) + "stages-"


def baseline_key(schema: int, suite: str, commit: str, inputs: str) -> str:
    """The key of the run on a commit of the base branch; `inputs` is the digest of what else that run depends on."""
    return suite_prefix(schema, suite) + "baseline-" + component(commit) + component(inputs)


def cache_version(paths: Sequence[str]) -> str:
    """The version under which `actions/cache` keeps an entry of these paths (relative to the workspace)."""
    return hashlib.sha256("|".join([*paths, METHOD, "1.0"]).encode()).hexdigest()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST]
