"""The bot on a git checkout: real repositories, real worktrees, real workers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NEW_FAILURES = "  - {id: no-new-failures, metric: answer_correct, kind: new_failures, max: 0}\n"


def git_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    names = {"NAME": "A Tester", "EMAIL": "tester@example.invalid"}
    identity = {
        f"GIT_{role}_{part}": text for role in ("AUTHOR", "COMMITTER") for part, text in names.items()
    }
    return {**kept, **identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


@dataclass(frozen=True)
class Checkout:
    root: Path

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.root), *arguments],
            env=git_environment(),
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, message: str = "A change") -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str) -> None:
        self.git("checkout", "--quiet", "-b", name)

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.root / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {file}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def preview(
        self, *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "oloproof_ci", "preview", *arguments],
            cwd=cwd or self.root,
            env={**git_environment(), **(env or {})},
            capture_output=True,
            text=True,
            check=False,
        )

    def preview_into(self, stdout: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Preview with its result going to a file descriptor."""
        return subprocess.run(
            [sys.executable, "-m", "oloproof_ci", *arguments],
            cwd=self.root,
            env=git_environment(),
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    @property
    def written(self) -> list[str]:
        """What lies where the comment and the report go."""
        return sorted(path.name for path in (self.root / ".oloproof" / "preview").glob("*"))

    def report(self) -> Any:
        path = self.root / ".oloproof" / "preview" / "report.json"
        return json.loads(path.read_text(encoding="utf-8"))


def repository_of(example: str, place: Path) -> Checkout:
    leave_out = shutil.ignore_patterns(".oloproof", "__pycache__")
    shutil.copytree(EXAMPLES / example, place, ignore=leave_out)
    checkout = Checkout(place)
    checkout.git("init", "--quiet", "--initial-branch=main")
    return checkout


@pytest.fixture
def support(tmp_path: Path) -> Checkout:
    """The support example on main, with a rule against new failures."""
    checkout = repository_of("support_rag", tmp_path / "support rag")
    with (checkout.root / "compare.yaml").open("a", encoding="utf-8") as policy:
        policy.write(NEW_FAILURES)
    (checkout.root / ".git" / "info" / "exclude").write_text("__pycache__\n", encoding="utf-8")
    checkout.commit("The base")
    return checkout


def make_worse(checkout: Checkout, app: str = "app.py") -> None:
    shutil.copyfile(EXAMPLES / "support_rag_worse" / "app.py", checkout.root / app)


def failures(report: Any) -> dict[str, Any]:
    (found,) = report["failures"]
    return {case["case_id"]: case for case in found["new_failures"]}


def test_a_worse_pull_request_is_blocked_and_its_new_failures_are_labelled(support: Checkout) -> None:
    support.branch("worse")
    make_worse(support)
    head = support.commit()
    done = support.preview()
    assert done.returncode == 1, done.stderr
    report = support.report()
    labels = {name: case["label"] for name, case in failures(report).items()}
    assert labels == {
        "extra_seat": "RETRIEVAL_MISS",
        "trial_length": "RANKED_OUT",
        "plan_downgrade": "CONTEXT_ASSEMBLY_LOSS",
        "invoice_date": "GENERATION_FAILURE",
    }
    (found,) = report["failures"]
    assert found["fixed"] == ["seat_count"]
    assert sorted(found["still_failing"]) == ["money_back", "refund_review", "security_review"]
    assert report["gate"]["state"] == "BLOCK"
    assert report["head"]["sha"] == head
    assert report["base"]["sha"] == support.git("rev-parse", "main")
    assert report["base_commit"] == {"ref": "main", "sha": report["base"]["sha"]}
    assert {(c["head_repeat"], c["base_repeat"]) for c in found["new_failures"]} == {("failed", "passed")}
    assert report["errors"] == {"total": 0, "newly": 0, "cases": [], "in_base": None}


def test_a_crash_in_the_head_is_no_pass_and_its_cases_are_named(support: Checkout) -> None:
    support.branch("crashes")
    support.edit(
        "app.py",
        "    def generate(self, input, context):",
        "    def generate(self, input, context):\n"
        "        if 'seat' in input['question']:\n"
        "            import os\n\n"
        "            os._exit(3)\n"
        "        if 'refund' in input['question'].lower():\n"
        "            raise KeyError('kb|07')",
    )
    support.commit()
    done = support.preview()
    assert done.returncode == 3, done.stderr
    errors = support.report()["errors"]
    assert errors["total"] == support.report()["head"]["errored"] == len(errors["cases"])
    was = [case["base"] for case in errors["cases"]]
    assert 0 < errors["newly"] == was.count("passed") < len(was)
    assert was == sorted(was, reverse=True)  # passed before failed
    lines = (support.root / "data" / "support.jsonl").read_text(encoding="utf-8").splitlines()
    for case in errors["cases"]:
        assert json.loads(lines[case["line"] - 1])["id"] == case["case_id"]
        assert case["stage"] == "generate"
    assert {case["kind"] for case in errors["cases"]} == {"crash", "exception"}
    assert f"**{errors['newly']} cases that pass on `main` error here**" in done.stdout
    assert f"### {len(was)} cases errored here" in done.stdout
    assert "No case that passes on" not in done.stdout


def test_the_evidence_shows_where_the_relevant_passage_stood_in_base_and_head(support: Checkout) -> None:
    support.branch("worse")
    make_worse(support)
    support.commit()
    support.preview()
    found = failures(support.report())
    (ranked_out,) = found["trial_length"]["evidence"]
    assert ranked_out["base"] == {"rank": 1, "fate": "in context"}
    assert ranked_out["head"] == {"rank": 3, "fate": "cut by top_k"}
    (missed,) = found["extra_seat"]["evidence"]
    assert missed["head"] == {"rank": None, "fate": "not retrieved"}


def test_stdout_is_the_comment_and_comment_md_holds_the_same(support: Checkout) -> None:
    support.branch("worse")
    make_worse(support)
    done = support.preview()
    written = (support.root / ".oloproof" / "preview" / "comment.md").read_text(encoding="utf-8")
    assert done.stdout.strip() == written.strip()
    assert "BLOCK" in written.splitlines()[0]


def test_a_change_of_the_readme_alone_passes_without_any_stage_call(support: Checkout) -> None:
    support.preview("--base", "main")
    support.branch("docs")
    support.edit("README.md", "# ", "# About ")
    support.commit()
    done = support.preview()
    assert done.returncode == 3 or done.returncode == 0
    report = support.report()
    assert report["head"]["calls"] == 0
    assert report["base"]["calls"] == 0
    decisions = {d["rule"]: (d["state"], d["reason"]) for d in report["gate"]["decisions"]}
    assert decisions["answers-not-worse"] == ("PASS", "systems_identical")
    assert decisions["no-new-failures"] == ("PASS", "new_failures_within_limit")
    assert done.returncode == 0


def test_uncommitted_changes_are_measured_too(support: Checkout) -> None:
    make_worse(support)
    done = support.preview()
    assert done.returncode == 1, done.stderr
    report = support.report()
    assert report["head"]["dirty"] is True
    assert report["head"]["sha"] == report["base"]["sha"]


def test_the_base_is_the_merge_base_and_not_the_tip_of_main(support: Checkout) -> None:
    fork_point = support.git("rev-parse", "HEAD")
    support.branch("worse")
    make_worse(support)
    support.commit()
    support.git("checkout", "--quiet", "main")
    support.edit("data/support.jsonl", "14 days", "15 days")
    support.commit("main moves on")
    support.git("checkout", "--quiet", "worse")
    assert support.preview().returncode == 1
    assert support.report()["base"]["sha"] == fork_point


def test_the_base_is_measured_on_the_heads_cases(support: Checkout) -> None:
    support.branch("new-case")
    case = {
        "id": "added_here",
        "input": {"question": "How long does the free trial last?"},
        "expected": {"answer": "21 days", "relevant": [{"doc_id": "kb-12"}]},
    }
    with (support.root / "data" / "support.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(case) + "\n")
    support.commit()
    support.preview()
    report = support.report()
    assert report["comparison"]["paired_cases"] == 14
    assert report["comparison"]["added"] == []


def test_base_and_head_do_not_share_imported_modules(support: Checkout) -> None:
    support.branch("rename")
    (support.root / "words.py").write_text("LIMIT = 3\n", encoding="utf-8")
    support.edit("app.py", "from oloproof import", "import words\nfrom oloproof import")
    support.commit()
    support.branch("other-words")
    support.edit("words.py", "3", "4")
    support.commit()
    done = support.preview("--base", "rename")
    assert done.returncode in (0, 3), done.stderr
    report = support.report()
    assert report["base"]["system"]["fingerprints"] != report["head"]["system"]["fingerprints"]


def test_a_base_without_the_configuration_is_named_and_warns(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "fresh")
    checkout.root.mkdir()
    checkout.git("init", "--quiet", "--initial-branch=main")
    (checkout.root / "README.md").write_text("nothing yet\n", encoding="utf-8")
    checkout.commit("Empty")
    checkout.branch("add-evaluation")
    leave_out = shutil.ignore_patterns(".oloproof", "__pycache__")
    shutil.copytree(EXAMPLES / "support_rag", checkout.root, dirs_exist_ok=True, ignore=leave_out)
    checkout.commit()
    done = checkout.preview()
    assert done.returncode == 0, done.stderr
    gate = checkout.report()["gate"]
    assert (gate["state"], gate["reason"]) == ("WARN", "baseline_absent")
    assert checkout.report()["base"] is None
    assert checkout.report()["base_commit"] == {"ref": "main", "sha": checkout.git("rev-parse", "main")}
    assert [d["rule"] for d in gate["decisions"]] == ["citations-observed-valid", "retrieval-floor"]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("app.py", "from oloproof import", "import a_module_that_is_not_there\nfrom oloproof import"),
        ("oloproof.yaml", "version: 1", "version: 7"),
    ],
    ids=["its app does not import", "its configuration is wrong"],
)
def test_a_base_that_cannot_be_measured_blocks(support: Checkout, file: str, old: str, new: str) -> None:
    support.branch("broken-base")
    support.edit(file, old, new)
    support.commit()
    support.branch("mended")
    support.edit(file, new, old)
    support.commit()
    done = support.preview("--base", "broken-base")
    assert done.returncode == 5, done.stderr
    gate = support.report()["gate"]
    assert (gate["state"], gate["reason"]) == ("BLOCK", "baseline_failed")
    base = support.git("rev-parse", "broken-base")
    assert support.report()["base_commit"] == {"ref": "broken-base", "sha": base}
    assert f"{base[:7]}:{file}" in gate["detail"]
    assert "oloproof-base-" not in json.dumps(support.report()) + done.stdout
    assert "**The base `broken-base` could not be measured**" in done.stdout


