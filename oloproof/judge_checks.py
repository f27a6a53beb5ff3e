"""What is known of a run's judges: people's labels from the project's folder, the judges' verdicts from the store."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oloproof.judges.checks import JudgeCheck
from oloproof.run_records import EvaluatorRecord
from oloproof.settings.policy import Policy

if TYPE_CHECKING:
    from oloproof.labels.checking import LabelledAnswers
    from oloproof.labels.files import Label
    from oloproof.settings.project import Project
    from oloproof.workplace import Store

#: Labels by criterion and item.
Labels = Mapping[str, Mapping[str, "Label"]]


def labels_of(root: Path, evaluators: Sequence[EvaluatorRecord]) -> Labels:
    """The labels of all judges among the evaluators; `root` is the configuration's folder. Raises ConfigurationError
    with every line that is wrong."""
    judges = [each.criterion for each in evaluators if not each.validated]
    if not judges:
        return {}
    from oloproof.labels.files import read_labels

    return {criterion: read_labels(root, criterion) for criterion in judges}


def checks_of(evaluators: Sequence[EvaluatorRecord], labels: Labels, store: Store) -> dict[str, JudgeCheck]:
    """How each judge, as it is recorded, compares with people."""
    judges = [each for each in evaluators if labels.get(each.criterion)]
    if not judges:
        return {}
    from oloproof.diagnosis.recorded import evaluator_from
    from oloproof.judges.asking import Asking
    from oloproof.labels.checking import check_judge
    from oloproof.store.judge_calls import JudgeCalls

    asking = Asking(JudgeCalls(store.database, time.time))
    return {
        each.criterion: check_judge(
            evaluator_from(each.definition), list(labels[each.criterion].values()), asking
        )
        for each in judges
        if "rubric" in each.definition
    }


def known_checks(root: Path, evaluators: Sequence[EvaluatorRecord], store: Store) -> dict[str, JudgeCheck]:
    """Both of these: what is known now of a stored run's judges."""
    return checks_of(evaluators, labels_of(root, evaluators), store)


def to_ask_about(project: Project, policies: Sequence[Policy], labels: Labels) -> list[LabelledAnswers]:
    """The labelled answers that judges must be asked about before policies are decided: those of judges that rules
    read where a policy has a bar for them, and of judges whose pass rates are to be corrected."""
    wanted = {rule.metric for policy in policies if policy.config.judges for rule in policy.config.rules}
    from oloproof.evaluators import JudgeEvaluator
    from oloproof.labels.checking import LabelledAnswers

    return [
        LabelledAnswers(each, list(labels[each.criterion_name].values()))
        for each in project.config.evaluators
        if isinstance(each, JudgeEvaluator)
        and labels.get(each.criterion_name)
        and (each.corrected or each.criterion_name in wanted)
    ]
