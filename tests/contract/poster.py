"""Writes one section into the comment of a pull request, as a job's process does: for tests of several at once.

python poster.py URL REPOSITORY NUMBER HEAD RUN LEG
"""

from __future__ import annotations

import sys
import time

from api_server import JOB_LOGIN, JOB_TOKEN

from oloproof_ci.github.client import GitHub
from oloproof_ci.github.fitting import Draft
from oloproof_ci.github.marked import Mark
from oloproof_ci.github.posting import Posting

url, repository, number, head, run, leg = sys.argv[1:]
github = GitHub(JOB_TOKEN, url, repository, backoff=0.05)
posting = Posting(github, int(number), head, JOB_LOGIN, time.sleep)
print("ready", flush=True)
sys.stdin.readline()
draft = Draft(Mark("oloproof.yaml", leg, head, int(run), 1), lambda _: f"## Run {run} of {leg or 'one'}")
print(posting.post([draft]).outcome)
