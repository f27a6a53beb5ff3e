"""Policy files (release.yaml, compare.yaml): the rules that decide the gate."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from oloproof.errors import ConfigurationError
from oloproof.settings.fields import Count, ListOf, Settings, Share, Text, Version, not_null
from oloproof.settings.rules import AnyRule, DifferenceMethod, DifferenceRule
from oloproof.settings.validation import validate
from oloproof.settings.wording import capped, hint
from oloproof.settings.yamlfile import KeyPath, LoadedYaml, SourceLines, load_yaml

#: The states of a rule that may block or warn; PASS does neither.
OpenState = Literal["FAIL", "INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW"]

#: The values of the slices that come from what happened to a case; those of metadata are the user's.
SLICE_VALUES = {
    "relevant_position": ("top_k", "beyond_top_k", "not_retrieved"),
    "context_truncated": ("true", "false"),
}


class JudgeBar(Settings):
    """What a judge must meet before a rule may rest on it: on at least `minimum_labels` answers that people labelled,
    the lower end of its agreement with them must reach `minimum_agreement`."""

    minimum_agreement: Annotated[float, Field(gt=0, lt=1)] = 0.8
    minimum_labels: Count = 30


class PolicyConfig(Settings):
    """The contents of a policy file.

    `max_missing_fraction` is the share of a rule's cases (or pairs) that may be missing before it blocks whatever
    `block_on` says; a rule may set its own. `families` names groups of rules that ask several questions at once.
    Without `judges` no rule on a judge's criterion is ever decided.
    """

    version: Version
    confidence_level: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    difference_method: DifferenceMethod = "bounded"
    max_missing_fraction: Share = 0.5
    block_on: ListOf[OpenState] = ("FAIL", "INSUFFICIENT_EVIDENCE", "MANUAL_REVIEW")
    warn_on: ListOf[OpenState] = ()
    on_partial_run: Literal["block", "warn"] = "block"
    on_suite_change: Literal["allow", "review"] = "allow"
    families: ListOf[Text] = ()
    judges: Annotated[JudgeBar | None, BeforeValidator(not_null, json_schema_input_type=JudgeBar)] = None
    rules: Annotated[ListOf[AnyRule], Field(min_length=1)]

    def method_of(self, rule: DifferenceRule) -> DifferenceMethod:
        """How a rule's interval is made."""
        return rule.difference_method or self.difference_method

    def missing_limit_of(self, rule: AnyRule) -> float:
        """The share of missing results that a rule bears."""
        limit = rule.max_missing_fraction
        return self.max_missing_fraction if limit is None else limit


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy file: `path` as the user named it, and `lines`, which knows where each key stands."""

    path: Path
    config: PolicyConfig
    lines: SourceLines


def load_policy(path: Path) -> Policy:
    """Read a policy file. Raises ConfigurationError with every problem, file and line."""
    return checked_policy(path, load_yaml(path))


def checked_policy(path: Path, loaded: LoadedYaml) -> Policy:
    """The policy that a file's content is; `path` is what it is called. Raises as `load_policy` does."""
    config = validate(PolicyConfig, loaded)
    problems = [loaded.lines.problem(*found) for found in _contradictions(config, loaded.lines)]
    if problems:
        raise ConfigurationError(*capped(problems))
    return Policy(path, config, loaded.lines)


# -------------------------------------------------------------------------------------- against the suite


@dataclass(frozen=True)
class SuiteNames:
    """What a policy can speak of: all criteria, those that are pass/fail, and the slices."""

    criteria: Collection[str]
    pass_fail: Collection[str]
    slices: Collection[str]


def check_names(policy: Policy, names: SuiteNames) -> None:
    """Check that what each rule reads is there, and of the kind that the rule needs.

    Raises ConfigurationError with file, line and the nearest name.
    """
    problems = []
    for index, rule in enumerate(policy.config.rules):
        found = [*_metric_problem(policy, index, rule, names), *_scope_problem(rule, names)]
        problems += [policy.lines.problem(("rules", index, *path), sentence) for path, sentence in found]
    if problems:
        raise ConfigurationError(*capped(problems))


def check_ids(policies: Sequence[Policy]) -> None:
    """Check that no two of several policies that are decided together have a rule of one id.

    Raises ConfigurationError with both places.
    """
    first: dict[str, str] = {}
    problems = []
    for policy in policies:
        for index, rule in enumerate(policy.config.rules):
            here = policy.lines.where("rules", index, "id")
            there = first.setdefault(rule.id, here)
            if there != here:
                sentence = f"{rule.id} is the id of the rule at {there} already"
                problems.append(policy.lines.problem(("rules", index, "id"), sentence))
    if problems:
        raise ConfigurationError(*capped(problems))


