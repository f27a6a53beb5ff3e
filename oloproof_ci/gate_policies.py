"""Whose policies decide: those of the base commit, so that a pull request cannot loosen the gate it has to pass."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from oloproof.errors import ConfigurationError
from oloproof.settings.policy import Policy, checked_policy, load_policy
from oloproof.settings.yamlfile import parse_yaml
from oloproof.workplace import COMPARE_POLICY, RELEASE_POLICY
from oloproof_ci.git import Base, Repository
from oloproof_ci.report import PolicyFile, Warning

#: Whose policies are to decide, as the user chooses.
PolicyFrom = Literal["base", "head"]


@dataclass(frozen=True)
class GatePolicies:
    """The policies that decide, in the order of their files, and the two commits' own versions of all of them."""

    deciding: tuple[Policy, ...]
    files: tuple[PolicyFile, ...]
    base: tuple[Policy, ...]
    head: tuple[Policy, ...]
    warnings: tuple[Warning, ...]


@dataclass(frozen=True)
class PolicyFiles:
    """A suite's policy files. `named`: the user named them, so each must be there, in the base or the head."""

    paths: tuple[Path, ...]
    named: bool
    policy_from: PolicyFrom = "base"

    @classmethod
    def of(cls, given: Sequence[Path] | None, folder: Path, policy_from: PolicyFrom = "base") -> PolicyFiles:
        """The files that were given, or those beside the configuration in `folder`."""
        beside = (folder / RELEASE_POLICY, folder / COMPARE_POLICY)
        return cls(tuple(given) if given else beside, bool(given), policy_from)

    def here(self) -> list[Policy]:
        """The work tree's own versions. Raises ConfigurationError when one is wrong, or named and not there."""
        return [load_policy(path) for path in self.paths if self.named or os.path.lexists(path)]

    def against(self, repository: Repository, base: Base, config: Path) -> GatePolicies:
        """The policies that decide a pull request on `base`. `config` is where the configuration stands there, since
        the policies beside it move with it. Raises ConfigurationError when the head's version of one is wrong, or when
        a file that was named is in neither commit."""
        versions = [self._versions(path, repository, base, config.parent) for path in self.paths]
        chosen = [(version, *version.choose(self.policy_from)) for version in versions]
        return GatePolicies(
            deciding=tuple(policy for _, policy, _ in chosen if policy is not None),
            files=tuple(
                PolicyFile(str(version.path), origin)
                for version, policy, origin in chosen
                if policy is not None
            ),
            base=tuple(version.base for version in versions if version.base is not None),
            head=tuple(version.head for version in versions if version.head is not None),
            warnings=tuple(_warnings(versions, base)) if self.policy_from == "base" else (),
        )

    def _versions(self, path: Path, repository: Repository, base: Base, beside: Path) -> _Versions:
        before, problem, inside = None, "", True
        try:
            here = repository.inside(path.absolute().parent)
            place = (here if self.named else beside) / path.name
        except ConfigurationError:
            inside = False
        else:
            content = repository.file_at(base.sha, place)
            if content is not None:
                try:
                    before = checked_policy(path, parse_yaml(content, f"{base.sha[:7]}:{place.as_posix()}"))
                except ConfigurationError as error:
                    problem = error.problems[0]
        wanted = os.path.lexists(path) or (self.named and before is None)
        return _Versions(path, before, load_policy(path) if wanted else None, problem, inside)


@dataclass(frozen=True)
class _Versions:
    """A policy file in the base and the head; `problem` says why the base's cannot be read, `inside` whether it lies
    in the repository at all."""

    path: Path
    base: Policy | None
    head: Policy | None
    problem: str
    inside: bool

    def choose(self, wanted: PolicyFrom) -> tuple[Policy | None, Literal["base", "head", "outside"]]:
        if not self.inside:
            return self.head, "outside"
        if wanted == "base" and self.base is not None:
            return self.base, "base"
        return self.head, "head"


def _warnings(versions: Sequence[_Versions], base: Base) -> list[Warning]:
    """Where a pull request's own policy had to stand in for the base's."""
    found = [
        Warning(
            "base_policy_unreadable",
            f"this pull request's own {each.path} decides: {each.problem}"
            if each.head is not None
            else f"this pull request removes {each.path}, so nothing decides in its place: {each.problem}",
        )
        for each in versions
        if each.problem
    ]
    absent = [
        str(v.path) for v in versions if v.inside and not v.problem and v.base is None and v.head is not None
    ]
    if absent:
        decide = "decides" if len(absent) == 1 else "decide"
        text = f"{base.ref} has no {' and no '.join(absent)}, so this pull request's own {decide}."
        found.append(Warning("policy_from_head", text))
    return found
