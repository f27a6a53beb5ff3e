"""The cache server inside `act`, which speaks version 1: it runs for as long as a workflow of one waiting step does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

WORKFLOW = """
on: push
jobs:
  serve:
    runs-on: here
    steps:
      - run: |
          printf '%s' "$ACTIONS_CACHE_URL" > "{folder}/url.part"
          mv "{folder}/url.part" "{folder}/url"
          while [ ! -e "{folder}/stop" ] && kill -0 $PPID 2>/dev/null; do sleep 0.1; done
"""


class ActCache:
    """The running server; `url` is its ACTIONS_CACHE_URL."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "serve.yml").write_text(WORKFLOW.format(folder=folder))
        environment = {name: value for name, value in os.environ.items() if name != "ACTIONS_CACHE_URL"}
        home = folder / "home"
        home.mkdir()
        environment |= {
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "ACT_DISABLE_VERSION_CHECK": "1",
            "DOCKER_HOST": f"unix://{folder}/no-docker.sock",  # on purpose: no container is used
        }
        places = ["--cache-server-path", str(folder / "entries"), "--action-cache-path", str(home / "act")]
        files = [part for name in ("env", "secret", "var") for part in (f"--{name}-file", "/dev/null")]
        server = ["--cache-server-addr", "127.0.0.1", "--cache-server-port", "0"]
        act = Path(sys.executable).parent / "act"
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    act,
                    "push",
                    "-W",
                    folder / "serve.yml",
                    "-P",
                    "here=-self-hosted",
                    *server,
                    *places,
                    *files,
                ],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.url = self._address()

    def stop(self) -> None:
        (self._folder / "stop").touch()
        self._process.wait(20)

    def _address(self) -> str:
        end = time.monotonic() + 60
        while time.monotonic() < end and self._process.poll() is None:
            if (self._folder / "url").exists():
                return (self._folder / "url").read_text()
            time.sleep(0.05)
        raise AssertionError(f"act's cache server did not start:\n{(self._folder / 'log').read_text()}")