def _metric_problem(
    policy: Policy, index: int, rule: AnyRule, names: SuiteNames
) -> Iterator[tuple[KeyPath, str]]:
    if rule.metric not in names.criteria:
        yield (
            ("metric",),
            f"no evaluator yields the metric {rule.metric}; {hint(rule.metric, names.criteria)}",
        )
    elif rule.metric in names.pass_fail:
        return
    elif rule.counts_failures:
        options = hint(rule.metric, names.pass_fail, "pass/fail criteria are")
        yield ("metric",), f"{rule.kind} counts failures, and {rule.metric} is a score; {options}"
    elif isinstance(rule, DifferenceRule) and policy.config.method_of(rule) == "exact":
        own = rule.difference_method is not None
        place = "" if own else f" (set on line {policy.lines.line('difference_method')} for all rules)"
        yield (
            ("difference_method",) if own else ("metric",),
            f"exact is for pass/fail criteria, and {rule.metric} is a score{place}; write "
            "difference_method: bounded for this rule",
        )


def _scope_problem(rule: AnyRule, names: SuiteNames) -> Iterator[tuple[KeyPath, str]]:
    if rule.slice is None:
        return
    name, value = rule.slice
    if name not in names.slices:
        options = hint(name, names.slices, "slices are") if names.slices else "oloproof.yaml has no slices"
        yield ("scope",), f"there is no slice {name}; {options}"
        return
    values = SLICE_VALUES.get(name, (value,))
    if value not in values:
        yield ("scope",), f"{name} is never {value}; {hint(value, values)}"


# --------------------------------------------------------------------------------------- within one file


_NOBODY_ASKED = "needs MANUAL_REVIEW in block_on; without it nobody would be asked"


def _contradictions(config: PolicyConfig, lines: SourceLines) -> Iterator[tuple[KeyPath, str]]:
    """Problems between settings that are well-formed each for itself."""
    first: dict[str, int] = {}
    for index, rule in enumerate(config.rules):
        earlier = first.setdefault(rule.id, index)
        if earlier != index:
            line = lines.line("rules", earlier, "id")
            yield ("rules", index, "id"), f"{rule.id} is the id of the rule on line {line} already"
        if rule.requires_manual_review and "MANUAL_REVIEW" not in config.block_on:
            yield ("rules", index, "requires_manual_review"), _NOBODY_ASKED
    if config.on_suite_change == "review" and "MANUAL_REVIEW" not in config.block_on:
        yield ("on_suite_change",), _NOBODY_ASKED
    yield from _family_problems(config, lines)
    for index, state in enumerate(config.warn_on):
        if state in config.block_on:
            there = (
                f"block_on on line {lines.line('block_on')}"
                if "block_on" in config.model_fields_set
                else "the default block_on; write a block_on without it"
            )
            yield ("warn_on", index), f"{state} cannot warn and block; it stands in {there}"


def _family_problems(config: PolicyConfig, lines: SourceLines) -> Iterator[tuple[KeyPath, str]]:
    """A rule on a slice is one of several questions, so it names the family that it is corrected with."""
    for index, name in enumerate(config.families):
        if name in config.families[:index]:
            yield ("families", index), f"{name} stands here twice"
    first: dict[str, int] = {}
    for index, rule in enumerate(config.rules):
        if rule.family is None:
            if rule.slice is not None:
                options = ", ".join(config.families) or "none yet: add `families: [NAME]` to the policy"
                yield (
                    ("rules", index, "scope"),
                    f"a rule on a slice must name its family; declared are {options}",
                )
        elif rule.family not in config.families:
            sentence = f"{rule.family} is not declared; "
            sentence += (
                hint(rule.family, config.families, "declared are")
                if config.families
                else (f"add `families: [{rule.family}]` to the policy")
            )
            yield ("rules", index, "family"), sentence
        else:
            earlier = config.rules[first.setdefault(rule.family, index)]
            if earlier.reads != rule.reads:
                line = lines.line("rules", first[rule.family], "id")
                yield (
                    ("rules", index, "family"),
                    f"{rule.family} cannot hold rules on one run and rules on a pair, as on line {line}; "
                    "declare two families",
                )
