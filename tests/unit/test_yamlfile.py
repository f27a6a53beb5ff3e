"""Reading YAML: plain data with lines, and one clear sentence for everything that cannot be read."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from oloproof.errors import ConfigurationError
from oloproof.settings import yamlfile
from oloproof.settings.validation import validate
from oloproof.settings.yamlfile import LoadedYaml, dotted, load_yaml

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write f.yaml into the current directory."""
    monkeypatch.chdir(tmp_path)

    def write_file(content: str | bytes) -> Path:
        path = Path("f.yaml")
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def problems_of(path: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_yaml(path)
    return list(caught.value.problems)


# ------------------------------------------------------------------------------------- what can be read


def test_data_comes_with_the_line_of_every_key_and_entry(write: Write) -> None:
    loaded = load_yaml(write("a: 1\n\nb:\n  c: text\n  d: [x,\n    y]\n# note\ne:\n  - k: 2\n"))
    assert loaded.data == {"a": 1, "b": {"c": "text", "d": ["x", "y"]}, "e": [{"k": 2}]}
    lines = {dotted(path): line for path, line in loaded.lines.numbers.items()}
    assert lines == {
        "": 1,
        "a": 1,
        "b": 3,
        "b.c": 4,
        "b.d": 5,
        "b.d[0]": 5,
        "b.d[1]": 6,
        "e": 8,
        "e[0]": 9,
        "e[0].k": 9,
    }


def test_a_key_that_is_not_there_has_the_line_of_what_encloses_it(write: Write) -> None:
    lines = load_yaml(write("\n\na:\n  b: {}\n")).lines
    assert lines.where("a", "b", "c", 0) == "f.yaml:4"
    assert lines.where("zzz") == "f.yaml:3"


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfa: 1\n", b"a: 1\r\n", b"---\na: 1\n...\n", b"{a: 1}"])
def test_byte_order_mark_crlf_markers_and_flow_style_are_fine(write: Write, content: bytes) -> None:
    assert load_yaml(write(content)).data == {"a": 1}


def test_scalars_keep_how_they_were_written(write: Write) -> None:
    loaded = load_yaml(write("a: 1.10\nb: no\nc: 2026-09-16\nd: '5'\ne:\n"))
    assert loaded.data == {"a": 1.1, "b": False, "c": datetime.date(2026, 9, 16), "d": "5", "e": None}
    assert loaded.written == {("a",): "1.10", ("b",): "no", ("c",): "2026-09-16", ("e",): ""}


def test_aliases_are_followed(write: Write) -> None:
    assert load_yaml(write("a: &x [1, 2]\nb: *x\n")).data == {"a": [1, 2], "b": [1, 2]}


def test_the_pure_python_loader_reads_the_same(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("a: &x {b: [1, no, 2026-09-16]}\nc: *x\n")
    fast = load_yaml(path)
    monkeypatch.setattr(yamlfile, "_Loader", yaml.SafeLoader)
    assert load_yaml(path) == fast


@pytest.mark.parametrize("content", ["a: [1", "a: b: c", "a: *x", "[" * 5000, 'a: "\\ud800"'])
def test_the_pure_python_loader_fails_as_clearly(
    write: Write, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setattr(yamlfile, "_Loader", yaml.SafeLoader)
    assert problems_of(write(content))[0].startswith("f.yaml:")


# ---------------------------------------------------------------------------------- what cannot be read


def test_a_missing_file_is_named_as_the_user_named_it() -> None:
    assert problems_of(Path("conf/oloproof.yaml")) == ["conf/oloproof.yaml: no such file"]


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    assert problems_of(tmp_path) == [f"{tmp_path}: is a directory, not a file"]


def test_a_path_the_system_refuses_is_a_configuration_error() -> None:
    assert "cannot be read" in problems_of(Path("a\0b"))[0]


def test_a_file_that_never_ends_is_given_up() -> None:
    assert "too large" in problems_of(Path("/dev/zero"))[0]


@pytest.mark.parametrize("content", ["", "\n\n", "# only a note\n", "---\n", "\ufeff"])
def test_an_empty_file_says_so(write: Write, content: str) -> None:
    assert problems_of(write(content)) == ["f.yaml: the file is empty; write at least `version: 1`"]


@pytest.mark.parametrize("content", ["- a\n", "text\n", "5\n"])
def test_the_top_level_must_be_a_mapping(write: Write, content: str) -> None:
    assert problems_of(write(content)) == ["f.yaml:1: expected keys and values such as `version: 1` here"]


def test_what_is_not_utf8_names_byte_and_line(write: Write) -> None:
    assert problems_of(write(b"a: 1\nb: caf\xe9\n")) == [
        "f.yaml:2: byte 0xe9 is not UTF-8; save the file as UTF-8"
    ]


def test_a_control_character_is_named(write: Write) -> None:
    assert problems_of(write("a: 1\nb: x\x07\n")) == ["f.yaml:2: YAML allows no control character U+0007"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "a: [1,\n  2\nb: 3\n",
            "f.yaml:3: not valid YAML: expected ',' or ']' (in the list that opens on line 1)",
        ),
        ('a: "x\n', "f.yaml:1: not valid YAML: the end of the file was not expected here"),
        ("a:\n\t- b\n", "f.yaml:2: not valid YAML: expected spaces, found a tab; indent with spaces"),
        ("a: @x\n", "f.yaml:1: not valid YAML: expected no @ here; quote text that starts with it"),
        ("a: 1\nb: c: d\n", "f.yaml:2: not valid YAML: expected no `:` here; quote text that contains `: `"),
        ("a:\n  b: 1\n c: 2\n", "f.yaml:3: not valid YAML: expected a key; check the indentation"),
        ("a: *x\n", "f.yaml:1: not valid YAML: expected an anchor for this alias"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: not valid YAML: expected one document, found a second one"),
        ("a: &x 1\nb: &x 2\n", "f.yaml:2: not valid YAML: expected an anchor of another name"),
        ('a: "\\ud800"\n', "f.yaml:1: not valid YAML: "),
    ],
)
def test_a_syntax_error_says_the_line_and_what_was_expected(write: Write, content: str, problem: str) -> None:
    assert problems_of(write(content))[0].startswith(problem)


def test_every_duplicate_key_names_both_lines(write: Write) -> None:
    assert problems_of(write("a: 1\nb: {c: 1,\n  c: 2}\na: 3\n")) == [
        "f.yaml:3: b.c: this key stands on line 2 already",
        "f.yaml:4: a: this key stands on line 1 already",
    ]


@pytest.mark.parametrize("key", ["5", "on", "1.5", "2026-09-16", "null"])
def test_a_key_that_yaml_does_not_read_as_text_wants_quotes(write: Write, key: str) -> None:
    assert problems_of(write(f"a:\n  {key}: 1\n")) == [
        f'f.yaml:2: a: the key {key} is not text to YAML; quote it: "{key}"'
    ]


def test_a_list_is_no_key(write: Write) -> None:
    assert problems_of(write("? [a]\n: 1\n")) == ["f.yaml:1: a key must be text, not a list or mapping"]


@pytest.mark.parametrize(
    "content",
    [
        "a: !foo 1",
        "a: !!set {x}",
        "a: !!binary aGk=",
        "a: !!python/object:os.x {}",
        "!foo {a: 1}",
        "!foo x: 1",
    ],
)
def test_tags_are_refused(write: Write, content: str) -> None:
    assert "tags such as !" in problems_of(write(content))[0]


def test_merge_keys_are_refused(write: Write) -> None:
    assert "merge keys (<<) are not supported" in problems_of(write("a: &x {b: 1}\nc: {<<: *x}\n"))[0]


@pytest.mark.parametrize(
    "value", ["2026-13-45", "!!int x", "!!bool x", "!!float x", "!!timestamp x", "9" * 5000]
)
def test_a_scalar_that_only_looks_like_its_kind_wants_quotes(write: Write, value: str) -> None:
    assert "quote it if it is text" in problems_of(write(f"a: {value}\n"))[0]


def test_aliases_that_multiply_are_refused(write: Write) -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    for level in range(1, 12):
        bomb += f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n"
    assert problems_of(write(bomb)) == ["f.yaml: more than 20,000 values once its aliases are followed"]


@pytest.mark.parametrize(
    "content", ["a: &x [*x]", "a: &x {b: *x, c: *x}", "a: " + "[" * 60 + "]" * 60, "[" * 9999]
)
def test_endless_or_absurd_nesting_is_refused(write: Write, content: str) -> None:
    assert "nested more than 50 levels deep" in problems_of(write(content))[0]


def test_many_problems_are_cut_at_twenty(write: Write) -> None:
    problems = problems_of(write("a: 1\n" * 26))
    assert len(problems) == 21
    assert problems[-1] == "and 5 more problems"


def test_a_message_never_carries_control_characters(write: Write) -> None:
    problem = problems_of(write('"a\\e[31m\\nb": 1\n"a\\e[31m\\nb": 2\n'))[0]
    assert problem.isprintable()


@settings(deadline=None, max_examples=150)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.text("abc:- \n[]{}&*!|>'\"?,#%@`\t<=0.\\x~é", max_size=80).map(str.encode),
    )
)
def test_no_content_brings_out_anything_but_a_configuration_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(content)
    keys: list[object] = []
    problems: list[str] = []
    try:
        keys.extend(load_yaml(path).data)
    except ConfigurationError as error:
        problems.extend(error.problems[:20])
    assert all(isinstance(key, str) for key in keys)
    assert all(problem.startswith(str(path)) for problem in problems)


