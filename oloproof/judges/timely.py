"""Connections on which a whole response, from its status line on, may take as long as one read elsewhere.

A timeout of a socket starts anew with each byte, so that a server which sends its headers one by one could be waited
for without end.
"""

from __future__ import annotations

import io
import time
from http.client import HTTPResponse
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection


class _Until(io.RawIOBase):
    """What a socket receives until its timeout, counted from now on."""

    def __init__(self, sock: Any) -> None:
        self._socket = sock
        self._received: io.RawIOBase = sock.makefile("rb", buffering=0)
        seconds: float | None = sock.gettimeout()
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._socket.settimeout(left)
        return self._received.readinto(buffer)

    def close(self) -> None:
        self._received.close()
        super().close()


class _TimelyResponse(HTTPResponse):
    def __init__(self, sock: Any, *given: Any, **named: Any) -> None:
        super().__init__(sock, *given, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_Until(sock))


class _TimelyHTTP(HTTPConnection):
    response_class = _TimelyResponse


class _TimelyHTTPS(HTTPSConnection):
    response_class = _TimelyResponse


class _TimelyHTTPPool(HTTPConnectionPool):
    ConnectionCls = _TimelyHTTP


class _TimelyHTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _TimelyHTTPS


class TimelyAdapter(HTTPAdapter):
    """Sends requests over such connections, through proxies as well."""

    def init_poolmanager(self, *given: Any, **named: Any) -> None:
        super().init_poolmanager(*given, **named)
        _make_timely(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **named: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **named)
        _make_timely(manager)
        return manager


def _make_timely(manager: PoolManager) -> None:
    manager.pool_classes_by_scheme = {"http": _TimelyHTTPPool, "https": _TimelyHTTPSPool}
