"""The runner's files and commands: what is written there says what was meant, whatever it holds."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from oloproof.errors import UnfinishedError
from oloproof_ci.action.runner import Runner


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def runner(tmp_path: Path, log: io.StringIO) -> Runner:
    files = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    return Runner(files, log)


def outputs(text: str) -> dict[str, str]:
    """The outputs that the runner reads from a file, by its own rules."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, _, delimiter = line.partition("<<")
        values = []
        for value in lines:
            if value == delimiter:
                break
            values.append(value)
        found[name] = "\n".join(values)
    return found


@pytest.mark.parametrize(
    "value",
    ["", "BLOCK", "two\nlines", "x\nEOF\ninjected=1", "ghadelimiter_\nreason<<x\ny\nx", "ünicode: 50%"],
)
def test_an_output_is_read_back_as_it_was_and_sets_no_other(
    runner: Runner, tmp_path: Path, value: str
) -> None:
    runner.set_outputs({"gate": value, "last": "end"})
    assert outputs((tmp_path / "output").read_text(encoding="utf-8")) == {"gate": value, "last": "end"}


def test_outputs_of_several_calls_add_up_and_half_characters_are_no_error(
    runner: Runner, tmp_path: Path
) -> None:
    runner.set_outputs({"a": "1"})
    runner.set_outputs({"b": "\ud800"})
    assert outputs((tmp_path / "output").read_text(encoding="utf-8")) == {"a": "1", "b": "\\ud800"}


def test_a_runner_without_files_is_left_alone(log: io.StringIO) -> None:
    runner = Runner({}, log)
    runner.set_outputs({"a": "1"})
    runner.add_summary("text")
    assert log.getvalue() == ""


def test_a_file_that_cannot_be_written_is_an_error_that_names_it(log: io.StringIO, tmp_path: Path) -> None:
    with pytest.raises(UnfinishedError, match="no such folder/output"):
        Runner({"GITHUB_OUTPUT": str(tmp_path / "no such folder" / "output")}, log).set_outputs({"a": "1"})


def test_a_command_ends_where_it_was_meant_to(runner: Runner, log: io.StringIO) -> None:
    runner.annotate("warning", "50%\n::error::x\r", title="a,b:c", file="data/ä,b.jsonl", line=3)
    assert log.getvalue() == (
        "::warning file=data/ä%2Cb.jsonl,line=3,title=a%2Cb%3Ac::50%25%0A::error::x%0D\n"
    )


def test_an_annotation_without_a_place_names_none(runner: Runner, log: io.StringIO) -> None:
    runner.annotate("error", "wrong")
    assert log.getvalue() == "::error::wrong\n"


def test_beyond_ten_of_a_kind_annotations_are_only_printed(runner: Runner, log: io.StringIO) -> None:
    for number in range(12):
        runner.annotate("warning", f"case {number}\n::error::x")
    runner.annotate("error", "another kind")
    lines = log.getvalue().splitlines()
    assert [line.startswith("::warning") for line in lines] == [True] * 10 + [False] * 3
    assert lines[10:] == [
        "warning: case 10\\n::error::x",
        "warning: case 11\\n::error::x",
        "::error::another kind",
    ]


def test_nothing_that_user_code_prints_is_a_command(runner: Runner, log: io.StringIO) -> None:
    with runner.foreign_output():
        print("::error::not ours", file=log)
    first, *_, last = log.getvalue().splitlines()
    token = first.removeprefix("::stop-commands::")
    assert last == f"::{token}::"
    assert len(token) == 32, "nobody guesses it"


def test_commands_are_read_again_also_after_an_error(runner: Runner, log: io.StringIO) -> None:
    with pytest.raises(ValueError, match="stop"), runner.foreign_output():
        raise ValueError("stop")
    assert len(log.getvalue().splitlines()) == 2


def test_a_line_of_ours_is_never_a_command(runner: Runner, log: io.StringIO) -> None:
    runner.say("suite: ok\n  ::error::x\n::error::y\n\x1b[2J ##[error]z\n")
    assert log.getvalue() == "suite: ok\n  : :error::x\n: :error::y\n\\x1b[2J # #[error]z\n"


def test_each_line_of_a_secret_is_hidden(runner: Runner, log: io.StringIO) -> None:
    runner.mask("line one\n\nline two")
    assert log.getvalue() == "::add-mask::line one\n::add-mask::line two\n"
