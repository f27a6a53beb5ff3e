"""The older cache service, of GitHub Enterprise Server and of `act`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from oloproof_ci.actions_cache.service import Entry
from oloproof_ci.actions_cache.transfers import CacheProblem, Transfers

if TYPE_CHECKING:
    from requests import Response

PATH = "_apis/artifactcache/"
CHUNK = 32 << 20


class ServiceV1:
    """A client. `base` is ACTIONS_CACHE_URL; the address may itself hold the secret, so a token is sent only when there
    is one."""

    def __init__(self, base: str, token: str, transfers: Transfers) -> None:
        self._base = base if base.endswith("/") else base + "/"
        self._token = token
        self._transfers = transfers

    def find(self, keys: Sequence[str], version: str) -> Entry | None:
        query = urlencode({"keys": ",".join(keys), "version": version})
        answer = self._transfers.ask(
            "GET", f"{self._url('cache')}?{query}", headers=self._headers(), answers=_found
        )
        if answer is None:
            return None
        key, place = answer.get("cacheKey"), answer.get("archiveLocation")
        if not (isinstance(key, str) and isinstance(place, str) and place):
            raise CacheProblem("the cache service's answer has no archiveLocation")
        return Entry(key, place)

    def save(self, key: str, version: str, archive: Path) -> bool:
        size = archive.stat().st_size
        reserved = self._transfers.ask(
            "POST",
            self._url("caches"),
            headers=self._headers(),
            json={"key": key, "version": version, "cacheSize": size},
            answers=_reserved,
        )
        if reserved is None:
            return False
        place = self._url(f"caches/{reserved}")
        for start in range(0, size, CHUNK):
            length = min(CHUNK, size - start)
            self._transfers.ask(
                "PATCH",
                place,
                headers=self._headers()
                | {
                    "Content-Type": "application/octet-stream",
                    "Content-Range": f"bytes {start}-{start + length - 1}/*",
                },
                body=partial(self._transfers.part, archive, start, length),
                answers=_accepted,
            )
        self._transfers.ask("POST", place, headers=self._headers(), json={"size": size}, answers=_accepted)
        return True

    def _url(self, name: str) -> str:
        return self._base + PATH + name

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json;api-version=6.0-preview.1"}
        return headers | ({"Authorization": f"Bearer {self._token}"} if self._token else {})


def _found(response: Response) -> dict[str, Any] | None:
    if response.status_code == 204:
        return None
    _accepted(response)
    return _object(response)


def _reserved(response: Response) -> int | None:
    if response.status_code == 409:
        return None
    _accepted(response)
    number = _object(response).get("cacheId")
    if not isinstance(number, int):
        raise CacheProblem("the cache service's answer has no cacheId")
    return number


def _accepted(response: Response) -> None:
    status = response.status_code
    if 200 <= status < 300:
        return
    if status == 429:
        raise CacheProblem("the cache service is asked too often (429)")
    if status == 403 and "cache read denied" in response.text[:500]:
        raise CacheProblem("this job may not read the cache (cache read denied)")
    raise CacheProblem(f"the cache service answered {status}")


def _object(response: Response) -> dict[str, Any]:
    answer = response.json()
    if not isinstance(answer, dict):
        raise ValueError("no object")
    return answer
