"""The image itself: small, labelled, and with nothing in it that it does not need."""

from __future__ import annotations

import json
import subprocess
import zlib

MAX_BYTES = 250_000_000


def run_in(image: str, *command: str) -> str:
    program, *arguments = command
    return subprocess.run(
        ["docker", "run", "--rm", "--network=none", "--entrypoint", program, image, *arguments],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_it_is_small_enough_to_be_pulled_for_each_job(image: str) -> None:
    """Compressed at the lowest level: what a registry holds is smaller still."""
    compressor, size = zlib.compressobj(1), 0
    with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saving:
        assert saving.stdout is not None
        while block := saving.stdout.read(1 << 20):
            size += len(compressor.compress(block))
    size += len(compressor.flush())
    assert saving.returncode == 0
    assert size < MAX_BYTES


def test_it_says_what_it_is(image: str) -> None:
    inspected = subprocess.run(["docker", "image", "inspect", image], capture_output=True, check=True).stdout
    (facts,) = json.loads(inspected)
    labels = facts["Config"]["Labels"]
    wanted = {
        f"org.opencontainers.image.{name}"
        for name in ("title", "description", "licenses", "version", "revision")
    }
    assert wanted <= set(labels)
    assert facts["Config"]["Entrypoint"][-3:] == ["-m", "oloproof_ci", "action"]


def test_it_holds_our_two_packages_byte_compiled_and_nothing_else_of_ours(image: str) -> None:
    listed = run_in(image, "find", "/opt/oloproof/packages", "-maxdepth", "1", "-mindepth", "1").split()
    assert sorted(listed) == ["/opt/oloproof/packages/oloproof", "/opt/oloproof/packages/oloproof_ci"]
    compiled = run_in(image, "find", "/opt/oloproof/packages", "-name", "*.pyc")
    sources = run_in(image, "find", "/opt/oloproof/packages", "-name", "*.py")
    assert len(compiled.split()) == len(sources.split())
    assert run_in(image, "find", "/", "-xdev", "-type", "d", "-name", ".git").strip() == ""


def test_no_program_in_it_lends_its_user_another_ones_rights(image: str) -> None:
    assert run_in(image, "find", "/", "-xdev", "-type", "f", "-perm", "/6000") == ""


def test_nothing_of_the_folder_it_starts_in_is_imported(image: str) -> None:
    script = "mkdir /tmp/w && cd /tmp/w && echo 'raise SystemExit(99)' | tee json.py oloproof_ci.py && exec "
    script += "/opt/oloproof/bin/python -I -m oloproof_ci --version"
    assert "oloproof-ci 0" in run_in(image, "sh", "-c", script)
