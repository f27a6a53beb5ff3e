"""The comment's escaper, shown on GitHub's own parser and on what GitHub's filters look for afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser

import cmarkgfm
import comrak
import pytest
from cmarkgfm.cmark import Options
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oloproof_ci.markdown import ZWSP, alert, code, details, fenced, prose, shortened, table, visible

# ----------------------------------------------------------------------------------------- rendering


def render(markdown: str) -> str:
    """HTML as GitHub's options make it. Raw HTML is left in, so that nothing hides what got through."""
    extensions = comrak.ExtensionOptions()
    for name in ("strikethrough", "table", "autolink", "tasklist", "footnotes", "alerts"):
        setattr(extensions, name, True)
    for name in ("shortcodes", "math_dollars", "math_code"):  # GitHub does these in filters of its own
        setattr(extensions, name, True)
    options = comrak.RenderOptions()
    options.unsafe_ = options.gfm_quirks = options.github_pre_lang = True
    return comrak.render_markdown(markdown, extension_options=extensions, render_options=options)


def render_with_cmark(markdown: str) -> str:
    """The same by cmark-gfm, the parser that GitHub runs."""
    flags = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_GITHUB_PRE_LANG | Options.CMARK_OPT_FOOTNOTES
    extensions = ["strikethrough", "table", "autolink", "tasklist"]
    html: str = cmarkgfm.markdown_to_html_with_extensions(markdown, options=flags, extensions=extensions)
    return html


PARSERS = [render, render_with_cmark]


@dataclass
class Node:
    """A text of a rendered page, with the names of the elements it stands in."""

    inside: tuple[str, ...]
    text: str


@dataclass
class Page(HTMLParser):
    """Rendered HTML: which elements there are, and the text nodes."""

    html: str
    elements: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str | None]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []
        self.feed(self.html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in ("br", "hr", "img", "input"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.nodes.append(Node(tuple(self._open), data))

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def text(self, element: str | None = None) -> str:
        return "".join(n.text for n in self.nodes if element is None or element in n.inside)

    def count(self, element: str) -> int:
        return self.elements.count(element)


#: What GitHub's filters turn into links, notifications, pictures and formulas, in text outside code.
FILTERS = {
    "mention": r"@[\w-]",
    "reference": r"#\d",
    "gh reference": r"(?i)gh-\d",
    "path reference": r"/(?:issues|pull|discussions|commit)/\w",
    "commit": r"(?i)[0-9a-f]{7,}",
    "emoji": r":[\w+-]+:",
    "address": r"(?i)://|www\.",
    "formula": r".\$|\$.",
}


def assert_inert(page: Page, allowed: set[str]) -> None:
    """No element beyond the allowed ones, and nothing that a filter would find."""
    assert set(page.elements) <= allowed
    assert page.comments == []
    for node in page.nodes:
        if not {"code", "pre"} & set(node.inside):
            for name, pattern in FILTERS.items():
                assert not re.search(pattern, node.text, re.DOTALL), f"{name} in {node.text!r}"


# ------------------------------------------------------------------------------------- hostile text

HOSTILE = [
    "a | b || c \\| d \\\\| e",
    "two\nlines\r\nthree\u2028four\n\n## five",
    "`code` ``more`` ``` fence",
    "<b>bold</b> <script>alert(1)</script> <img src=x onerror=alert(1)> </td></tr></table>",
    "</code></details></sub><h1>",
    "<!-- oloproof:support-rag --> <!--",
    "[link](https://evil.example) ![image](https://evil.example/x.png) [ref][1] [^1] [x]: y <https://evil.example>",
    "https://evil.example http://evil.example ftp://evil.example www.evil.example WWW.evil.example a@evil.example",
    "mailto:a@evil.example xmpp:a@evil.example https://github.com/owner/repo/issues/1",
    "@user @org/team @-x owner@abcdef1 x@y",
    "#1 #123 GH-12 gh-1 owner/repo#1 owner/repo@0123456789abcdef0123456789abcdef01234567 owner/repo/issues/7",
    "0123456789abcdef0123456789abcdef01234567 abcdef1 x0123456 aabcdef12",
    "*em* **strong** _em_ __strong__ ~~gone~~ ~x~ ***",
    "# heading",
    "===",
    "---",
    "- item",
    "+ item",
    "* item",
    "1. item",
    "12) item",
    "- [ ] task",
    "[ ] task",
    "> quote",
    "> [!WARNING]",
    "[!CAUTION]",
    ":tada: :+1: ::a::b:: :100:",
    "$x$ $$y$$ $`z`$ cost $5 and $6 `$HOME` and `a$`",
    "&#64;user &lt;b&gt; &amp; &nbsp; &copy",
    "\u202eevil\u202c \u2066x\u2069 zero\u200bwidth \ufeff \xad soft \x00 \x1b[31m \x7f \x9b",
    "\ud800 lone \udfff",
    "\U000e0041\U000e0042 tag \u3164 filler",
    "   leading and trailing   ",
    "\ttab\tab",
    "",
    " ",
    "  ",
    "`",
    "``",
    " ` ",
    "\\",
    "\\`",
    "|",
    "\\|",
    "| --- | --- |",
    "~~~",
    "{{ x }} {% y %} %0A::error::x",
    "e\u0301 \U0001f469\u200d\U0001f4bb \U0001f1e9\U0001f1ea مرحبا",
    "x" * 500,
]

hostile = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=20)), max_size=4).map(
    "".join
) | st.text(alphabet=st.sampled_from("a1@#:$`|\\<>!-&;[](){}*_~=+.\n \t/w\u200b\u0301"), max_size=30)


