"""The `oloproof-ci` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from oloproof import __version__
from oloproof.cli import run_program

PROGRAM = "oloproof-ci"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit code, which for `preview` is the gate's."""
    return run_program(
        PROGRAM, lambda: _parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Decide whether a change to a RAG system may merge."
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    preview = commands.add_parser(
        "preview",
        help="what the bot would say of this work tree",
        description="Evaluate the work tree and its base, compare them case by case, diagnose what newly fails, and "
        "decide the policies. Prints the comment, writes comment.md and report.json, exits with the gate's code.",
    )
    preview.add_argument(
        "--base",
        metavar="REF",
        help="what to compare with: the merge base of HEAD and REF (default: of HEAD and the default branch)",
    )
    preview.add_argument(
        "--config",
        type=Path,
        metavar="PATH",
        help="configuration file (default: oloproof.yaml here, or the only one in the repository)",
    )
    preview.add_argument(
        "--policy",
        type=Path,
        action="append",
        metavar="FILE",
        help="policy file; may be repeated (default: release.yaml and compare.yaml beside the configuration)",
    )
    preview.add_argument(
        "--policy-from",
        choices=["base", "head"],
        default="base",
        help="whose versions of the policy files decide: the base's, so that a change cannot loosen its own gate (the "
        "head's stands in for a file that the base does not have), or the head's, to try a policy (default: base)",
    )
    preview.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where comment.md and report.json go (default: .oloproof/preview/ beside the configuration)",
    )
    preview.add_argument(
        "--json", action="store_true", help="print the report as JSON instead of the comment"
    )
    preview.add_argument("--traceback", action="store_true", help="show where an error was raised")
    preview.set_defaults(command=_preview)
    action = commands.add_parser(
        "action",
        help="the step of a GitHub workflow; everything is read from the environment",
        description="Do what the event of a GitHub workflow asks: evaluate a pull request, a merge group or a branch, "
        "or publish the report of another run. Inputs are environment variables, as the runner passes them.",
    )
    debug = os.environ.get("RUNNER_DEBUG") == "1"
    action.add_argument(
        "--traceback", action="store_true", default=debug, help="show where an error was raised"
    )
    action.set_defaults(command=_action)
    return parser


def _preview(given: argparse.Namespace) -> int:
    from oloproof_ci.preview_command import command

    return command(given)


def _action(given: argparse.Namespace) -> int:
    from oloproof_ci.action.run import command

    return command()
