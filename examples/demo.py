"""`make demo`: a pull request that makes examples/support_rag worse, seen by the bot.

Builds a git repository in a temporary folder, with the example as the base and a worse app as the head, runs
`oloproof-ci preview` there and says what came of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
NEW_FAILURES_RULE = "  - {id: no-new-failures, metric: answer_correct, kind: new_failures, max: 0}\n"


def main() -> int:
    place = Path(tempfile.mkdtemp(prefix="oloproof-demo-")) / "support_rag"
    build_repository(place)
    print(f"A repository with a pull request: {place}\n", flush=True)
    command = [sys.executable, "-m", "oloproof_ci", "preview"]
    done = subprocess.run(
        command, cwd=place, env=_environment(), stdout=subprocess.PIPE, text=True, check=False
    )
    print(done.stdout)
    print(f"The gate's exit code: {done.returncode}")
    written = [place / ".oloproof" / "preview" / name for name in ("comment.md", "report.json")]
    for path in written:
        print(f"Written: {path}")
    if done.returncode != 1 or not all(path.exists() for path in written):
        print(
            "The demo did not end as it should: a BLOCK with exit code 1, and both files written.",
            file=sys.stderr,
        )
        return 1
    return 0


def build_repository(place: Path) -> None:
    """A repository whose main branch holds the example, and whose branch `faster-retrieval` makes it worse."""
    leave_out = shutil.ignore_patterns(".oloproof", "__pycache__")
    shutil.copytree(EXAMPLES / "support_rag", place, ignore=leave_out)
    with (place / "compare.yaml").open("a", encoding="utf-8") as policy:
        policy.write(NEW_FAILURES_RULE)
    _git(place, "init", "--quiet", "--initial-branch=main")
    _commit(place, "The support assistant as it is live")
    _git(place, "checkout", "--quiet", "-b", "faster-retrieval")
    shutil.copyfile(EXAMPLES / "support_rag_worse" / "app.py", place / "app.py")
    _commit(place, "Split words faster, keep answers short")


def _commit(place: Path, message: str) -> None:
    _git(place, "add", "--all")
    _git(place, "commit", "--quiet", "--message", message)


def _git(place: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(place), *arguments], check=True, env=_environment())


def _environment() -> dict[str, str]:
    """This process's environment, with an author for the commits and without a user's own git settings."""
    who = {"NAME": "Oloproof demo", "EMAIL": "demo@example.invalid"}
    identity = {f"GIT_{role}_{part}": text for role in ("AUTHOR", "COMMITTER") for part, text in who.items()}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, **identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


if __name__ == "__main__":
    sys.exit(main())
