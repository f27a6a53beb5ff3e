"""The driver: what was done is written while there is only waiting left to do."""

from __future__ import annotations

import time

from oloproof.execution.calls import Message, ThreadCalls
from oloproof.execution.driver import Driver
from oloproof.execution.steps import StepsTo
from oloproof.worker.process import Reply


def test_a_commit_that_had_to_wait_for_others_does_not_put_off_the_next_one() -> None:
    def serve(message: Message) -> Reply:
        time.sleep(message["seconds"])
        return Reply()

    def steps() -> StepsTo[str]:
        yield {"op": "generate", "seconds": 0.2}
        yield {"op": "generate", "seconds": 1.5}
        return "over"

    commits: list[float] = []

    def commit() -> None:
        if not commits:
            time.sleep(0.6)  # somebody else holds the store
        commits.append(time.monotonic())

    driver = Driver(lambda: ThreadCalls(serve, 1), slots=1, before_first_call=lambda: None, idle=commit)
    assert list(driver.run([("case", steps())])) == [("case", "over")]
    # While it waits for the first call, while it waits for the second, and at the end.
    assert len(commits) == 3
