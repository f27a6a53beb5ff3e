"""The command line's grammar. The commands themselves are imported when they are called."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from oloproof import __version__

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

DEFAULT_CONFIG = Path("oloproof.yaml")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The parsed arguments; `command` is a function of them. Wrong usage exits with 2, as argparse does."""
    return _parser().parse_args(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="oloproof",
        description="Evaluate a RAG system stage by stage, find out why cases fail, compare, and decide.",
        epilog="Exit codes: 0 ALLOW or WARN; 1 BLOCK, a rule failed; 2 wrong input; 3 BLOCK, not enough evidence; "
        "4 BLOCK, a person must decide; 5 the run did not finish.",
    )
    parser.add_argument("--version", action="version", version=f"oloproof {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    init = _command(
        commands, "init", "write a configuration and a starter policy for a class; overwrites nothing"
    )
    init.add_argument(
        "object", metavar="MODULE:CLASS", help="the class that @rag_system declares, such as app:Rag"
    )
    init.add_argument(
        "--dataset",
        default="cases.jsonl",
        metavar="FILE",
        help="the case file, relative to the configuration (default: cases.jsonl)",
    )
    init.add_argument("--ci", choices=["github"], help="write a workflow as well")

    _command(commands, "check", "check configuration, app, cases and policies without running a case")

    run = _command(commands, "run", "evaluate the system on its cases, and decide the policy")
    _add_policy(run, "policy file with rules on one run (default: release.yaml beside the configuration)")

    run.add_argument(
        "--fresh-judgments", action="store_true", help="ask judges again what they have answered before"
    )

    runs = _command(commands, "runs", "list the newest runs")
    runs.add_argument("--limit", type=_positive, default=20, metavar="N", help="how many (default: 20)")

    inspect = _command(commands, "inspect", "show a run, a comparison or a diagnosis")
    inspect.add_argument("id", help="an id, any unique prefix of one, latest, or latest~1")
    inspect.add_argument("--failures", action="store_true", help="only cases that failed or errored")
    inspect.add_argument("--criterion", metavar="C", help="with --failures: only failures of this criterion")
    inspect.add_argument("--case", metavar="ID", help="one case with everything that is known of it")

    diagnose = _command(commands, "diagnose", "re-execute failed cases under a controlled change")
    diagnose.add_argument("id", metavar="RUN", help="a run: its id, any unique prefix, latest, or latest~1")
    diagnose.add_argument(
        "--intervention",
        choices=["gold-context", "top-k", "token-budget", "reranker"],
        required=True,
        help="what to change: the context, or the setting under which the recorded retrieval is replayed",
    )
    diagnose.add_argument("--top-k", type=_positive, metavar="N", help="with --intervention top-k")
    diagnose.add_argument(
        "--token-budget", type=_positive, metavar="N", help="with --intervention token-budget"
    )
    diagnose.add_argument("--reranker", metavar="MODULE:FUNCTION", help="with --intervention reranker")
    diagnose.add_argument(
        "--repeats", type=_positive, default=1, metavar="N", help="how often the control runs (default: 1)"
    )
    diagnose.add_argument(
        "--control",
        choices=["generate", "full"],
        default="generate",
        help="what the control repeats: generate on the recorded context (default), or the retrieval too",
    )
    diagnose.add_argument("--criterion", metavar="C", required=True, help="whose failures to diagnose")

    what_if = _command(
        commands, "what-if", "replay all cases of a run under other settings, on the recorded retrieval"
    )
    what_if.add_argument("id", metavar="RUN", help="a run: its id, any unique prefix, latest, or latest~1")
    what_if.add_argument(
        "--top-k", type=_positives, action="extend", metavar="N,N", help="one or more values"
    )
    what_if.add_argument(
        "--token-budget", type=_positives, action="extend", metavar="N,N", help="one or more values"
    )
    what_if.add_argument(
        "--reranker",
        action="append",
        metavar="MODULE:FUNCTION",
        help="called with input and candidates; may be repeated",
    )
    what_if.add_argument(
        "--criterion", metavar="C", help="the criterion of the table (default: the first that judges answers)"
    )

    compare = _command(
        commands, "compare", "compare a run with a baseline run, and decide a policy on the pair"
    )
    compare.add_argument("candidate", metavar="CANDIDATE", help="the run that is proposed")
    compare.add_argument("baseline", metavar="BASELINE", help="the run it is held against")
    _add_policy(compare, "policy file (default: release.yaml and compare.yaml beside the configuration)")

    compare.add_argument(
        "--swap",
        action="store_true",
        help="say which change each new failure hangs on, by executing the candidate with one stage of the baseline",
    )
    compare.add_argument(
        "--base-config",
        type=Path,
        metavar="PATH",
        help="with --swap: the configuration in a checkout of what the baseline measured (default: the one it was made "
        "with, here)",
    )
    compare.add_argument("--criterion", metavar="C", help="with --swap: only new failures of this criterion")
    compare.add_argument(
        "--slices",
        choices=["all", "none"],
        help="print every exploratory slice line, or none (default: the first 60)",
    )

    gate = _command(commands, "gate", "decide a policy on a stored run")
    gate.add_argument("id", metavar="RUN", help="a run: its id, any unique prefix, latest, or latest~1")
    _add_policy(gate, "policy file with rules on one run (default: release.yaml beside the configuration)")

    plan = _command(
        commands, "plan", "say what would settle the rules that are open, or what a suite can decide at all"
    )
    plan.add_argument(
        "id",
        metavar="RUN|COMPARISON",
        nargs="?",
        help="what is decided (default: nothing yet, so what as many cases can decide at all)",
    )
    plan.add_argument(
        "--cases",
        type=_positive,
        metavar="N",
        help="without an id: how many (default: those of the case file)",
    )
    _add_policy(plan, "policy file (default: release.yaml and compare.yaml beside the configuration)")

    _add_labels(commands)
    _add_judges(commands)

    cache = _command(commands, "cache", "show what the store holds, or remove what has long been out of use")
    cache.add_argument("action", choices=["stats", "prune"], help="show, or remove")
    cache.add_argument(
        "--max-mb",
        type=_positive,
        metavar="N",
        help="prune: results beyond this go, least recently used first (default: cache.max_mb of oloproof.yaml)",
    )
    cache.add_argument(
        "--unused-days",
        type=_positive,
        default=30,
        metavar="N",
        help="prune: index versions out of use for this long go first (default: 30)",
    )

    identity = _command(
        commands, "identity", "show what stored results depend on, and what has changed since a run"
    )
    identity.add_argument("--stage", choices=["retrieve", "generate", "count_tokens"], help="one stage only")
    identity.add_argument(
        "--diff", metavar="RUN", help="what differs from a run, and what therefore runs again"
    )
    return parser


