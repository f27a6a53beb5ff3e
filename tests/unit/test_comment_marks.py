"""The hidden marks of the comment: read as written, and never ended by what they hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oloproof_ci.github.errors import api_error, explained
from oloproof_ci.github.fitting import shortened
from oloproof_ci.github.marked import Mark, Section, is_marked, merge, read_sections, size, write
from oloproof_ci.markdown import code, prose

HEAD = "a" * 40
HOSTILE = ["-->", "<!-- /oloproof -->", "--!>", '"}', "ünicode\n", "<!-- oloproof:1 {} -->", "\u2028", "a--b"]


def section(text: str = "text", **changes: object) -> Section:
    usual = {"suite": "oloproof.yaml", "leg": "", "head": HEAD, "run": 1, "attempt": 1}
    return Section(Mark(**{**usual, **changes}), text)  # type: ignore[arg-type]


@given(st.text() | st.sampled_from(HOSTILE), st.text() | st.sampled_from(HOSTILE))
def test_whatever_a_suite_or_leg_is_called_its_section_is_read_back(suite: str, leg: str) -> None:
    sections = [section(suite=suite, leg=leg), section("more", suite="z")]
    body = write(sections)
    assert read_sections(body) == sections
    assert body.count("-->") == 4
    assert is_marked(body)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_report_can_hold_a_mark(text: str) -> None:
    for escaped in (code(text), prose(text)):
        body = write([section(f"before {escaped} after")])
        assert [found.mark for found in read_sections(body)] == [section().mark]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "hello",
        "<!-- oloproof:1 -->",
        "<!-- oloproof:1 {} -->\nx\n<!-- /oloproof -->",
        '<!-- oloproof:1 {"suite": 1, "leg": "", "head": "a", "run": 1, "attempt": 1} -->\nx\n<!-- /oloproof -->',
        '<!-- oloproof:1 {"suite": "", "leg": "", "head": "a", "run": true, "attempt": 1} -->\nx',
        '<!-- oloproof:2 {"suite": "s"} -->\nx\n<!-- /oloproof -->',
        "<!-- oloproof:1 [[[[ -->\nx",
        pytest.param('<!-- oloproof:1 {"suite": ' + "[" * 100_000 + "} -->\nx", id="too deep to be read"),
    ],
)
def test_what_is_no_section_is_left_out(body: str) -> None:
    assert read_sections(body) == []


@given(
    st.lists(
        st.tuples(st.text(min_size=1), st.sampled_from(["ALLOW", "WARN", "BLOCK"]), st.integers(0, 10**12))
    )
)
def test_sections_that_are_only_counted_are_read_back(entries: list[tuple[str, str, int]]) -> None:
    whole = section("text")
    folded = [Section(Mark("", "", HEAD, run, 1, name), gate) for name, gate, run in entries]
    body = write([whole, *folded])
    assert read_sections(body) == [whole, *folded]
    assert body.count("-->") == (4 if folded else 2)


@pytest.mark.parametrize(
    "said",
    [
        '{"head": 1, "folded": []}',
        '{"head": "a", "folded": {}}',
        '{"head": "a", "folded": [["name", 1, 1, "NO GATE"], ["", 1, 1, "WARN"], ["n", true, 1, "WARN"], [1], 2]}',
        '{"head": "a", "folded": [["n", 1, 1, "WARN"]], "more": 1}',
    ],
)
def test_what_counts_no_section_is_left_out(said: str) -> None:
    assert read_sections(f"<!-- oloproof:1 {said} -->\nx\n<!-- /oloproof -->") == []


def test_a_comment_of_another_version_is_still_ours() -> None:
    assert is_marked("<!-- oloproof:2 whatever -->")
    assert not is_marked("text first <!-- oloproof:1 {} -->")


def test_of_each_suite_and_leg_the_newest_stays_and_of_the_head_alone() -> None:
    merged = merge(
        [section("old"), section("leg", leg="b"), section("gone", suite="x", head="b" * 40)],
        [section("new", attempt=2), section("older leg", leg="b", run=0)],
        HEAD,
    )
    assert [found.text for found in merged] == ["new", "leg"]


def test_a_shortened_section_keeps_its_heading_and_why() -> None:
    long = section("## heading\n\nwhy\n\n" + "| row |\n" * 1000)
    short = shortened(long)
    assert short.text.startswith("## heading\n\nwhy\n\n")
    assert size(short) < 600 < size(long)


# ------------------------------------------------------------------------------------- what went wrong


@pytest.mark.parametrize(
    ("status", "message", "headers", "fork", "said"),
    [
        (403, "Resource not accessible by integration", {}, True, "a read-only token"),
        (403, "Resource not accessible by integration", {}, False, "Add `statuses: write`"),
        (403, "API rate limit exceeded for installation ID 1.", {}, True, "rate limit"),
        (
            403,
            "You have exceeded a secondary rate limit",
            {"Retry-After": "60"},
            False,
            "rate limit holds for 60 s",
        ),
        (403, "Forbidden", {"X-RateLimit-Remaining": "0"}, True, "rate limit"),
        (403, "Forbidden", {"x-ratelimit-remaining": "12"}, True, "a read-only token"),
        (429, "", {}, False, "rate limit"),
        (404, "Not Found", {}, False, "gone, or the token cannot see it"),
        (422, "No commit found for SHA: x", {}, False, "does not take it (No commit found for SHA: x)"),
        (500, "", {}, False, "did not answer as it should (HTTP 500)"),
    ],
)
def test_a_refusal_of_the_status_is_told_for_what_it_is(
    status: int, message: str, headers: dict[str, str], fork: bool, said: str
) -> None:
    error = api_error(status, {"message": message} if message else "<html>", headers)
    assert said in explained(error, "status", from_fork=fork)


@pytest.mark.parametrize(
    ("status", "headers", "pause"),
    [
        (429, {"Retry-After": "3"}, 3.0),
        (429, {"Retry-After": "3600"}, None),
        (429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        (403, {}, None),
        (422, {}, None),
        (502, {}, 0.5),
    ],
)
def test_what_is_worth_asking_again_and_when(
    status: int, headers: dict[str, str], pause: float | None
) -> None:
    assert api_error(status, {"message": "no"}, headers).pause(0.5) == pause