def test_a_base_retrieval_made_now_under_another_index_version_is_flagged(support: Checkout) -> None:
    support.branch("new-index")
    support.edit("oloproof.yaml", "kb-2026-09-16", "kb-2026-10-01")
    support.commit()
    support.preview()
    (warning,) = support.report()["warnings"]
    assert warning["code"] == "base_index_version"
    assert "13 base retrievals" in warning["text"]


def test_a_base_whose_retrievals_were_stored_before_is_not_flagged(support: Checkout) -> None:
    subprocess.run(
        [sys.executable, "-m", "oloproof", "run"], cwd=support.root, check=True, capture_output=True
    )
    support.branch("new-index")
    support.edit("oloproof.yaml", "kb-2026-09-16", "kb-2026-10-01")
    support.commit()
    support.preview()
    assert support.report()["warnings"] == []


def fail_on_the_first_call(support: Checkout) -> None:
    """A head that answers one question wrongly when its process is asked for the first time."""
    support.branch("flaky")
    support.edit(
        "app.py",
        "    def generate(self, input, context):",
        "    calls = {}\n\n"
        "    def generate(self, input, context):\n"
        "        key = input['question']\n"
        "        self.calls[key] = self.calls.get(key, 0) + 1\n"
        "        if 'annual' in key and self.calls[key] == 1:\n"
        "            return {'answer': 'no idea', 'citations': []}\n"
        "        return self.steady(input, context)\n\n"
        "    def steady(self, input, context):",
    )
    support.commit()