def folded(text: str) -> str:
    return visible(" ".join(text.split()))


def unbroken(text: str) -> str:
    return text.replace(ZWSP, "")


WRAPPERS = {
    "a line": "{}",
    "a sentence": "word {} word",
    "bold": "**{}** word",
    "a heading": "## {} · word",
    "a list": "- {}",
    "an alert": "> [!WARNING]\n> {}",
    "a later line": "word<br>\n{}",
    "small print": "<sub>word · {} · word</sub>",
}
AROUND = {"p", "h2", "ul", "li", "div", "blockquote", "br", "sub", "strong"}


# --------------------------------------------------------------------------------------------- prose


@pytest.mark.parametrize("place", WRAPPERS)
@pytest.mark.parametrize("parser", PARSERS)
def test_prose_shows_hostile_text_as_it_was_typed(parser: Callable[[str], str], place: str) -> None:
    for text in HOSTILE:
        page = Page(parser(WRAPPERS[place].replace("{}", prose(text))))
        assert_inert(page, AROUND | {"span"})
        assert folded(text) in unbroken(page.text())


@given(hostile, st.sampled_from(sorted(WRAPPERS)))
def test_prose_is_inert_anywhere(text: str, place: str) -> None:
    page = Page(render(WRAPPERS[place].replace("{}", prose(text))))
    assert_inert(page, AROUND | {"span"})
    assert folded(text) in unbroken(page.text())


def test_prose_leaves_plain_words_alone() -> None:
    assert (
        prose("The free trial lasts 21 days, and needs no card.")
        == "The free trial lasts 21 days, and needs no card."
    )


def test_prose_shows_what_cannot_be_seen() -> None:
    assert prose("a\u202eb") == "a&#92;u202eb"
    assert prose("a\ufeff") == "a&#92;ufeff"


@given(hostile, hostile)
def test_two_proses_beside_each_other_make_nothing_together(left: str, right: str) -> None:
    assert_inert(Page(render(f"{prose(left)} {prose(right)}")), {"p", "span"})
    assert_inert(Page(render(f"{prose(left)} {code(right)} {prose(left)}")), {"p", "span", "code"})


# ---------------------------------------------------------------------------------------------- code


@pytest.mark.parametrize("place", WRAPPERS)
@pytest.mark.parametrize("parser", PARSERS)
def test_code_shows_hostile_text_to_the_letter(parser: Callable[[str], str], place: str) -> None:
    for text in HOSTILE:
        page = Page(parser(WRAPPERS[place].replace("{}", code(text))))
        assert_inert(page, AROUND | {"code"})
        assert unbroken(page.text("code")) == (visible(text) or " ")


@given(hostile, st.sampled_from(sorted(WRAPPERS)))
@example("``", "bold")
def test_code_is_inert_anywhere(text: str, place: str) -> None:
    page = Page(render(WRAPPERS[place].replace("{}", code(text))))
    assert_inert(page, AROUND | {"code"})
    assert unbroken(page.text("code")) == (visible(text) or " ")


@given(hostile)
def test_a_hidden_marker_cannot_be_forged(text: str) -> None:
    """Not even in code: bots look for their marker in the text of a comment, not in what it renders to."""
    for made in (code(text), prose(text), fenced(text, 10, 100)):
        assert "<!--" not in made
    assert "<!--" not in code("<!-- oloproof -->")


# -------------------------------------------------------------------------------------------- tables


