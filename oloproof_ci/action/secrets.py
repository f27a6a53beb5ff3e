"""Secrets of a job: what must not stand in its log, and even less in a report that others read.

The runner hides what it knows to be secret from the log. It does not read what is posted through the API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from oloproof.jsonform import from_json, to_json
from oloproof_ci.outcome import JobOutcome

#: Names of variables that hold a secret, not the place of one.
_NAMES = re.compile(r"(?:^|[_-])(?:KEY|APIKEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PAT)$", re.IGNORECASE)
#: A shorter value is in too many words by chance.
SHORTEST = 8
HIDDEN = "***"


def holds_secret(name: str) -> bool:
    """Whether a variable holds a secret, going by its name."""
    return _NAMES.search(name) is not None


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets in an environment, going by the names of its variables, longest first; of several lines each."""
    values = [value for name, value in environment.items() if holds_secret(name)]
    lines = {line.strip() for value in values for line in value.splitlines()}
    return tuple(
        sorted((line for line in lines if len(line) >= SHORTEST), key=lambda line: (-len(line), line))
    )


def without_secrets(outcome: JobOutcome, secrets: Iterable[str]) -> JobOutcome:
    """The same outcome with `***` in the place of every secret that an answer, an error or a name holds."""
    record = to_json(outcome)
    told = json.dumps(record, ensure_ascii=False)
    present = [secret for secret in secrets if json.dumps(secret, ensure_ascii=False)[1:-1] in told]
    if not present:
        return outcome
    pattern = re.compile("|".join(map(re.escape, present)))
    return from_json(JobOutcome, json.dumps(_hidden(record, pattern)).encode())


def _hidden(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(HIDDEN, value)
    if isinstance(value, list):
        return [_hidden(each, pattern) for each in value]
    if isinstance(value, dict):
        return {pattern.sub(HIDDEN, key): _hidden(each, pattern) for key, each in value.items()}
    return value