def test_a_new_failure_that_passes_when_repeated_is_unstable(support: Checkout) -> None:
    fail_on_the_first_call(support)
    done = support.preview()
    found = failures(support.report())
    assert {name: case["label"] for name, case in found.items()} == {"refund_annual": "UNSTABLE"}
    assert found["refund_annual"]["unstable"] is True
    assert (found["refund_annual"]["head_repeat"], found["refund_annual"]["base_repeat"]) == (
        "passed",
        "passed",
    )
    assert "**unstable**: passed here, passed again on `main`" in done.stdout
    decisions = {d["rule"]: d for d in support.report()["gate"]["decisions"]}
    assert decisions["no-new-failures"]["reason"] == "unstable_could_change_outcome"
    assert done.returncode == 3


def test_a_failure_that_holds_this_time_is_said_to_have_been_unstable_before(support: Checkout) -> None:
    fail_on_the_first_call(support)
    assert "Unstable when repeated before" not in support.preview().stdout
    again = support.preview()
    assert failures(support.report())["refund_annual"]["unstable"] is False
    assert "Unstable when repeated before: `refund_annual` (1 of 4 repeats)" in again.stdout


def test_the_repository_is_left_as_it_was(support: Checkout) -> None:
    support.branch("worse")
    make_worse(support)
    support.commit()
    before = (
        support.git("worktree", "list"),
        support.git("status", "--porcelain"),
        support.git("branch", "-a"),
    )
    marker = support.root / ".git" / "hooks" / "post-checkout"
    marker.write_text("#!/bin/sh\ntouch hook-ran\n", encoding="utf-8")
    marker.chmod(0o755)
    support.preview()
    after = support.git("worktree", "list"), support.git("status", "--porcelain"), support.git("branch", "-a")
    assert after == before
    assert not list(support.root.rglob("hook-ran"))


