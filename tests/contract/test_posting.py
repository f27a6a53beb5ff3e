"""The comment on a GitHub that keeps state: one, found again, merged, repaired, and never older than it was."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from api_server import JOB_LOGIN, JOB_TOKEN, LONGEST, OWNER, PERSON_TOKEN, ApiServer

from oloproof_ci.github.client import GitHub
from oloproof_ci.github.errors import ApiError
from oloproof_ci.github.fitting import MAX_BYTES, Draft
from oloproof_ci.github.marked import Mark, Section, read_sections, write
from oloproof_ci.github.posting import Posted, Posting

HEAD, OLD_HEAD = "a" * 40, "b" * 40
COMMENTS = r"/issues/\d+/comments$"
COMMENT = r"/issues/comments/\d+$"


@dataclass
class Conversation:
    """One pull request, and what stands in it."""

    server: ApiServer
    repository: str
    number: int
    slept: list[float]

    def post(
        self,
        *drafts: Draft,
        head: str = HEAD,
        author: str | None = JOB_LOGIN,
        token: str = JOB_TOKEN,
        url: str | None = None,
    ) -> Posted:
        github = GitHub(token, url or self.server.url, self.repository, backoff=0.01)
        return Posting(github, self.number, head, author, self.slept.append).post(drafts)

    def bodies(self, author: str = JOB_LOGIN) -> list[str]:
        comments = self.server.comments(self.repository, self.number)
        return [comment["body"] for comment in comments if comment["user"]["login"] == author]

    def sections(self) -> dict[tuple[str, str], str]:
        """The texts of the one comment, by suite and leg."""
        (body,) = self.bodies()
        return {section.mark.key: section.text for section in read_sections(body)}

    def stands(self, *sections: Section, token: str = JOB_TOKEN) -> int:
        """A comment that stands already; its id."""
        return self.server.add_comment(self.repository, self.number, write(sections), token)


@pytest.fixture
def conversation(server: ApiServer) -> Conversation:
    repository, number = server.make_pull_request(HEAD)
    return Conversation(server, repository, number, [])


def draft(text: str, *, suite: str = "oloproof.yaml", leg: str = "", head: str = HEAD, run: int = 1) -> Draft:
    return Draft(Mark(suite, leg, head, run, 1), lambda _: text)


def section(text: str, **mark: object) -> Section:
    made = draft(text, **mark)  # type: ignore[arg-type]
    return Section(made.mark, text)


def test_an_update_edits_the_comment_in_five_calls(conversation: Conversation, server: ApiServer) -> None:
    github = GitHub(JOB_TOKEN, server.url, conversation.repository)
    author = github.set_status(HEAD, "failure", "oloproof/gate", "BLOCK", "https://example.invalid/job")
    assert author == JOB_LOGIN, "the status tells whose token this is"
    first = conversation.post(draft("first"), author=author)
    server.exchanges.clear()
    github.set_status(HEAD, "success", "oloproof/gate", "ALLOW", "https://example.invalid/job")
    second = conversation.post(draft("second", run=2), author=author)
    assert [call.split()[0] for call in server.calls()] == ["POST", "GET", "GET", "PATCH", "GET"]
    assert (first.outcome, second.outcome, first.url) == ("written", "written", second.url)
    assert conversation.sections() == {("oloproof.yaml", ""): "second"}


def test_the_comment_is_found_behind_more_than_one_page_of_others(conversation: Conversation) -> None:
    for number in range(105):
        conversation.server.add_comment(conversation.repository, conversation.number, f"talk {number}")
    conversation.post(draft("first"))
    conversation.post(draft("second", run=2))
    assert conversation.sections() == {("oloproof.yaml", ""): "second"}


def test_a_mark_in_the_comment_of_another_author_is_neither_believed_nor_edited(
    conversation: Conversation,
) -> None:
    forged = section("forged", run=99)
    conversation.stands(forged, token=PERSON_TOKEN)
    assert conversation.post(draft("ours")).outcome == "written"
    assert conversation.bodies(OWNER) == [write([forged])]
    assert conversation.sections() == {("oloproof.yaml", ""): "ours"}


def test_our_own_comment_without_a_mark_is_left_alone(conversation: Conversation) -> None:
    conversation.server.add_comment(
        conversation.repository, conversation.number, "from another tool", JOB_TOKEN
    )
    conversation.post(draft("ours"))
    assert len(conversation.bodies()) == 2
    assert conversation.bodies()[0] == "from another tool"


def test_duplicates_are_merged_into_the_oldest_and_removed(conversation: Conversation) -> None:
    kept = conversation.stands(section("old", run=1))
    conversation.stands(section("leg of another job", leg="3.12", run=2))
    conversation.stands(section("outdated", run=1, head=OLD_HEAD, suite="gone.yaml"))
    posted = conversation.post(draft("new", run=2))
    assert posted.outcome == "written"
    assert posted.url.endswith(f"-{kept}")
    assert conversation.sections() == {
        ("oloproof.yaml", ""): "new",
        ("oloproof.yaml", "3.12"): "leg of another job",
    }


def test_several_suites_and_legs_stand_in_one_comment_in_an_order_of_their_own(
    conversation: Conversation,
) -> None:
    conversation.post(draft("b", suite="b.yaml"), draft("a", suite="a.yaml"))
    conversation.post(draft("a on 3.12", suite="a.yaml", leg="3.12"))
    assert list(conversation.sections()) == [("a.yaml", ""), ("a.yaml", "3.12"), ("b.yaml", "")]


def test_sections_of_an_earlier_head_go_when_a_newer_one_is_written(conversation: Conversation) -> None:
    conversation.stands(section("old", head=OLD_HEAD), section("old leg", leg="3.12", head=OLD_HEAD))
    conversation.post(draft("new", run=2))
    assert conversation.sections() == {("oloproof.yaml", ""): "new"}


def test_an_older_run_does_not_overwrite_a_newer_one(conversation: Conversation) -> None:
    conversation.stands(section("newer", run=7))
    assert conversation.post(draft("older", run=6)).outcome == "superseded"
    assert conversation.sections() == {("oloproof.yaml", ""): "newer"}


def test_of_several_suites_only_those_are_written_that_no_newer_run_wrote(conversation: Conversation) -> None:
    conversation.stands(section("newer", run=7))
    posted = conversation.post(draft("older", run=6), draft("other suite", suite="z.yaml", run=6))
    assert posted.outcome == "written"
    assert conversation.sections() == {("oloproof.yaml", ""): "newer", ("z.yaml", ""): "other suite"}


def test_a_later_step_of_the_same_job_replaces_its_own_section(conversation: Conversation) -> None:
    conversation.post(draft("step 1"))
    conversation.post(draft("step 2"))
    assert conversation.sections() == {("oloproof.yaml", ""): "step 2"}


def test_nothing_is_written_for_a_head_that_the_pull_request_no_longer_has(
    conversation: Conversation,
) -> None:
    assert conversation.post(draft("old", head=OLD_HEAD), head=OLD_HEAD).outcome == "moved"
    assert conversation.bodies() == []


def test_a_comment_that_a_person_edited_in_the_browser_is_still_read(conversation: Conversation) -> None:
    body = write([section("kept", leg="3.12")]).replace("\n", "\r\n")
    conversation.server.add_comment(conversation.repository, conversation.number, body, JOB_TOKEN)
    conversation.post(draft("ours"))
    assert set(conversation.sections()) == {("oloproof.yaml", ""), ("oloproof.yaml", "3.12")}


# --------------------------------------------------------------------------------------- size


def test_large_sections_of_other_suites_are_shortened_before_anything_is_lost(
    conversation: Conversation,
) -> None:
    long = "## heading\n\nwhy\n\n" + "| row |\n" * 3000
    conversation.stands(*(section(long, suite=f"{name}.yaml") for name in "abc"))
    rooms: list[int] = []

    def render(limit: int) -> str:
        rooms.append(limit)
        return "## ours\n\n" + "x" * (limit - 20)

    conversation.post(Draft(draft("").mark, render))
    (body,) = conversation.bodies()
    assert len(body.encode()) <= MAX_BYTES < 65_536
    assert rooms[0] >= 7_000
    texts = conversation.sections()
    assert len(texts) == 4
    assert all(text.startswith("## ") for text in texts.values())


def test_a_section_that_does_not_keep_to_its_room_is_shortened(conversation: Conversation) -> None:
    conversation.post(draft("## ours\n\nwhy\n\n" + "ä" * 70_000))
    assert conversation.sections()[("oloproof.yaml", "")].startswith("## ours\n\nwhy\n\n<sub>Shortened")


def gated(n: int, state: str, leg: str = "") -> Draft:
    """A suite with everything that a comment can have, in as much room as there is."""
    icon = {"ALLOW": "✅", "WARN": "⚠️", "BLOCK": "⛔"}[state]
    decisions = "|   | Rule | Asks |\n|:-:|---|---|\n" + "| ⛔ | `none-new` | at most 0 new failures |\n" * 3
    start = f"## {icon} Oloproof · suite {n} · {state}\n\n**why {n}** " + "so " * 60 + f"\n\n{decisions}\n\n"
    mark = draft("", suite=f"s{n:03}/oloproof.yaml", leg=leg).mark
    return Draft(mark, lambda limit: start + "x" * max(0, limit - len(start.encode())))


def test_of_very_many_suites_each_has_its_heading(conversation: Conversation) -> None:
    assert conversation.post(*(gated(n, "ALLOW") for n in range(120))).outcome == "written"
    (body,) = conversation.bodies()
    assert len(body.encode()) <= MAX_BYTES
    headings = [section.text.partition("\n")[0] for section in read_sections(body)]
    assert headings == [f"## ✅ Oloproof · suite {n} · ALLOW" for n in range(120)]


@pytest.mark.parametrize(("suites", "blocked"), [(60, 3), (200, 30), (400, 5), (700, 700), (2000, 20)])
def test_what_blocks_is_shown_before_what_does_not_and_the_rest_is_counted(
    conversation: Conversation, suites: int, blocked: int
) -> None:
    def state(n: int) -> str:
        return "BLOCK" if n % (suites // blocked) == 0 and n // (suites // blocked) < blocked else "ALLOW"

    drafts = [gated(n, state(n)) for n in range(suites)]
    conversation.post(*drafts)
    (body,) = conversation.bodies()
    assert len(body) < LONGEST
    whole = {section.mark.suite: section.text for section in read_sections(body) if not section.mark.folded}
    folded = [section for section in read_sections(body) if section.mark.folded]
    told = sum(text.startswith("## ⛔") for text in whole.values())
    assert told + sum(section.text == "BLOCK" for section in folded) == (blocked if suites < 1000 else told)
    if blocked <= 30:
        shown = [text for text in whole.values() if text.startswith("## ⛔")]
        assert len(shown) == blocked
        assert all("**why " in text and "| `none-new` |" in text for text in shown)
    if folded:
        assert f"**And {len(folded)} more**, for which there is no room here: " in body
        assert f"{len(folded)} {'BLOCK' if blocked == suites else 'ALLOW'}" in body


def test_sections_that_were_folded_are_replaced_and_kept_like_others(conversation: Conversation) -> None:
    legs = [gated(n, "ALLOW") for n in range(400)]
    assert conversation.post(*legs).outcome == "written"
    mended = gated(7, "BLOCK")
    newer = Draft(replace(mended.mark, run=2), mended.render)
    assert conversation.post(newer, gated(1, "WARN", leg="3.13")).outcome == "written"
    (body,) = conversation.bodies()
    sections = read_sections(body)
    assert len({section.mark.name for section in sections}) == len(sections) == 401
    assert [s.mark.run for s in sections if s.mark.name == newer.mark.name] == [2]
    assert "## ⛔ Oloproof · suite 7 · BLOCK\n\n**why 7**" in body
    assert conversation.post(*legs).outcome == "written"  # what is older than what stands there is left out
    (body,) = conversation.bodies()
    assert [s.mark.run for s in read_sections(body) if s.mark.name == newer.mark.name] == [2]


def test_a_section_that_blocks_takes_the_room_that_others_do_not_need(conversation: Conversation) -> None:
    calm = [draft(f"## ✅ suite {n}", suite=f"s{n}/oloproof.yaml") for n in range(19)]
    conversation.post(*calm, gated(99, "BLOCK"))
    assert len(conversation.sections()["s099/oloproof.yaml", ""].encode()) > 55_000


# --------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 502, "message": "Server Error"},
        {"status": 502, "message": "Server Error", "written": True},
        {"drop": True},
        {"drop": True, "written": True},
        {"status": 429, "message": "API rate limit exceeded", "headers": {"Retry-After": "3"}},
        {
            "status": 403,
            "message": "You have exceeded a secondary rate limit",
            "headers": {"Retry-After": "3"},
        },
    ],
    ids=["502", "502 after the write", "dropped", "dropped after the write", "429", "secondary rate limit"],
)
def test_a_failed_post_leaves_exactly_one_comment(
    conversation: Conversation, fault: dict[str, object]
) -> None:
    conversation.server.fail("POST", COMMENTS, **fault)
    assert conversation.post(draft("ours")).outcome == "written"
    assert conversation.sections() == {("oloproof.yaml", ""): "ours"}
    if "headers" in fault:
        assert 3.0 in conversation.slept, "GitHub said how long to wait"


def test_a_post_that_is_answered_too_late_leaves_one_comment(conversation: Conversation) -> None:
    conversation.server.fail("POST", COMMENTS, delay=1.8)
    github = GitHub(JOB_TOKEN, conversation.server.url, conversation.repository, backoff=0.01, timeout=1)
    posting = Posting(github, conversation.number, HEAD, JOB_LOGIN, time.sleep)
    assert posting.post([draft("ours")]).outcome == "written"
    assert conversation.sections() == {("oloproof.yaml", ""): "ours"}
    posts = [call for call in conversation.server.calls() if call.startswith("POST")]
    assert len(posts) == 1, "it was looked for before it was repeated"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"status": 403, "message": "Resource not accessible by integration"}, "forbidden"),
        ({"status": 403, "message": "Unable to create comment because issue is locked."}, "locked"),
        ({"status": 404, "message": "Not Found"}, "gone"),
        ({"status": 410, "message": "This issue was deleted"}, "gone"),
        ({"status": 401, "message": "Bad credentials"}, "unauthorized"),
        ({"status": 422, "message": "Validation Failed"}, "invalid"),
        ({"status": 429, "message": "API rate limit exceeded"}, "rate_limit"),
        ({"status": 403, "message": "x", "headers": {"X-RateLimit-Remaining": "0"}}, "rate_limit"),
        ({"status": 403, "message": "slow down", "headers": {"Retry-After": "3600"}}, "rate_limit"),
        ({"status": 200, "body": "<html>sign in</html>"}, "unexpected"),
        ({"status": 502, "message": "Server Error"}, "unreachable"),
    ],
)
def test_a_refused_post_is_told_for_what_it_is(
    conversation: Conversation, fault: dict[str, object], kind: str
) -> None:
    conversation.server.fail("POST", COMMENTS, times=10, **fault)
    with pytest.raises(ApiError) as raised:
        conversation.post(draft("ours"))
    assert raised.value.kind == kind
    assert conversation.bodies() == []


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 502, "message": "Server Error", "times": 2},
        {"status": 503, "message": "Unavailable", "times": 1},
        {"drop": True, "times": 1},
        {"drop": True, "written": True, "times": 1},
        {"status": 429, "message": "API rate limit exceeded", "headers": {"Retry-After": "1"}},
        {"status": 404, "message": "Not Found"},
    ],
)
def test_an_edit_that_fails_at_first_is_made_in_the_end(
    conversation: Conversation, fault: dict[str, object]
) -> None:
    conversation.post(draft("first"))
    conversation.server.fail("PATCH", COMMENT, **fault)
    assert conversation.post(draft("second", run=2)).outcome == "written"
    assert conversation.sections() == {("oloproof.yaml", ""): "second"}


def test_a_server_that_stays_out_of_order_is_an_error_of_one_kind(conversation: Conversation) -> None:
    conversation.server.fail("GET", COMMENTS, status=502, message="Server Error", times=20)
    with pytest.raises(ApiError) as raised:
        conversation.post(draft("ours"))
    assert raised.value.kind == "unreachable"


def test_a_comment_that_is_deleted_meanwhile_is_posted_anew(conversation: Conversation) -> None:
    comment = conversation.stands(section("first"))
    path = f"/repos/{conversation.repository}/issues/comments/{comment}"

    def render(_: int) -> str:
        if conversation.bodies():  # between reading and writing
            conversation.server.ask("DELETE", path, token=JOB_TOKEN)
        return "second"

    posted = conversation.post(Draft(draft("", run=2).mark, render))
    assert posted.outcome == "written"
    assert conversation.sections() == {("oloproof.yaml", ""): "second"}


def test_what_fails_after_the_write_does_not_make_it_unwritten(conversation: Conversation) -> None:
    conversation.post(draft("first"))
    conversation.server.fail("GET", COMMENT, status=403, message="Resource not accessible", times=5)
    posted = conversation.post(draft("second", run=2))
    assert (posted.outcome, bool(posted.url)) == ("unchecked", True)
    assert conversation.sections() == {("oloproof.yaml", ""): "second"}


# --------------------------------------------------------------------------------- whose token it is


def test_without_a_status_the_job_token_is_known_by_what_it_may_not_ask(conversation: Conversation) -> None:
    forbidden = {"status": 403, "message": "Resource not accessible by integration"}
    conversation.server.fail("GET", r"^/user$", times=2, **forbidden)
    conversation.post(draft("first"), author=None)
    conversation.post(draft("second", run=2), author=None)
    assert conversation.sections() == {("oloproof.yaml", ""): "second"}


def test_a_personal_token_finds_its_own_comment(conversation: Conversation) -> None:
    for run in (1, 2):
        conversation.post(draft(f"run {run}", run=run), author=None, token=PERSON_TOKEN)
    assert len(conversation.bodies(OWNER)) == 1
    assert "run 2" in conversation.bodies(OWNER)[0]


def test_an_app_of_another_name_finds_its_own_comment_too(conversation: Conversation) -> None:
    """GitHub does not let an app's token ask who it is; the answer to the first post tells."""
    for run in (1, 2):
        conversation.server.fail(
            "GET", r"^/user$", status=403, message="Resource not accessible by integration"
        )
        conversation.post(draft(f"run {run}", run=run), author=None, token=PERSON_TOKEN)
    assert len(conversation.bodies(OWNER)) == 1
    assert "run 2" in conversation.bodies(OWNER)[0]


