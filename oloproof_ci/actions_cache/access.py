"""Which cache service a job has, and whether it may read and write.

Source: the official client (npm `@actions/cache`), whose choice of service, and whose modes, these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from oloproof_ci.actions_cache.service import CacheService
from oloproof_ci.actions_cache.transfers import Transfers
from oloproof_ci.actions_cache.v1 import ServiceV1
from oloproof_ci.actions_cache.v2 import ServiceV2

#: The modes of ACTIONS_CACHE_MODE in which each is forbidden; any other, and none, allows both.
NOT_READABLE = frozenset({"none", "write-only"})
NOT_WRITABLE = frozenset({"none", "read"})


@dataclass(frozen=True)
class Access:
    """What a job may do with the cache. `service` is None when it has none, and `reason` then says why."""

    service: CacheService | None
    readable: bool = True
    writable: bool = True
    reason: str = ""


def access(environment: Mapping[str, str], transfers: Transfers) -> Access:
    """The service of this job's environment."""
    mode = environment.get("ACTIONS_CACHE_MODE", "").strip().lower()
    readable, writable = mode not in NOT_READABLE, mode not in NOT_WRITABLE
    service = _service(environment, transfers)
    if service is None:
        return Access(None, reason="this job has no cache service")
    return Access(service, readable, writable)


def _service(environment: Mapping[str, str], transfers: Transfers) -> CacheService | None:
    token = environment.get("ACTIONS_RUNTIME_TOKEN", "")
    results, cache = environment.get("ACTIONS_RESULTS_URL", ""), environment.get("ACTIONS_CACHE_URL", "")
    if on_own_server(environment.get("GITHUB_SERVER_URL", "")):
        return ServiceV1(cache, token, transfers) if cache else None
    if environment.get("ACTIONS_CACHE_SERVICE_V2") and results:
        return ServiceV2(results, token, transfers)
    if environment.get("ACT") and cache:
        return ServiceV1(cache, token, transfers)
    if results:
        return ServiceV2(results, token, transfers)
    return ServiceV1(cache, token, transfers) if cache else None


def on_own_server(server_url: str) -> bool:
    """Whether this is a GitHub Enterprise Server, which has the older service only."""
    host = (urlsplit(server_url or "https://github.com").hostname or "").lower()
    return not (host == "github.com" or host.endswith((".ghe.com", ".localhost")))
