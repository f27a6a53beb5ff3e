"""The settings of a replay as a command line asks for them, refused with a sentence where it could show nothing."""

from __future__ import annotations

import argparse

from oloproof.diagnosis.replays import Setting, check_depth
from oloproof.errors import ConfigurationError
from oloproof.execution.host import AppHost
from oloproof.identity.system import Reranker
from oloproof.run_records import Run
from oloproof.workplace import Store

#: The interventions that replay a retrieval, with the attribute and the option that go with each.
REPLAYS = {
    "top-k": ("top_k", "--top-k N"),
    "token-budget": ("token_budget", "--token-budget N"),
    "reranker": ("reranker", "--reranker MODULE:FUNCTION"),
}


def check_options(given: argparse.Namespace) -> None:
    """Refuse an intervention without its option, and an option without its intervention."""
    for name, (attribute, option) in REPLAYS.items():
        there = getattr(given, attribute) is not None
        if name == given.intervention and not there:
            raise ConfigurationError(f"--intervention {name} needs {option}")
        if name != given.intervention and there:
            raise ConfigurationError(
                f"{option.split()[0]} goes with --intervention {name}, not with {given.intervention}; "
                "`oloproof what-if` replays several changes at once"
            )
    if given.control == "full" and given.intervention in REPLAYS:
        raise ConfigurationError(
            "--control full repeats the retrieval, which a replay never calls; it goes with --intervention gold-context"
        )


def replayed_setting(given: argparse.Namespace, run: Run, host: AppHost, store: Store) -> Setting:
    """The setting of a replay of failed cases: more room than the run had, or another order."""
    system = run.system
    if given.top_k is not None:
        check_depth(run, given.top_k)
        if given.top_k <= system.top_k:
            raise ConfigurationError(
                f"--top-k {given.top_k}: the top_k of {run.id} is {system.top_k}, and a replay of its failures needs a "
                f"larger one, up to its depth of {system.depth}; `oloproof what-if` takes smaller ones too"
            )
    if given.token_budget is not None:
        if system.token_budget is None:
            raise ConfigurationError(
                f"--token-budget {given.token_budget}: {run.id} has no token budget, so nothing was dropped by one"
            )
        if given.token_budget <= system.token_budget:
            raise ConfigurationError(
                f"--token-budget {given.token_budget}: the budget of {run.id} is {system.token_budget}, and a replay "
                "of its failures needs a larger one; `oloproof what-if` takes smaller ones too"
            )
    reranker = None if given.reranker is None else named_reranker(given.reranker, host, store)
    return Setting.of(run, top_k=given.top_k, token_budget=given.token_budget, reranker=reranker)


def named_reranker(name: str, host: AppHost, store: Store) -> Reranker:
    """The reranker of this name, once it is known that it can be called."""
    reranker = host.reranker(name, store.outlines)
    host.check_reranker(name)
    return reranker
