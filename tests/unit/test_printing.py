"""The pages that hold what calls print while they share a worker."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oloproof.worker.printing import LOG_HEAD, LOG_TAIL, PAGE_SIZE, Page, left_out, printed_on

#: Sizes of prints, from nothing to more than a page holds, with the edges made likely.
sizes = st.one_of(
    st.integers(0, 40),
    st.sampled_from([LOG_HEAD - 1, LOG_HEAD, LOG_HEAD + 1, LOG_TAIL - 1, LOG_TAIL, LOG_TAIL + 1]),
    st.integers(0, 3 * (LOG_HEAD + LOG_TAIL)),
)


def shortened(text: str) -> str:
    """What is to be shown of an ASCII text."""
    if len(text) <= LOG_HEAD + LOG_TAIL:
        return text
    return text[:LOG_HEAD] + left_out(len(text) - LOG_HEAD - LOG_TAIL) + text[-LOG_TAIL:]


@given(st.lists(st.lists(sizes, max_size=8), min_size=1, max_size=3))
def test_a_page_shows_the_two_ends_of_all_that_was_printed(calls: list[list[int]]) -> None:
    page = Page(memoryview(bytearray(PAGE_SIZE)))
    for number, prints in enumerate(calls):
        page.turn(number)
        whole = ""
        for size in prints:
            text = "".join(chr(ord("a") + (len(whole) + n) % 23) for n in range(size))
            page.write(text)
            whole += text
        assert page.text == shortened(whole)


def test_a_page_holds_any_text() -> None:
    page = Page(memoryview(bytearray(PAGE_SIZE)))
    page.turn(1)
    page.write("é€\U0001f6d1\0\ud800")
    assert page.text == "é€\U0001f6d1\0\\ud800"
    page.write("é" * LOG_HEAD)
    assert page.text.startswith("é€\U0001f6d1")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_engine_reads_the_page_of_a_call_from_the_file(number: int) -> None:
    with tempfile.TemporaryFile(buffering=0) as file:
        for each in (1, 2):
            memory = bytearray(PAGE_SIZE)
            page = Page(memoryview(memory))
            page.turn(each)
            page.write(f"by call {each}" + "." * 20_000)
            os.write(file.fileno(), memory)
        text = printed_on(file.fileno(), number)
        assert text.startswith(f"by call {number}...") if number < 3 else text == ""
