"""The cache service of github.com: three calls in twirp's JSON, and an Azure blob behind a signed address."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from oloproof_ci.actions_cache.service import Entry
from oloproof_ci.actions_cache.transfers import CacheProblem, Transfers

if TYPE_CHECKING:
    from requests import Response

PATH = "/twirp/github.actions.results.api.v1.CacheService/"
#: Up to this size an archive is one request, above it blocks of BLOCK bytes.
ONE_REQUEST = 128 << 20
BLOCK = 64 << 20
BLOB_VERSION = "2021-12-02"


class ServiceV2:
    """A client. `results_url` may have a path, which does not count."""

    def __init__(self, results_url: str, token: str, transfers: Transfers) -> None:
        parts = urlsplit(results_url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._token = token
        self._transfers = transfers

    def find(self, keys: Sequence[str], version: str) -> Entry | None:
        request: dict[str, Any] = {"key": keys[0], "version": version}
        if len(keys) > 1:
            request["restore_keys"] = list(keys[1:])
        answer = self._call("GetCacheEntryDownloadURL", request)
        if not answer.get("ok"):
            return None
        return Entry(_text(answer, "matched_key"), _text(answer, "signed_download_url"))

    def save(self, key: str, version: str, archive: Path) -> bool:
        created = self._call("CreateCacheEntry", {"key": key, "version": version})
        if created is EXISTS:
            return False
        if not created.get("ok"):
            raise CacheProblem(_denied(created) or "the cache service did not make an entry")
        size = archive.stat().st_size
        self._upload(_text(created, "signed_upload_url"), archive, size)
        finished = self._call(
            "FinalizeCacheEntryUpload", {"key": key, "version": version, "size_bytes": str(size)}
        )
        if not finished.get("ok"):
            raise CacheProblem(_denied(finished) or "the cache service did not take the entry")
        return True

    def _upload(self, url: str, archive: Path, size: int) -> None:
        if size <= ONE_REQUEST:
            self._put(url, archive, 0, size, {"x-ms-blob-type": "BlockBlob"})
            return
        prefix = str(uuid.uuid4())
        names = []
        for number, start in enumerate(range(0, size, BLOCK)):
            name = base64.b64encode(f"{prefix}{number:012d}".encode()).decode()
            names.append(name)
            query = f"&comp=block&blockid={name.replace('+', '%2B').replace('/', '%2F').replace('=', '%3D')}"
            self._put(url + query, archive, start, min(BLOCK, size - start), {})
        listed = "".join(f"<Latest>{name}</Latest>" for name in names)
        body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'.encode()
        self._transfers.ask(
            "PUT",
            url + "&comp=blocklist",
            headers={"x-ms-version": BLOB_VERSION, "Content-Type": "application/xml"},
            body=lambda: body,
            answers=_stored,
        )

    def _put(self, url: str, archive: Path, start: int, length: int, headers: dict[str, str]) -> None:
        self._transfers.ask(
            "PUT",
            url,
            headers={"x-ms-version": BLOB_VERSION, "Content-Type": "application/octet-stream", **headers},
            body=lambda: self._transfers.part(archive, start, length),
            answers=_stored,
        )

    def _call(self, method: str, request: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._transfers.ask(
            "POST",
            self._origin + PATH + method,
            headers={"Authorization": f"Bearer {self._token}"},
            json=request,
            answers=_twirp,
        )
        return answer


#: What stands for the answer that an entry exists already.
EXISTS: dict[str, Any] = {"ok": False, "exists": True}


def _twirp(response: Response) -> dict[str, Any]:
    status = response.status_code
    if status == 409:
        return EXISTS
    if status == 429:
        raise CacheProblem("the cache service is asked too often (429)")
    answer = response.json()
    if not isinstance(answer, dict):
        raise ValueError("no object")
    if status != 200:
        said = str(answer.get("msg", ""))[:200]
        raise CacheProblem(_meaning(status, said))
    return answer


def _meaning(status: int, said: str) -> str:
    if "cache read denied" in said:
        return "this job may not read the cache (cache read denied)"
    if "cache write denied" in said:
        return "this job may not write to the cache (cache write denied)"
    return f"the cache service answered {status}" + (f" ({said})" if said else "")


def _denied(answer: dict[str, Any]) -> str:
    said = str(answer.get("message", ""))
    return _meaning(200, said) if said.startswith("cache write denied:") else said[:200]


def _stored(response: Response) -> None:
    if response.status_code == 403:
        raise CacheProblem("the upload was answered with 403: its address has expired")
    if response.status_code not in (200, 201):
        raise CacheProblem(f"the upload was answered with {response.status_code}")


def _text(answer: dict[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str) or not value:
        raise CacheProblem(f"the cache service's answer has no {name}")
    return value
