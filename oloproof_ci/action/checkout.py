"""What is checked out, against what the event is about: the commit to report on, and the base."""

from __future__ import annotations

from dataclasses import dataclass

from oloproof.errors import ConfigurationError
from oloproof_ci.action.events import Evaluation
from oloproof_ci.fetching import Fetching
from oloproof_ci.git import Base, Repository
from oloproof_ci.report import Commit

_SHORT = 7


@dataclass(frozen=True)
class Sides:
    """The commit to report on, and the base; None: compare with nothing. `left_out` says why, where that is worth a
    warning."""

    head: Commit
    base: Base | None
    left_out: str = ""


def find_sides(repository: Repository, evaluation: Evaluation, wanted: str, fetching: Fetching) -> Sides:
    """The head and the base of a checkout. `wanted` is the input base. What a shallow clone lacks is fetched. Raises
    ConfigurationError when the checkout is not of what the event is about, or the history cannot be had."""
    checked_out = repository.head()
    head = evaluation.head or Commit("HEAD", checked_out)
    merged = _is_test_merge(repository, checked_out, head)
    if not merged and checked_out != head.sha:
        raise ConfigurationError(
            f"{repository.root}: {checked_out[:_SHORT]} is checked out, which is neither {head.sha[:_SHORT]}, the head "
            f"({head.ref}), nor its test merge; let actions/checkout take its default ref"
        )
    if wanted == "none":
        return Sides(
            head,
            None,
            "Nothing is compared with this run, since the input base is none: what newly fails is unknown.",
        )
    if wanted != "auto":
        # actions/checkout leaves branches other than its own as those of origin alone
        remote = f"origin/{wanted}"
        name = remote if not repository.has(wanted) and fetching.branch(wanted) else wanted
        if repository.has(name):
            fetching.history(checked_out, repository.commit(name))
        return Sides(head, Base(repository.base(name, setting="input base").sha, wanted))
    if evaluation.into is None:
        return Sides(head, repository.base(None, setting="input base"))
    if merged:
        return Sides(
            head,
            Base(_present(repository, repository.parents(checked_out)[0], fetching), evaluation.into.ref),
        )
    into = _present(repository, evaluation.into.sha, fetching)
    if evaluation.exact:
        return Sides(head, Base(into, evaluation.into.ref))
    fetching.history(checked_out, into)
    return Sides(head, Base(repository.merge_base(checked_out, into), evaluation.into.ref))


def _is_test_merge(repository: Repository, checked_out: str, head: Commit) -> bool:
    """Whether GitHub's merge of the head into its base is checked out: what was really merged is its first parent,
    while the payload's base is a branch's tip, which may have moved since."""
    if checked_out == head.sha:
        return False
    parents = repository.parents(checked_out)
    return len(parents) == 2 and parents[1] == head.sha


def _present(repository: Repository, sha: str, fetching: Fetching) -> str:
    if not fetching.commit(sha):
        raise ConfigurationError(
            f"{repository.root}: the base {sha[:_SHORT]} is not in this checkout and could not be fetched "
            f"({fetching.failure or 'git said nothing'}); set `fetch-depth: 0` for actions/checkout, or give the job "
            "`contents: read`"
        )
    return sha
