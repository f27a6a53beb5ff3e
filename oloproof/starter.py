"""The files that a project begins with, as text. Pure: who writes them knows where."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

#: What a workflow names to use the action.
ACTION = "oloproof/oloproof-action@v1"
CONFIG_PATTERN = """\
# What is evaluated, on which cases, by which measure. Settings: the README's tables.
version: 1
dataset: {dataset}

system:
  rag:
    object: {target}

evaluators:
  # An answer is right when it contains what the case expects. The fields are those of your answers and cases.
  - {{type: contains, criterion: answer_correct, field: answer, expected_field: answer}}
  # Was a relevant passage among those that reach the model, and how well did it rank?
  - {{type: hit_rate, k: {top_k}}}
  - {{type: ndcg, k: {depth}}}

slices: [relevant_position, context_truncated]
"""
#: Blocks on what was seen to break, or could not be seen; what a young suite cannot settle only warns.
COMPARE_POLICY = """\
# Decides a change against what is live. A new failure blocks, and so does a case that may be one, since it gave no
# answer (max_missing_fraction: 0). On a young suite the interval of the difference is too wide to settle the second
# rule, and that only warns. As the suite grows, move INSUFFICIENT_EVIDENCE to block_on.
version: 1
block_on: [FAIL, MANUAL_REVIEW]
warn_on: [INSUFFICIENT_EVIDENCE]

rules:
  - {id: no-new-failures, metric: answer_correct, kind: new_failures, max: 0, max_missing_fraction: 0}
  - {id: answers-not-worse, metric: answer_correct, kind: non_inferiority, margin: 0.05}
"""
WORKFLOW_PATTERN = """\
name: Oloproof

on:
  pull_request:
  merge_group:
  push:
    branches: [{branch}] # measures what pull requests are held against

permissions:
  contents: read
  pull-requests: write # the comment
  statuses: write # the gate on the commit

concurrency:
  group: oloproof-${{{{ github.event.pull_request.number || github.ref }}}}
  cancel-in-progress: ${{{{ github.event_name == 'pull_request' }}}}

jobs:
  oloproof:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
      - uses: actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2
        with:
          fetch-depth: 0
          persist-credentials: false
      - uses: {action}
{inputs}"""
EXAMPLE_CASE = (
    '{"id": "first", "input": {"question": "..."}, "expected": {"answer": "...", '
    '"relevant": [{"doc_id": "..."}], "gold_context": [{"doc_id": "...", "text": "..."}]}}'
)


@dataclass(frozen=True)
class Beginning:
    """What the files are made for: `target` is module:Class, `dataset` the case file as the configuration names it."""

    target: str
    dataset: str
    top_k: int
    depth: int


def configuration(beginning: Beginning) -> str:
    """The text of oloproof.yaml."""
    return CONFIG_PATTERN.format(
        target=_scalar(beginning.target),
        dataset=_scalar(beginning.dataset),
        top_k=beginning.top_k,
        depth=beginning.depth,
    )


def _scalar(text: str) -> str:
    """A text as YAML, quoted where it could be taken for something else."""
    return text if re.fullmatch(r"[A-Za-z_][\w./:-]*\w", text, re.ASCII) else json.dumps(text)


def workflow(config: str, requirements: str | None, branch: str) -> str:
    """The text of a workflow that runs the action; `config` is the path from the top of the repository. Packages come
    from a requirement file when there is one."""
    inputs = {}
    if config != "oloproof.yaml":
        inputs["config"] = _scalar(config)
    if requirements is not None:
        inputs["requirements"] = _scalar(requirements)
    given = "".join(f"          {name}: {value}\n" for name, value in inputs.items())
    return WORKFLOW_PATTERN.format(
        action=ACTION, branch=_scalar(branch), inputs=f"        with:\n{given}" if given else ""
    )
