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
from test_pages import fits, steps
from test_transcripts import without_ids

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


def environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")} | more


def call(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(),
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
    assert "Judges: 0 calls · 37 answers from the store, which saves 0.00" in again


def test_the_readme_shows_what_labels_change(example: Path) -> None:
    kept = (EXAMPLE / "labels" / "grounded.jsonl").read_bytes()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, printed in steps(EXAMPLE / "README.md"):
        if command.startswith("oloproof labels import"):
            fill_in(example / "sheet.jsonl")
        done = subprocess.run(
            command,
            shell=True,
            cwd=example,
            env=environment(PATH=path),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.stderr == "", command
        if printed:
            assert fits(without_ids(done.stdout).splitlines(), printed.splitlines()), (
                f"{command}\n{done.stdout}"
            )
    # What the example brings along was made in the same way.
    assert (example / "labels" / "grounded.jsonl").read_bytes() == kept


def fill_in(sheet: Path) -> None:
    """What a person says: three answers promise what no passage says."""
    lines = [json.loads(line) for line in sheet.read_text().splitlines()]
    for line in lines:
        promises = any(words in line["answer"] for words in ("No questions are asked", "paid back in full"))
        line["verdict"] = "fail" if promises else "pass"
    assert [line["verdict"] for line in lines].count("fail") == 3
    sheet.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_run_that_asks_nobody_loads_nothing_that_asks(example: Path) -> None:
    config = example / "oloproof.yaml"
    config.write_text(config.read_text().replace("corrected: true", "corrected: false"))
    call(example, "stand_in.py", sys.executable, "-m", "oloproof", "run")
    code = (
        "import sys; from oloproof.cli import main; code = main(['run']); "
        "print('loaded', *{'requests', 'numpy'} & set(sys.modules)); sys.exit(code)"
    )
    assert call(example, "-c", code).splitlines()[-1] == "loaded"
    config.write_text(config.read_text().replace("evaluators:\n", "evaluators:\n  - {type: mrr, k: 2}\n"))
    # That the intervals of scores, and of corrected rates, need numpy shows that the line above would tell.
    assert call(example, "-c", code).splitlines()[-1] == "loaded numpy"


def test_one_line_says_where_the_judges_are_asked() -> None:
    lines = (EXAMPLE / "oloproof.yaml").read_text().splitlines()
    assert len([line for line in lines if "127.0.0.1" in line]) == 1