# ------------------------------------------------------------------------------------ against a model


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Circle(_Strict):
    kind: Literal["circle"]
    radius: float = Field(gt=0, le=1)


class _Square(_Strict):
    kind: Literal["square"]
    kind_of_edge: Literal["sharp", "round"] = "sharp"
    edge: int = Field(ge=1)


_Shape = Annotated[_Circle | _Square, Field(discriminator="kind")]


class _Drawing(_Strict):
    title: str = Field(min_length=1, max_length=20)
    code: str = Field("x", pattern="^[a-z]+$")
    visible: bool = True
    shapes: list[_Shape] = Field(min_length=1, max_length=2)
    by_name: dict[str, _Square] = {}
    best: _Shape | None = None
    tags: Annotated[tuple[str, ...], Field(strict=False)] = ()


def complaints(write: Write, content: str) -> list[str]:
    loaded: LoadedYaml = load_yaml(write(content))
    with pytest.raises(ConfigurationError) as caught:
        validate(_Drawing, loaded)
    return list(caught.value.problems)


SHAPES = "shapes: [{kind: circle, radius: 1}]\n"


def test_data_that_fits_makes_the_model(write: Write) -> None:
    drawing = validate(_Drawing, load_yaml(write("title: t\n" + SHAPES)))
    assert drawing.shapes == [_Circle(kind="circle", radius=1)]