def test_a_configuration_in_a_subfolder_is_found_and_measured(tmp_path: Path) -> None:
    leave_out = shutil.ignore_patterns(".oloproof", "__pycache__")
    shutil.copytree(EXAMPLES / "support_rag", tmp_path / "repo" / "rag" / "eval", ignore=leave_out)
    checkout = Checkout(tmp_path / "repo")
    checkout.git("init", "--quiet", "--initial-branch=main")
    checkout.commit()
    checkout.branch("change")
    shutil.copyfile(EXAMPLES / "support_rag_worse" / "app.py", checkout.root / "rag" / "eval" / "app.py")
    checkout.commit()
    for arguments in ([], ["--config", "rag/eval/oloproof.yaml"]):
        done = checkout.preview(*arguments)
        assert done.returncode == 3, done.stderr
    written = checkout.root / "rag" / "eval" / ".oloproof" / "preview" / "report.json"
    assert json.loads(written.read_text(encoding="utf-8"))["comparison"]["paired_cases"] == 13


Refused = Callable[[Checkout], tuple[list[str], Path]]


def _outside_git(checkout: Checkout) -> tuple[list[str], Path]:
    place = checkout.root.parent / "plain"
    shutil.copytree(
        EXAMPLES / "support_rag", place, ignore=shutil.ignore_patterns(".oloproof", "__pycache__")
    )
    return [], place


def _nothing_changed(checkout: Checkout) -> tuple[list[str], Path]:
    return [], checkout.root


def _unknown_base(checkout: Checkout) -> tuple[list[str], Path]:
    return ["--base", "no-such-branch"], checkout.root


def _option_as_base(checkout: Checkout) -> tuple[list[str], Path]:
    return ["--base=--output=owned"], checkout.root


def _no_common_commit(checkout: Checkout) -> tuple[list[str], Path]:
    checkout.git("checkout", "--quiet", "--orphan", "island")
    checkout.commit()
    return ["--base", "main"], checkout.root


def _no_default_branch(checkout: Checkout) -> tuple[list[str], Path]:
    checkout.git("branch", "--quiet", "-m", "main", "trunk")
    make_worse(checkout)
    return [], checkout.root


def _configuration_missing(checkout: Checkout) -> tuple[list[str], Path]:
    return ["--config", "nowhere.yaml"], checkout.root


def _folder_as_configuration(checkout: Checkout) -> tuple[list[str], Path]:
    return ["--config", "."], checkout.root