def _add_labels(commands: Commands) -> None:
    summary = "ask people about answers that a judge judges"
    actions = _group(commands, "labels", summary)

    export = _command(actions, "export", "write a blind sheet: answers to be judged by people", "labels")
    _add_sample(export)
    export.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write it (default: CRITERION-labels.FORMAT)"
    )
    export.add_argument(
        "--format", choices=["jsonl", "csv"], default="jsonl", help="csv is for spreadsheets (default: jsonl)"
    )

    take = _command(actions, "import", "take over the verdicts of a filled sheet", "labels")
    take.add_argument(
        "file", type=Path, metavar="FILE", help="the sheet, with pass, fail or unsure as verdicts"
    )
    take.add_argument("--by", default="", metavar="NAME", help="who judged, where the sheet does not say")
    take.add_argument("--replace", action="store_true", help="overwrite labels that the sheet contradicts")

    review = _command(actions, "review", "ask here, one answer at a time", "labels")
    _add_sample(review)
    review.add_argument("--by", default="", metavar="NAME", help="who judges")
    for action in (export, take, review):
        action.set_defaults(action=action.prog.split()[-1])


def _add_sample(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="RUN", help="a run: its id, any unique prefix, latest, or latest~1")
    parser.add_argument("--criterion", metavar="C", required=True, help="the judge's criterion")
    parser.add_argument(
        "--sample", type=_positive, default=50, metavar="N", help="how many answers (default: 50)"
    )
    parser.add_argument(
        "--seed",
        type=_whole,
        default=0,
        metavar="N",
        help="which random sample of the unlabelled (default: 0)",
    )


def _add_judges(commands: Commands) -> None:
    actions = _group(commands, "judges", "hold judges against people")
    check = _command(actions, "check", "say how well a judge agrees with people, and what it lacks", "judges")
    check.add_argument("criterion", metavar="C", help="the judge's criterion")
    check.add_argument(
        "id", metavar="RUN", nargs="?", help="check the judge of a run (default: as it is configured now)"
    )
    check.add_argument(
        "--ask", action="store_true", help="ask the judge about labelled answers that it was not asked about"
    )
    _add_policy(
        check, "policy file with the bar (default: release.yaml and compare.yaml beside the configuration)"
    )


def _group(commands: Commands, name: str, summary: str) -> Commands:
    """A command that has commands of its own."""
    parser = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    return parser.add_subparsers(title="commands", required=True, metavar="COMMAND")


def _command(commands: Commands, name: str, summary: str, group: str = "") -> argparse.ArgumentParser:
    """A command's parser; `group` names the command that it belongs to, and whose module has it."""
    parser = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    parser.add_argument(
        "--config",
        type=Path,
        default=DEFAULT_CONFIG,
        metavar="PATH",
        help="configuration file; the store is .oloproof/ beside it (default: oloproof.yaml)",
    )
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument("--traceback", action="store_true", help="show where an error was raised")
    parser.set_defaults(command=_late(group or name))
    return parser


def _add_policy(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument(
        "--policy", type=Path, action="append", metavar="FILE", help=text + "; may be repeated"
    )


def _late(name: str) -> Callable[[argparse.Namespace], int]:
    def command(given: argparse.Namespace) -> int:
        code: int = import_module(f"oloproof.cli.{name.replace('-', '_')}").command(given)
        return code

    return command


def _positives(text: str) -> list[int]:
    """Whole numbers with commas between them."""
    return [_positive(part.strip()) for part in text.split(",")]


def _whole(text: str, least: int = 0) -> int:
    """A number of at most nine digits."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else -1
    if number < least:
        most = " and at most nine digits" if text.isdecimal() and len(text) > 9 else ""
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}{most}, found {text!r}")
    return number


def _positive(text: str) -> int:
    return _whole(text, 1)