def test_an_unknown_key_gets_the_nearest_one(write: Write) -> None:
    assert complaints(write, f"title: t\n{SHAPES}visble: true\n") == [
        "f.yaml:3: visble: unknown key; did you mean visible?"
    ]


def test_an_unknown_key_like_no_other_gets_all_that_are_known_there(write: Write) -> None:
    assert complaints(write, "title: t\nshapes: [{kind: circle, radius: 1, zzz: 2}]\n") == [
        "f.yaml:2: shapes[0].zzz: unknown key; known here are kind, radius"
    ]


def test_a_missing_key_is_reported_on_the_line_of_what_should_hold_it(write: Write) -> None:
    assert complaints(write, "title: t\nshapes:\n  - kind: circle\n    radius: 1\n  - kind: square\n") == [
        "f.yaml:5: shapes[1].edge: missing; this key is required"
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("title: 5", 'title: expected text, found the number 5; quote it: "5"'),
        ("title: 1.10", 'title: expected text, found the number 1.10; quote it: "1.10"'),
        ("title: no", 'title: expected text, found the truth value no; quote it: "no"'),
        ("title: 2026-09-16", 'title: expected text, found the date 2026-09-16; quote it: "2026-09-16"'),
        ("title:", "title: expected text, found nothing; write a value or remove the key"),
        ("title: [a]", "title: expected text, found a list"),
        ("title: {a: 1}", "title: expected text, found a mapping"),
        ('title: ""', "title: must not be empty"),
        (f"title: {'x' * 21}", "title: must not be longer than 20 characters"),
    ],
)
def test_a_wrong_type_says_what_was_expected_and_found(write: Write, line: str, problem: str) -> None:
    assert complaints(write, f"{SHAPES}{line}\n") == [f"f.yaml:2: {problem}"]


def test_text_of_the_wrong_form_says_the_form(write: Write) -> None:
    assert complaints(write, f"title: t\n{SHAPES}code: A\n") == [
        'f.yaml:3: code: expected text that matches ^[a-z]+$, found the text "A"'
    ]