def test_an_enterprise_server_is_asked_below_its_own_prefix(conversation: Conversation) -> None:
    for number in range(105):
        conversation.server.add_comment(conversation.repository, conversation.number, f"talk {number}")
    enterprise = f"{conversation.server.url}/api/v3"
    for run in (1, 2):
        conversation.post(draft(f"run {run}", run=run), url=enterprise)
    assert conversation.sections() == {("oloproof.yaml", ""): "run 2"}


# ------------------------------------------------------------------------------- several at once


@pytest.fixture
def at_once(conversation: Conversation) -> Callable[..., list[str]]:
    """Run one process for each (run, leg), begun together; gives what came of each."""

    def run(*jobs: tuple[int, str]) -> list[str]:
        place = [conversation.server.url, conversation.repository, str(conversation.number), HEAD]
        script = Path(__file__).with_name("poster.py")
        started = [
            subprocess.Popen(
                [sys.executable, script, *place, str(number), leg],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number, leg in jobs
        ]
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        outputs: dict[int, str] = {}

        def finish(at: int) -> None:
            outputs[at] = started[at].communicate("go\n", timeout=60)[0].strip()

        threads = [threading.Thread(target=finish, args=(at,)) for at in range(len(started))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [process.returncode for process in started] == [0] * len(started)
        return [outputs[at] for at in range(len(started))]

    return run


@pytest.mark.parametrize("late", [1, 2])
def test_two_jobs_that_post_at_once_leave_one_comment_with_the_newer_result(
    conversation: Conversation, at_once: Callable[..., list[str]], late: int
) -> None:
    conversation.server.fail("GET", COMMENTS, delay=0.3, times=2)
    conversation.server.fail("POST", COMMENTS, delay=0.7, holding=f"Run {late} of")
    assert "written" in at_once((1, ""), (2, ""))
    assert conversation.sections() == {("oloproof.yaml", ""): "## Run 2 of one"}


def test_an_older_job_whose_write_lands_late_does_not_win(
    conversation: Conversation, at_once: Callable[..., list[str]]
) -> None:
    conversation.stands(section("before"))
    conversation.server.fail("GET", COMMENTS, delay=0.3, times=2)
    conversation.server.fail("PATCH", COMMENT, delay=0.7, holding="Run 2 of")
    at_once((2, ""), (3, ""))
    assert conversation.sections() == {("oloproof.yaml", ""): "## Run 3 of one"}


@pytest.mark.parametrize("stands", [False, True])
def test_legs_of_a_matrix_that_write_at_once_lose_no_section(
    conversation: Conversation, at_once: Callable[..., list[str]], stands: bool
) -> None:
    """One of them has read before the others wrote, and writes after they did."""
    if stands:
        conversation.stands(section("of an earlier head", head=OLD_HEAD))
    conversation.server.fail("GET", COMMENTS, delay=0.3, times=3)
    conversation.server.fail("PATCH", COMMENT, delay=0.7, holding="Run 5 of a")
    at_once((5, "a"), (5, "b"), (5, "c"))
    assert conversation.sections() == {
        ("oloproof.yaml", leg): f"## Run 5 of {leg}" for leg in ("a", "b", "c")
    }


@pytest.mark.parametrize(
    ("method", "stands"),
    [("GET", True), ("GET", False), ("POST", False)],
    ids=["reads late what stands", "reads late", "writes late"],
)
def test_a_head_that_moves_while_an_older_job_is_at_work_keeps_the_newer_ones_comment_alone(
    conversation: Conversation, method: str, stands: bool
) -> None:
    server, number = conversation.server, conversation.number
    server.heads[conversation.repository, number] = OLD_HEAD
    if stands:
        conversation.stands(section("before", head="c" * 40))
    server.fail(method, COMMENTS, delay=0.6)
    outcomes: list[str] = []

    def older() -> None:
        outcomes.append(conversation.post(draft("older", head=OLD_HEAD, run=2), head=OLD_HEAD).outcome)

    at_work = threading.Thread(target=older)
    at_work.start()
    while server.faults[0].times:
        time.sleep(0.01)
    server.heads[conversation.repository, number] = HEAD
    if stands:
        (comment,) = server.comments(conversation.repository, number)
        path = f"/repos/{conversation.repository}/issues/comments/{comment['id']}"
        server.ask("PATCH", path, {"body": write([section("newer", run=3)])}, JOB_TOKEN)
    else:
        conversation.stands(section("newer", run=3))
    at_work.join()
    assert outcomes == ["moved"]
    assert conversation.sections() == {("oloproof.yaml", ""): "newer"}


# ------------------------------------------------------------------------------ the tests themselves


def test_what_is_not_as_github_describes_it_would_be_noticed(server: ApiServer) -> None:
    repository, number = server.make_pull_request(HEAD)
    client = GitHub(JOB_TOKEN, server.url, repository)
    client._repository._requester.requestJson(
        "POST", f"/repos/{repository}/issues/{number}/comments", input={}
    )
    client._repository._requester.requestJson("GET", f"/repos/{repository}/branches")
    assert [text.split(":")[0] for text in server.violations] == [
        f"POST /repos/{repository}/issues/{number}/comments",
        f"GET /repos/{repository}/branches",
        f"GET /repos/{repository}/branches -> 200",
    ]
    server.violations.clear()