@pytest.mark.parametrize(
    ("arrange", "says"),
    [
        (_outside_git, "not inside a git repository"),
        (_nothing_changed, "nothing to compare"),
        (_unknown_base, "--base: 'no-such-branch' is no commit"),
        (_option_as_base, "is no commit"),
        (_no_common_commit, "have no common commit"),
        (_no_default_branch, "name the base with --base REF"),
        (_configuration_missing, "nowhere.yaml: no such file"),
        (_folder_as_configuration, ".: is a directory, not a file"),
    ],
)
def test_what_cannot_be_previewed_is_refused_with_a_sentence(
    support: Checkout, arrange: Refused, says: str
) -> None:
    arguments, place = arrange(support)
    done = support.preview(*arguments, cwd=place)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_wrong_head_is_refused_and_writes_nothing(support: Checkout) -> None:
    support.branch("wrong")
    support.edit("app.py", "from oloproof import", "raise RuntimeError('not today')\nfrom oloproof import")
    support.commit()
    done = support.preview()
    assert done.returncode == 2
    assert "RuntimeError: not today" in done.stderr
    assert not (support.root / ".oloproof" / "preview").exists()


def test_a_preview_that_fails_leaves_nothing_of_the_one_before(support: Checkout) -> None:
    """A later step would post it as the result."""
    support.branch("worse")
    make_worse(support)
    assert support.preview().returncode == 1
    assert support.written == ["comment.md", "report.json"]
    (support.root / ".oloproof" / "preview" / "kept.txt").write_text("not ours\n", encoding="utf-8")
    support.edit("oloproof.yaml", "version: 1", "version: 7")
    assert support.preview().returncode == 2
    assert support.written == ["kept.txt"]


def test_only_the_rules_on_pairs_are_said_to_be_undecided_without_a_base(support: Checkout) -> None:
    configuration = support.root / "oloproof.yaml"
    text = configuration.read_text(encoding="utf-8")
    configuration.unlink()
    (support.root / "release.yaml").unlink()
    support.commit("No configuration")
    support.branch("add-evaluation")
    configuration.write_text(text, encoding="utf-8")
    support.commit()
    done = support.preview()
    assert done.returncode == 0, done.stderr
    assert "The rules all compare two runs, so none is decided." in done.stdout
    assert "No policy" not in done.stdout


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    """A pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_closed_pipe_keeps_the_gates_exit_code(
    support: Checkout, closed_pipe: int, arguments: tuple[str, ...]
) -> None:
    make_worse(support)
    done = support.preview_into(closed_pipe, "preview", *arguments)
    assert done.returncode == 1
    assert "error" not in done.stderr
    assert "Wrote .oloproof/preview/comment.md" in done.stderr
    assert support.written == ["comment.md", "report.json"]


def test_a_pager_of_the_help_may_be_closed(support: Checkout, closed_pipe: int) -> None:
    done = support.preview_into(closed_pipe, "--help")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("preview",), ("preview", "--json")])
def test_a_full_disk_below_stdout_is_named(support: Checkout, arguments: tuple[str, ...]) -> None:
    make_worse(support)
    with open("/dev/full", "wb") as full:
        done = support.preview_into(full.fileno(), *arguments)
    assert done.returncode == 5
    assert "oloproof-ci: standard output cannot be written (No space left on device)" in done.stderr
    assert "internal error" not in done.stderr
    assert "Traceback" not in done.stderr


def test_all_503_questions_of_building_faq_are_previewed_with_a_changed_retriever(tmp_path: Path) -> None:
    checkout = repository_of("building_faq", tmp_path / "faq")
    checkout.commit("The base")
    checkout.branch("no-stemming")
    checkout.edit("app.py", "STEMMER = stems", "STEMMER = None")
    checkout.commit()
    done = checkout.preview()
    assert done.returncode == 1, done.stderr
    report = checkout.report()
    assert report["comparison"]["paired_cases"] == 503
    assert report["head"]["cache"]["equal_inputs"] == 6
    assert report["head"]["cache"]["retrieve"] == [0, 497]
    found = failures(report)
    assert len(found) == 9
    assert {"RANKED_OUT", "RETRIEVAL_MISS"} <= {case["label"] for case in found.values()}
