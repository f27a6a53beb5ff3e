"""What the bot must not mix up or touch: the base's code with the head's, the user's index, files that changed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_preview import EXAMPLES, NEW_FAILURES, Checkout, failures, git_environment, make_worse, support

__all__ = ["support"]


def test_a_hook_that_runs_it_keeps_its_index(support: Checkout) -> None:
    support.branch("worse")
    make_worse(support)
    support.git("add", "--all")
    staged = support.git("diff", "--cached", "--stat")
    done = subprocess.run(
        [sys.executable, "-m", "oloproof_ci", "preview"],
        cwd=support.root,
        env={**git_environment(), "GIT_INDEX_FILE": str(support.root / ".git" / "index"), "GIT_PREFIX": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert support.git("diff", "--cached", "--stat") == staged
    assert support.git("status", "--porcelain") == "M  app.py"


@pytest.mark.parametrize("how", ["PYTHONPATH", "an editable installation"])
def test_the_base_is_never_measured_with_the_heads_code(tmp_path: Path, how: str) -> None:
    checkout = Checkout(tmp_path / "repo")
    leave_out = shutil.ignore_patterns(".oloproof", "__pycache__", "app.py")
    shutil.copytree(EXAMPLES / "support_rag", checkout.root / "eval", ignore=leave_out)
    source = checkout.root / "src" / "support"
    source.mkdir(parents=True)
    text = (EXAMPLES / "support_rag" / "app.py").read_text(encoding="utf-8")
    text = text.replace(
        'Path(__file__).parent / "data"', 'Path(__file__).resolve().parents[2] / "eval" / "data"'
    )
    (source / "__init__.py").write_text(text, encoding="utf-8")
    checkout.edit("eval/oloproof.yaml", "app:SupportRag", "support:SupportRag")
    with (checkout.root / "eval" / "compare.yaml").open("a", encoding="utf-8") as policy:
        policy.write(NEW_FAILURES)
    checkout.git("init", "--quiet", "--initial-branch=main")
    checkout.commit()
    checkout.branch("broken")
    broken = "def generate(self, input, context):\n        return {'answer': 'broken', 'citations': []}"
    checkout.edit("src/support/__init__.py", "def generate(self, input, context):", broken)
    checkout.commit()
    environment = git_environment()
    if how == "PYTHONPATH":
        environment["PYTHONPATH"] = str(checkout.root / "src")
        python = sys.executable
    else:
        python = interpreter_with_path(tmp_path, checkout.root / "src")
    done = subprocess.run(
        [python, "-m", "oloproof_ci", "preview", "--config", "eval/oloproof.yaml"],
        cwd=checkout.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    report = json.loads((checkout.root / "eval" / ".oloproof" / "preview" / "report.json").read_text())
    assert len(failures(report)) == 9


def interpreter_with_path(tmp_path: Path, folder: Path) -> str:
    """An interpreter of its own that has what this one has, and a folder installed in place."""
    place = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (site_packages,) = place.glob("lib/python*/site-packages")
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    (site_packages / "ours.pth").write_text(f"{ours}\n{EXAMPLES.parent}\n{folder}\n", encoding="utf-8")
    return str(place / "bin" / "python")


def test_bytecode_that_measuring_left_behind_is_no_change(support: Checkout) -> None:
    support.branch("docs")
    support.edit("README.md", "# ", "# About ")
    support.commit()
    (support.root / "__pycache__").mkdir(exist_ok=True)
    (support.root / "__pycache__" / "app.cpython-311.pyc").write_bytes(b"")
    support.preview()
    assert support.report()["head"]["dirty"] is False


def test_a_changed_corpus_under_the_same_index_version_is_measured_and_named(support: Checkout) -> None:
    support.preview("--base", "main")
    support.branch("other-corpus")
    support.edit("data/corpus.jsonl", "14 days", "40 days")
    support.commit()
    done = support.preview()
    assert done.returncode == 1
    report = support.report()
    (warning,) = [w for w in report["warnings"] if w["code"] == "stale_index"]
    assert "data/corpus.jsonl changed and index_version is still kb-2026-09-16" in warning["text"]
    assert "refund_annual" in failures(report)


def test_the_head_is_prepared_only_when_something_of_it_runs(support: Checkout) -> None:
    """A hit needs no index; a changed prepare is no hit, so then the index is made anew before anything runs."""
    (support.root / "index.sh").write_text(
        "echo prepared >> $NOTES\necho first > index.bin\n", encoding="utf-8"
    )
    with (support.root / "oloproof.yaml").open("a", encoding="utf-8") as settings:
        settings.write("prepare: sh index.sh\n")
    (support.root / ".gitignore").write_text("index.bin\n*.log\n", encoding="utf-8")
    support.commit()
    support.branch("other")
    with (support.root / "app.py").open("a", encoding="utf-8") as app:
        app.write("# A comment.\n")
    support.commit()
    notes = support.root / "notes.log"

    def preview() -> tuple[int, list[int]]:
        """How often a checkout was prepared, and how many executions of the head were hits and misses."""
        notes.unlink(missing_ok=True)
        done = support.preview(env={"NOTES": str(notes)})
        assert done.returncode in (0, 1, 3), done.stderr
        prepared = len(notes.read_text(encoding="utf-8").split()) if notes.exists() else 0
        return prepared, support.report()["head"]["cache"]["execution"]

    assert preview() == (1, [13, 0])  # the base's results are the head's
    assert preview() == (0, [13, 0])
    support.edit("index.sh", "first", "second")
    assert preview() == (1, [0, 13])
