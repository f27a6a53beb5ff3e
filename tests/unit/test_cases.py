"""Case files: every bad line is found and named, and the second pass yields exactly what was checked."""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oloproof.errors import ConfigurationError
from oloproof.evaluators import Contains, ExactMatch, HitRate
from oloproof.records import Case, GoldPassage, Relevant
from oloproof.settings.cases import case_from_json, iter_cases, scan_cases

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write c.jsonl into the current directory."""
    monkeypatch.chdir(tmp_path)

    def write_file(content: str | bytes) -> Path:
        path = Path("c.jsonl")
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def problems_of(path: Path, *args: Any, **kwargs: Any) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        scan_cases(path, *args, **kwargs)
    return list(caught.value.problems)


def read(path: Path) -> list[Case]:
    return list(iter_cases(scan_cases(path)))


FULL = {
    "id": "refund_annual",
    "input": {"question": "Wie läuft die Rückgabe? 🙂"},
    "expected": {
        "answer": "30 days",
        "relevant": [{"doc_id": "kb-01"}, {"doc_id": "kb-01", "chunk_id": "c2", "grade": 2}],
        "gold_context": [{"doc_id": "kb-01", "text": "Within 30 days."}],
    },
    "metadata": {"topic": "refund", "n": [1, 2.5, None, True]},
}


# --------------------------------------------------------------------------------------- what is read


def test_a_case_is_read_with_its_relevance_gold_context_and_line(write: Write) -> None:
    (case,) = read(write("\n" + json.dumps(FULL) + "\n"))
    assert case.to_json() == FULL
    assert case.relevant == (Relevant("kb-01", None, 1.0), Relevant("kb-01", "c2", 2.0))
    assert case.gold_context == (GoldPassage("kb-01", "Within 30 days.", None),)
    assert case.line == 2


def test_id_and_input_are_enough(write: Write) -> None:
    (case,) = read(write('{"id": "a", "input": ""}'))
    assert case == Case("a", "", {}, {}, None, None, line=1)


def test_no_labels_declared_differs_from_an_empty_list(write: Write) -> None:
    (case,) = read(write('{"id": "a", "input": 0, "expected": {"relevant": []}}'))
    assert case.relevant == ()


def test_a_stored_case_comes_back_the_same(write: Write) -> None:
    (case,) = read(write(json.dumps(FULL)))
    assert case_from_json(json.loads(json.dumps(case.to_json())), case.line) == case


def test_the_facts_are_the_number_of_cases_and_the_digest_of_the_bytes(write: Write) -> None:
    path = write('\ufeff{"id": "a", "input": 1}\r\n\r\n{"id": "b", "input": 2}\r\n')
    facts = scan_cases(path)
    assert facts.cases == 2
    assert facts.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "content",
    [
        '\ufeff{"id": "a", "input": 1}\n',
        '{"id": "a", "input": 1}\r\n',
        '\n \t\n{"id": "a", "input": 1}\n\n',
        '{"id": "a", "input": 1}',
        '\ufeff\n  {"id": "a", "input": 1}  \n',
    ],
)
def test_byte_order_mark_crlf_blank_lines_and_a_missing_last_newline_are_fine(
    write: Write, content: str
) -> None:
    assert [(case.id, case.input) for case in read(write(content))] == [("a", 1)]


def test_unicode_line_separators_do_not_end_a_line(write: Write) -> None:
    (case,) = read(write('{"id": "a", "input": "x\u2028y\x85z\\n"}\n'))
    assert case.input == "x\u2028y\x85z\n"


def test_an_escaped_pair_of_surrogates_is_one_character(write: Write) -> None:
    (case,) = read(write(r'{"id": "a", "input": "\ud83d\ude42 \\ud800"}'))
    assert case.input == "🙂 \\ud800"


# ------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"id": "a", "input": 1,}', "not valid JSON at column 2"),
        ('{"id": "a" "input": 1}', "not valid JSON at column 12: expected a comma"),
        ('{"id": "a', "not valid JSON at column 8: this text has no closing quote"),
        ("{'id': 1}", "not valid JSON at column 2: expected a key in double quotes"),
        ('{"id": "a", "input": 1} {}', "not valid JSON at column 25: expected the end of the line"),
        ('{"id": "a", "input": "\\x"}', "not valid JSON at column 23: a backslash in text; write it twice"),
        ('{"id": "a", "input": "\t"}', "not valid JSON at column 23: a control character in text"),
        ("[", "not valid JSON: one whole object is expected on each line"),
        ("{", "not valid JSON: one whole object is expected on each line"),
        ("[1]", "expected a JSON object with id and input, found an array"),
        ('"text"', 'expected a JSON object with id and input, found the text "text"'),
        ("null", "expected a JSON object with id and input, found null"),
        ('{"id": "a", "input": 1, "input": 2}', 'the key "input" stands twice in one object'),
        ('{"id": "a", "input": {"b": [{"c": 1, "c": 1}]}}', 'the key "c" stands twice in one object'),
        ('{"id": "a", "input": NaN}', "NaN is not a JSON number"),
        ('{"id": "a", "input": [-Infinity]}', "-Infinity is not a JSON number"),
        ('{"id": "a", "input": 1e999}', "1e999 is too large for a number"),
        ('{"id": "a", "input": -1e999}', "-1e999 is too large for a number"),
        ('{"id": "a", "input": ' + "9" * 5000 + "}", "holds a whole number with too many digits"),
        ('{"id": "a", "input": "\\ud800"}', "\\ud800 is half of a character (a lone surrogate)"),
        ('{"id": "a", "input": {"\\uDC00": 1}}', "\\udc00 is half of a character (a lone surrogate)"),
        ('{"id": "a", "input": ' + "[" * 101 + "]" * 101 + "}", "nested more than 100 levels deep"),
        ("[" * 100_000, "nested more than 100 levels deep"),
        ('{"input": 1}', "no id; every case needs one of its own"),
        ('{"id": 7, "input": 1}', 'the id 7 is a number; quote it: "7"'),
        ('{"id": "", "input": 1}', "the id is empty"),
        ('{"id": " ", "input": 1}', "the id is empty"),
        ('{"id": null, "input": 1}', "the id must be text, found null"),
        ('{"id": true, "input": 1}', "the id must be text, found true"),
        ('{"id": "a"}', "no input"),
        ('{"id": "a", "input": null}', "input is null"),
        ('{"id": "a", "input": 1, "meta": {}}', 'unknown key "meta"; did you mean metadata?'),
        ('{"id": "a", "input": 1, "zzz": {}}', 'unknown key "zzz"; known are expected, id, input, metadata'),
        ('{"id": "a", "input": 1, "metadata": []}', "metadata: expected an object, found an array"),
        ('{"id": "a", "input": 1, "expected": "x"}', 'expected: expected an object, found the text "x"'),
        ('{"id": "a", "input": 1, "expected": null}', "expected: expected an object, found null"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(write: Write, line: str, problem: str) -> None:
    (found,) = problems_of(write('{"id": "ok", "input": 1}\n' + line + "\n"))
    assert found.startswith(f"c.jsonl:2: {problem}")


def test_what_is_not_utf8_names_byte_and_column(write: Write) -> None:
    assert problems_of(write('{"id": "ä", "input": "'.encode() + b'caf\xe9"}\n')) == [
        "c.jsonl:1: byte 0xe9 at column 26 is not UTF-8; save the file as UTF-8"
    ]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("5", "expected an object with a doc_id, found the number 5"),
        ("{}", "no doc_id"),
        ('{"doc_id": 7}', 'doc_id 7 is a number; quote it: "7"'),
        ('{"doc_id": ""}', "the doc_id is empty"),
        ('{"doc_id": null}', "doc_id: expected text, found null"),
        ('{"doc_id": "d", "chunk_id": 3}', 'chunk_id 3 is a number; quote it: "3"'),
        ('{"doc_id": "d", "chunk_id": ""}', "the chunk_id is empty"),
        ('{"doc_id": "d", "grade": -1}', "grade must be a number from 0 to 1e300, found -1"),
        ('{"doc_id": "d", "grade": "2"}', 'grade: expected a number, found the text "2"'),
        ('{"doc_id": "d", "grade": true}', "grade: expected a number, found true"),
        ('{"doc_id": "d", "grade": null}', "grade: expected a number, found null"),
        (
            '{"doc_id": "d", "grade": 1' + "0" * 400 + "}",
            "grade must be a number from 0 to 1e300, found 1000",
        ),
        ('{"doc_id": "d", "grad": 1}', 'unknown key "grad"; did you mean grade?'),
        ('{"doc_id": "ok"}', "ok stands in the list already"),
    ],
)
def test_a_malformed_relevant_entry_is_named_by_its_index(write: Write, entry: str, problem: str) -> None:
    line = '{"id": "a", "input": 1, "expected": {"relevant": [{"doc_id": "ok"}, ' + entry + "]}}"
    (found,) = problems_of(write(line))
    assert found.startswith(f"c.jsonl:1: expected.relevant[1]: {problem}")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('"x"', 'expected an object with a doc_id, found the text "x"'),
        ('{"text": "t"}', "no doc_id"),
        ('{"doc_id": 1, "text": "t"}', 'doc_id 1 is a number; quote it: "1"'),
        ('{"doc_id": "d"}', "no text"),
        ('{"doc_id": "d", "text": " \\n"}', "the text is empty"),
        ('{"doc_id": "d", "text": 5}', "text: expected text, found the number 5"),
        ('{"doc_id": "d", "text": "t", "chunkid": "c"}', 'unknown key "chunkid"; did you mean chunk_id?'),
    ],
)
def test_a_malformed_gold_passage_is_named_by_its_index(write: Write, entry: str, problem: str) -> None:
    line = '{"id": "a", "input": 1, "expected": {"gold_context": [' + entry + "]}}"
    (found,) = problems_of(write(line))
    assert found.startswith(f"c.jsonl:1: expected.gold_context[0]: {problem}")


@pytest.mark.parametrize("key", ["relevant", "gold_context"])
@pytest.mark.parametrize(("value", "named"), [("{}", "an object"), ("null", "null"), ('"d"', 'the text "d"')])
def test_relevant_and_gold_context_must_be_lists(write: Write, key: str, value: str, named: str) -> None:
    line = f'{{"id": "a", "input": 1, "expected": {{"{key}": {value}}}}}'
    assert problems_of(write(line)) == [f"c.jsonl:1: expected.{key}: expected a list, found {named}"]


def test_an_empty_gold_context_is_refused(write: Write) -> None:
    (problem,) = problems_of(write('{"id": "a", "input": 1, "expected": {"gold_context": []}}'))
    assert problem == "c.jsonl:1: expected.gold_context is empty; list a passage, or leave the key out"


def test_chunks_of_one_document_are_different_units_but_a_chunk_twice_is_not(write: Write) -> None:
    def line(*chunks: str) -> str:
        relevant = [{"doc_id": "d", "chunk_id": chunk} for chunk in chunks]
        return json.dumps({"id": "a", "input": 1, "expected": {"relevant": relevant}})

    assert scan_cases(write(line("1", "2"))).cases == 1
    assert problems_of(write(line("1", "2", "1"))) == [
        "c.jsonl:1: expected.relevant[2]: d#1 stands in the list already"
    ]


def test_relevance_by_chunk_needs_chunk_ids(write: Write) -> None:
    path = write('{"id": "a", "input": 1, "expected": {"relevant": [{"doc_id": "d"}]}}')
    assert scan_cases(path, [HitRate(k=1, relevance_unit="document")], "document").cases == 1
    problem = "c.jsonl:1: expected.relevant[0]: no chunk_id, which relevance_unit: chunk needs"
    assert problems_of(path, [], "chunk") == [problem]
    assert problems_of(path, [HitRate(k=1, relevance_unit="chunk")], "document") == [problem]


def test_a_duplicate_id_names_both_lines(write: Write) -> None:
    line = '{"id": "a", "input": 1}\n'
    assert problems_of(write(line + "\n" + line + line)) == [
        'c.jsonl:3: the id "a" stands on line 1 already',
        'c.jsonl:4: the id "a" stands on line 1 already',
    ]


def test_what_an_evaluator_cannot_judge_is_a_problem_of_the_case(write: Write) -> None:
    answers = [
        Contains(criterion="a", field="answer", expected_field="answer"),
        Contains(criterion="b", field="other", expected_field="answer"),
        ExactMatch(criterion="c", field="answer", expected_field="answer"),
    ]
    assert problems_of(write('{"id": "a", "input": 1, "expected": {"answer": null}}\n'), answers) == [
        "c.jsonl:1: expected.answer is null; contains needs a non-empty string",
        "c.jsonl:1: expected.answer is null; exact_match needs a string",
    ]


def test_all_problems_of_a_line_are_reported_together(write: Write) -> None:
    assert problems_of(write('{"id": 1, "inptu": 2, "metadata": 3}')) == [
        'c.jsonl:1: unknown key "inptu"; did you mean input?',
        'c.jsonl:1: the id 1 is a number; quote it: "1"',
        "c.jsonl:1: no input",
        "c.jsonl:1: metadata: expected an object, found the number 3",
    ]


def test_problems_of_all_lines_come_in_one_go_up_to_twenty(write: Write) -> None:
    problems = problems_of(write("x\n" * 23))
    assert len(problems) == 21
    assert problems[19].startswith("c.jsonl:20: ")
    assert problems[20] == "and 3 more problems"


@pytest.mark.parametrize("content", ["", "\n\r\n  \n", "\ufeff", "\ufeff\n"])
def test_a_file_without_cases_is_refused(write: Write, content: str) -> None:
    assert problems_of(write(content)) == ["c.jsonl: holds no cases; write one JSON object a line"]


def test_a_file_that_cannot_be_read_is_a_configuration_error(tmp_path: Path) -> None:
    assert problems_of(Path("no/such.jsonl")) == [
        "no/such.jsonl: no such case file; write it, or name another in the configuration's `dataset`"
    ]
    assert problems_of(tmp_path) == [f"{tmp_path}: is a directory, not a case file"]
    assert "cannot be read" in problems_of(Path("a\0b"))[0]
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in problems_of(tmp_path / "pipe")[0]


def test_messages_name_the_file_as_asked(write: Write) -> None:
    assert problems_of(write("x"), shown="suite/c.jsonl")[0].startswith("suite/c.jsonl:1: ")


def test_a_message_never_carries_control_characters_or_surrogates(write: Write) -> None:
    content = r'{"\ud800\u001b[31m": 1, "\ud800\u001b[31m": 2}' + "\n"
    content += r'{"id": "a", "input": 1, "\u001b[31m": 1}' + "\n"
    content += '{"id": "a\\nb", "input": 1}\n' * 2
    problems = problems_of(write(content))
    assert len(problems) == 3
    assert all(problem.isprintable() for problem in problems)


# --------------------------------------------------------------------------------------- the second pass


@pytest.mark.parametrize("after", ['{"id": "b", "input": 1}\n', '{"id": "a", "input": 1}\n\n', "", "x"])
def test_a_file_that_changed_after_the_check_is_refused(write: Write, after: str) -> None:
    facts = scan_cases(write('{"id": "a", "input": 1}\n'))
    write(after)
    with pytest.raises(ConfigurationError, match=r"c\.jsonl: changed while it was being used"):
        list(iter_cases(facts))


@pytest.mark.parametrize(
    "after", ['{"id": "a", "input": 2}\n', '{"id": "a", "inptu": 1}\n', "x" * 24, "5" * 24]
)
def test_a_change_that_keeps_size_and_time_is_found_by_the_digest(write: Write, after: str) -> None:
    path = write('{"id": "a", "input": 1}\n')
    facts = scan_cases(path)
    write(after)
    os.utime(path, ns=(facts.mtime_ns, facts.mtime_ns))
    assert path.stat().st_size == facts.size
    with pytest.raises(ConfigurationError, match="changed while it was being used"):
        list(iter_cases(facts))


def test_a_file_that_went_away_is_a_configuration_error(write: Write) -> None:
    path = write('{"id": "a", "input": 1}\n')
    facts = scan_cases(path)
    path.unlink()
    with pytest.raises(ConfigurationError, match="no such case file"):
        list(iter_cases(facts))


def test_memory_does_not_grow_with_the_size_of_the_cases(write: Write) -> None:
    path = write("".join(f'{{"id": "{n}", "input": "{"x" * 5000}"}}\n' for n in range(2000)))
    tracemalloc.start()
    count = sum(1 for _ in iter_cases(scan_cases(path)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 2000
    assert peak < 2_000_000 < path.stat().st_size


# ------------------------------------------------------------------------------------------------ fuzz

_text = st.text(max_size=8)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)
_entry = st.fixed_dictionaries(
    {}, optional={"doc_id": _text | _json, "chunk_id": _text | _json, "grade": _json, "text": _text | _json}
)
_case = st.fixed_dictionaries(
    {},
    optional={
        "id": _text | _json,
        "input": _json,
        "metadata": _json,
        "expected": _json
        | st.fixed_dictionaries(
            {},
            optional={
                "answer": _json,
                "relevant": st.lists(_entry | _json),
                "gold_context": st.lists(_entry),
            },
        ),
    },
)
_line = st.one_of(
    _case.map(lambda case: json.dumps(case).encode()),
    _case.map(lambda case: json.dumps(case, ensure_ascii=False).encode("utf-8", "surrogatepass")),
    st.binary(max_size=40),
    st.text('{}[]":,\\u0ntidrue \r\n\ufeff1e9', max_size=40).map(str.encode),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(_line, max_size=5), st.sampled_from(["document", "chunk"]))
def test_no_content_brings_out_anything_but_cases_or_a_configuration_error(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], unit: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.jsonl"
    path.write_bytes(b"\n".join(lines))
    evaluators = [Contains(criterion="a", field="answer", expected_field="answer")]
    problems: list[str] = []
    try:
        facts = scan_cases(path, evaluators, unit)
        cases = list(iter_cases(facts))
        assert len({case.id for case in cases}) == len(cases) == facts.cases
        for case in cases:
            assert case_from_json(json.loads(json.dumps(case.to_json())), case.line) == case
            assert case.input_json.encode()
    except ConfigurationError as error:
        problems.extend(error.problems[:20])
    assert all(problem.startswith(f"{path}:") and problem.isprintable() for problem in problems)
