"""examples/judged_rag runs without a key and without a network, as its README says."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "judged_rag"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The example, at an address that no other test has."""
    folder = tmp_path / "judged_rag"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".oloproof", "__pycache__"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ("oloproof.yaml", "stand_in.py"):
        text = (folder / name).read_text()
        assert text.count("8787") == 1
        (folder / name).write_text(text.replace("8787", str(port)))
    return folder


def call(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_judges_find_what_the_readme_says(example: Path) -> None:
    oloproof = ("-m", "oloproof")
    told = call(example, "stand_in.py", sys.executable, *oloproof, "run")
    assert "Judges: 28 calls" in told
    record = json.loads(call(example, *oloproof, "inspect", "latest", "--json"))
    failed = {case["case_id"] for case in record["cases"] if case["judgments"][0] == 0.0}
    assert failed == {"refund_annual", "seat_count", "extra_seat", "dark_theme"}
    shown = call(example, *oloproof, "inspect", "latest", "--case", "seat_count")
    assert (
        "  grounded: failed\n    not_grounded: No passage says: Unused seats are paid back in full.\n"
        in shown
    )
    # All is kept: the second run asks nobody, and so needs no stand-in.
    again = call(example, *oloproof, "run")
    assert "Judges: 0 calls · 28 answers from the store, which saves 0.00" in again


def test_a_run_that_asks_nobody_loads_nothing_that_asks(example: Path) -> None:
    config = example / "oloproof.yaml"
    call(example, "stand_in.py", sys.executable, "-m", "oloproof", "run")
    code = (
        "import sys; from oloproof.cli import main; code = main(['run']); "
        "print('loaded', *{'requests', 'numpy'} & set(sys.modules)); sys.exit(code)"
    )
    assert call(example, "-c", code).splitlines()[-1] == "loaded"
    config.write_text(config.read_text().replace("evaluators:\n", "evaluators:\n  - {type: mrr, k: 2}\n"))
    # That the intervals of scores need numpy shows that the line above would tell.
    assert call(example, "-c", code).splitlines()[-1] == "loaded numpy"


def test_one_line_says_where_the_judges_are_asked() -> None:
    lines = (EXAMPLE / "oloproof.yaml").read_text().splitlines()
    assert len([line for line in lines if "127.0.0.1" in line]) == 1