@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ("{kind: circle, radius: 0}", "radius: must be above 0, found 0"),
        ("{kind: circle, radius: 90}", "radius: must be at most 1, found 90; write 90% as 0.9"),
        (
            '{kind: circle, radius: "0.5"}',
            'radius: expected a number, found the text "0.5"; write 0.5 without quotes',
        ),
        ("{kind: circle, radius: 1e-3}", 'radius: expected a number, found the text "1e-3"; write 0.001'),
        ("{kind: circle, radius: .inf}", "radius: expected a finite number, found the number .inf"),
        ("{kind: circle, radius: yes}", "radius: expected a number, found the truth value yes"),
        ("{kind: square, edge: 0}", "edge: must be at least 1, found 0"),
        ("{kind: square, edge: 1.5}", "edge: expected a whole number, found the number 1.5"),
        (
            '{kind: square, edge: "2"}',
            'edge: expected a whole number, found the text "2"; write 2 without quotes',
        ),
        (
            "{kind: square, edge: 1, kind_of_edge: rond}",
            'kind_of_edge: unknown value "rond"; did you mean round?',
        ),
        (
            "{kind: square, edge: 1, kind_of_edge: 1}",
            "kind_of_edge: expected one of 'sharp' or 'round', found",
        ),
        ("{kind: cirle, radius: 1}", 'kind: unknown kind "cirle"; did you mean circle?'),
        ("{kind: 5}", "kind: unknown kind the number 5; known are circle, square"),
        ("{kind: null}", "kind: missing; this key is required, one of circle, square"),
        ("{radius: 1}", "kind: missing; this key is required, one of circle, square"),
    ],
)
def test_problems_inside_a_choice_of_models_name_the_entry(write: Write, shape: str, problem: str) -> None:
    (found,) = complaints(write, f"title: t\nshapes:\n  - {shape}\n")
    assert found.startswith(f"f.yaml:3: shapes[0].{problem}")


def test_an_entry_that_is_no_mapping_is_reported_once(write: Write) -> None:
    assert complaints(write, "title: t\nshapes: [5]\n") == [
        "f.yaml:2: shapes[0]: expected a mapping (keys and values), found the number 5"
    ]


def test_lists_have_their_length_checked(write: Write) -> None:
    assert complaints(write, "title: t\nshapes: []\n") == [
        "f.yaml:2: shapes: needs at least 1 entry, found none"
    ]
    three = ", ".join(["{kind: circle, radius: 1}"] * 3)
    assert complaints(write, f"title: t\nshapes: [{three}]\n") == [
        "f.yaml:2: shapes: has 3 entries, and may have at most 2"
    ]


def test_text_in_the_place_of_a_list_is_shown_as_one(write: Write) -> None:
    assert complaints(write, f"title: t\n{SHAPES}tags: a\n") == [
        'f.yaml:3: tags: expected a list, found the text "a"; write [a]'
    ]


def test_a_truth_value_in_quotes_wants_none(write: Write) -> None:
    assert complaints(write, f'title: t\n{SHAPES}visible: "yes"\n') == [
        'f.yaml:3: visible: expected true or false, found the text "yes"; remove the quotes'
    ]


def test_places_inside_mappings_and_optional_choices_are_found(write: Write) -> None:
    content = f"title: t\n{SHAPES}by_name:\n  a: {{kind: square, edge: 0}}\nbest:\n  kind: square\n  edg: 1\n"
    assert complaints(write, content) == [
        "f.yaml:4: by_name.a.edge: must be at least 1, found 0",
        "f.yaml:5: best.edge: missing; this key is required",
        "f.yaml:7: best.edg: unknown key; did you mean edge?",
    ]


def test_all_problems_come_in_one_go_in_the_order_of_their_lines(write: Write) -> None:
    problems = complaints(write, "".join(f"key{n}: 1\n" for n in range(30)))
    assert len(problems) == 21
    assert problems[0] == "f.yaml:1: title: missing; this key is required"
    assert problems[-1] == "and 12 more problems"


def test_no_message_speaks_of_the_library(write: Write) -> None:
    text = "\n".join(
        complaints(write, "title: 1\ncode: 5\nvisible: 3\nshapes: [{kind: x}, {}, 7]\nbest: 3\n")
    )
    assert not any(
        word in text.lower() for word in ("pydantic", "http", "input should", "valid string", "tag")
    )