@given(st.lists(st.tuples(hostile, hostile), min_size=1, max_size=4), hostile)
def test_a_table_keeps_its_rows_and_columns(rows: list[tuple[str, str]], name: str) -> None:
    cells = [[prose(a), code(a), prose(b), code(b)] for a, b in rows]
    text = table([("n", "right"), (code(name), "left"), (prose(name), "left"), ("x", "center")], cells)
    assert_table(Page(render(text)), rows)


@settings(max_examples=25)
@given(st.lists(st.tuples(hostile, hostile), min_size=1, max_size=20))
def test_githubs_own_parser_agrees_on_tables(rows: list[tuple[str, str]]) -> None:
    cells = [[prose(a), code(a), prose(b), code(b)] for a, b in rows]
    text = table([("a", "right"), ("b", "left"), ("c", "left"), ("d", "center")], cells)
    for parser in PARSERS:
        assert_table(Page(parser(text)), rows)


def assert_table(page: Page, rows: list[tuple[str, str]]) -> None:
    assert_inert(page, {"table", "thead", "tbody", "tr", "th", "td", "code", "span"})
    assert page.count("tr") == len(rows) + 1
    assert page.count("td") == 4 * len(rows)
    assert page.count("th") == 4
    expected = "".join((visible(a) or " ") + (visible(b) or " ") for a, b in rows)
    body = "".join(n.text for n in page.nodes if "code" in n.inside and "td" in n.inside)
    assert unbroken(body) == expected


def test_left_columns_are_not_padded() -> None:
    text = table([("a", "left"), ("n", "right")], [["x" * 100, "1"], ["y", "22"]])
    assert text.splitlines()[-1] == "| y | 22 |"


# ------------------------------------------------------------------------------------- blocks


@given(hostile)
@example("```\n</pre>\n```\n# out")
@example("````text\n~~~")
def test_a_fence_cannot_be_left(text: str) -> None:
    page = Page(render(f"before\n\n{fenced(text, 1000, 10_000)}\n\nafter"))
    assert page.elements == ["p", "pre", "code", "p"]
    lines = [visible(line.expandtabs(4)) for line in text.splitlines()]
    assert unbroken(page.text("pre")) == "\n".join(lines) + "\n"


def test_a_fence_shows_the_last_lines_and_cuts_long_ones() -> None:
    text = fenced("\n".join(f"line {n}" for n in range(50)) + "\n" + "x" * 500, 3, 20)
    assert text.splitlines() == ["```text", "…", "line 48", "line 49", "x" * 19 + "…", "```"]


@given(st.lists(hostile, min_size=1, max_size=3))
def test_an_alert_holds_its_sentences(texts: list[str]) -> None:
    page = Page(render(alert("WARNING", [prose(text) for text in texts]) + "\n\nafter"))
    assert_inert(page, {"div", "p", "ul", "li", "span"})
    assert ("class", "markdown-alert markdown-alert-warning") in page.attributes
    assert page.count("li") == (len(texts) if len(texts) > 1 else 0)


def test_markdown_is_read_inside_details() -> None:
    page = Page(render(details("3 more", table([("a", "left")], [[code("x")]]))))
    assert page.count("td") == page.count("code") == page.count("summary") == 1


# ----------------------------------------------------------------------------------------- shortening


@given(hostile, st.integers(5, 60))
def test_shortened_text_is_one_short_line(text: str, limit: int) -> None:
    short = shortened(text, limit)
    assert len(short) <= limit
    assert visible(short) == short
    assert len(short.splitlines()) <= 1


def test_shortened_text_says_that_there_is_more() -> None:
    assert shortened("one line", 20) == "one line"
    assert shortened("\n\n one line \n\n", 20) == "one line"
    assert shortened("one line\nand another", 20) == "one line…"
    assert shortened("a line that is too long", 10) == "a line th…"


@pytest.mark.parametrize(
    ("cluster", "what"),
    [
        ("e\u0301", "accent"),
        ("\U0001f469\u200d\U0001f4bb", "emoji sequence"),
        ("\U0001f44d\U0001f3fd", "skin tone"),
        ("\u2764\ufe0f", "variation"),
        ("\U0001f1e9\U0001f1ea", "flag"),
    ],
)
def test_a_cut_does_not_split_what_is_seen_as_one_character(cluster: str, what: str) -> None:
    for limit in range(4, 4 + len(cluster)):
        short = shortened("abc" + cluster + "xyz" * 10, limit)
        assert short.removesuffix("…") in ("abc", "abc" + cluster)


def test_a_heap_of_accents_is_cut_all_the_same() -> None:
    assert len(shortened("a" + "\u0301" * 1000, 50)) <= 50
