"""Re-execution on recorded retrievals: every label, replays of failed cases, and replays of whole runs."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from projects import Finished, MakeProject, Oloproof, noted
from replayed import APP, CONFIG, EVERY_LABEL, RERANKERS, case, turns

GOLD = ("diagnose", "latest", "--criterion", "correct", "--intervention", "gold-context")
TOP_K = (*GOLD[:-1], "top-k", "--top-k", "3")
RERANK = (*GOLD[:-1], "reranker", "--reranker")

Command = Callable[..., Finished]


@pytest.fixture
def command(quick: Oloproof, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line on a project, with its turns counted."""

    def run(folder: Path, *arguments: str) -> Finished:
        for name, value in turns(folder).items():
            monkeypatch.setenv(name, value)
        return quick(*arguments, cwd=folder)

    return run


@pytest.fixture
def project(make_project: MakeProject, command: Command) -> Callable[..., Path]:
    """A project that has been run once, without the notes of that."""

    def make(
        cases: list[dict[str, Any]], app: str = APP, extra: Mapping[str, str] | None = None, **config: Any
    ) -> Path:
        files = {"rerank.py": RERANKERS, **(extra or {})}
        folder = make_project(app, cases=cases, files=files, **{**CONFIG, **config})
        assert command(folder, "run").returncode == 0
        noted(folder)
        return folder

    return make


def run_of(finished: Finished) -> str:
    """The run that a command for trying an experiment names."""
    found = re.search(r"oloproof what-if (run_\w+)", finished.stdout)
    assert found is not None
    return found[1]


# ---------------------------------------------------------------------------------------- gold context


def test_a_suite_with_every_label_at_once_gets_every_label(
    project: Callable[..., Path], command: Command
) -> None:
    folder = project([each for each, _ in EVERY_LABEL.values()])
    diagnosis = command(folder, *GOLD)
    assert diagnosis.returncode == 0
    assert diagnosis.lines[:9] == [
        "Selected: 9 failed cases with gold context (observed; no population claim)",
        "Control: 1 of 9 passed when re-executed without the intervention",
        "Recovered under gold context: 6 of 9",
        "RETRIEVAL_MISS: 1 of 9, recovered; no relevant evidence was retrieved",
        "RANKED_OUT: 2 of 9, recovered; relevant evidence was ranked below top-k",
        "CONTEXT_ASSEMBLY_LOSS: 1 of 9, recovered; relevant evidence within top-k was left out of the context",
        "CONTEXT_DISTRACTION: 1 of 9, recovered; relevant evidence was in the context beside other passages",
        "GENERATION_FAILURE: 1 of 9, still failed with the gold context",
        "UNSTABLE: 1 of 9, passed when re-executed without the intervention",
    ]
    assert f"Try it on all cases: oloproof what-if {run_of(diagnosis)} --top-k 3" in diagnosis.lines
    inspected = command(folder, *diagnosis.lines[-1].split()[2:]).lines
    found = {
        name: ", ".join(line.split(", ")[:2]) for name, _, line in (x.partition(": ") for x in inspected)
    }
    assert found == {name: said for name, (_, said) in EVERY_LABEL.items()}


def test_gold_run_and_control_make_two_generator_calls_a_failure_and_none_of_the_retriever(
    project: Callable[..., Path], command: Command
) -> None:
    failing = [case(f"missed {n}", ["n1", "n2"]) for n in range(2)]
    folder = project([*failing, case("below", ["n1", "n2", "a"]), case("good", ["a"])])
    assert command(folder, *GOLD).returncode == 0
    assert noted(folder) == {"generate": 6}
    assert command(folder, *GOLD).returncode == 0
    assert noted(folder) == {"generate": 3}  # the control runs each time it is asked for


def test_each_of_two_cases_with_one_input_has_a_repeat_of_its_own(
    project: Callable[..., Path], command: Command
) -> None:
    same = [case(f"same {n}", ["n1", "n2"]) for n in range(2)]
    same[1]["input"] = same[0]["input"]
    folder = project(same)
    for _ in range(2):
        noted(folder)
        assert command(folder, *GOLD).returncode == 0
    assert noted(folder) == {"generate": 2}


def test_a_control_is_repeated_and_the_share_that_passed_is_shown(
    project: Callable[..., Path], command: Command
) -> None:
    folder = project([case("flips", ["a", "n1"], flips="flips"), case("below", ["n1", "n2", "a"])])
    finished = command(folder, *GOLD, "--repeats", "3")
    assert finished.lines[1:3] == [
        "Control: 1 of 2 passed in any of 3 repeats when re-executed without the intervention",
        "Passed when repeated: flips 2 of 3",
    ]
    assert noted(folder) == {"generate": 2 * (1 + 3)}
    line = next(each for each in command(folder, *finished.lines[-1].split()[2:]).lines if "flips" in each)
    assert line.startswith("flips: UNSTABLE, unstable_under_control, strength none")
    assert line.endswith("passed 2 of 3 when repeated")


def test_a_full_control_shows_that_a_retriever_is_unstable(
    project: Callable[..., Path], command: Command
) -> None:
    folder = project(
        [case("wanders", ["n1", "n2", "a", "n3"], wanders=True), case("below", ["n1", "n2", "a"])]
    )
    finished = command(folder, *GOLD, "--control", "full")
    assert finished.lines[1:4] == [
        "Control: 1 of 2 passed when re-executed in full without the intervention",
        "Retrieval: came out differently when repeated in 1 of 2",
        "Unstable retrieval: wanders",
    ]
    calls = noted(folder)
    assert (calls["retrieve"], calls["generate"]) == (2, 4)
    assert command(folder, *GOLD).lines[1].startswith("Control: 0 of 2 passed when re-executed without")


def test_an_unstable_case_is_marked_in_every_later_report(
    project: Callable[..., Path], command: Command
) -> None:
    folder = project([case("flips", ["a", "n1", "n2"], flips="flips"), case("good", ["a"])])
    assert "UNSTABLE: 1 of 1" in command(folder, *GOLD).stdout
    marked = "Unstable when repeated before: flips (differed in 1 of 1 repeat)"
    for arguments in (
        ("run",),
        ("inspect", "latest"),
        ("inspect", "latest", "--failures"),
        ("inspect", "latest", "--case", "flips"),
    ):
        assert marked in command(folder, *arguments).lines, arguments
    assert "Unstable" not in command(folder, "inspect", "latest", "--case", "good").stdout

    (folder / "app.py").write_text(APP.replace('"right" if', '"all right" if'))
    assert command(folder, "run").returncode == 0
    compared = command(folder, "compare", "latest", "latest~1")
    assert "Fixed in correct: flips" in compared.lines
    assert marked in compared.lines
    what_if = command(folder, "what-if", "latest", "--top-k", "3")
    assert "top_k 3 · correct: broken flips" in what_if.lines
    assert marked in what_if.lines


def test_a_case_that_was_edited_since_is_not_taken_for_the_unstable_one(
    project: Callable[..., Path], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project([case("flips", ["a"], flips="flips")])
    assert "UNSTABLE: 1 of 1" in command(folder, *GOLD).stdout
    (folder / "cases.jsonl").write_text(
        (folder / "cases.jsonl").read_text().replace('"flips": "flips"', '"flips": "anew"')
    )
    assert "Unstable" not in command(folder, "run").stdout


# --------------------------------------------------------------------------------- replays of failures

FAILING = ("missed", "below", "dropped", "partly", "trapped", "beyond")


@pytest.fixture
def failures(project: Callable[..., Path]) -> Path:
    return project([*(EVERY_LABEL[name][0] for name in FAILING), case("good", ["a", "n1", "n2"])])


def test_a_replay_carries_the_labels_and_confirms_those_whose_evidence_it_brings(
    failures: Path, command: Command
) -> None:
    gold = command(failures, *GOLD)
    noted(failures)
    replay = command(failures, *TOP_K)
    named = gold.lines[-1].split()[-1]
    assert replay.lines[1:5] == [
        "Control: 0 of 6 passed when re-executed without the intervention",
        "Recovered under top-k 3: 2 of 6",
        "Confirmed under top-k 3: 2 of 2 RANKED_OUT cases also recovered",
        f"Labels from gold context (diagnosis {named}): 5 of 6 recovered",
    ]
    assert replay.lines[5:10] == gold.lines[3:8]
    assert "Implicated" not in replay.stdout
    calls = noted(failures)
    assert "retrieve" not in calls
    assert calls["generate"] == 6 + 2  # the control, and the two contexts that come out different

    listed = command(failures, *replay.lines[-1].split()[2:]).lines
    assert [line.partition(":")[0] for line in listed if "strength replay_confirmed" in line] == [
        "below",
        "partly",
    ]
    assert [line.rpartition(", ")[2] for line in listed] == [
        "passed under top-k 3" if line.startswith(("below", "partly")) else "failed under top-k 3"
        for line in listed
    ]


def test_a_replay_without_an_earlier_diagnosis_makes_one_first(failures: Path, command: Command) -> None:
    replay = command(failures, *TOP_K, "--json").record
    labels = command(failures, "inspect", replay["replay"]["labels_from"], "--json").record
    assert (labels["intervention"], labels["gold_run"]) == ("gold-context", replay["gold_run"])
    again = command(failures, *TOP_K, "--json").record
    assert again["replay"]["labels_from"] == labels["id"]
    assert again["replay"]["control_runs"] != replay["replay"]["control_runs"]


def test_a_larger_budget_confirms_what_the_budget_had_dropped(failures: Path, command: Command) -> None:
    replay = command(failures, *GOLD[:-1], "token-budget", "--token-budget", "7")
    assert replay.lines[2:4] == [
        "Recovered under token-budget 7: 1 of 6",
        "Confirmed under token-budget 7: 1 of 1 CONTEXT_ASSEMBLY_LOSS cases also recovered",
    ]


@pytest.mark.parametrize("name", ["backwards", "awaited"])
def test_a_reranker_brings_up_what_was_ranked_out(failures: Path, command: Command, name: str) -> None:
    record = command(failures, *RERANK, f"rerank:{name}", "--json").record
    strengths = {each["case_id"]: each["strength"] for each in record["cases"]}
    assert strengths["below"] == "replay_confirmed"
    assert record["intervention"] == f"reranker rerank:{name}"
    reranker = record["replay"]["setting"]["reranker"]
    assert reranker["object"] == f"rerank:{name}"
    assert len(reranker["code"]) == 64
    child = command(failures, "inspect", record["replay"]["run"], "--case", "below", "--json").record
    assert [each["doc_id"] for each in child["candidates"]] == ["a", "n2", "n1"]
    assert "retrieve" not in noted(failures)


def test_a_changed_reranker_is_another_and_an_equal_one_is_not_called_again(
    failures: Path, command: Command
) -> None:
    path = failures / "rerank.py"
    path.write_text(
        RERANKERS + "\ndef counts(input, candidates):\n    print('called')\n    return candidates\n"
    )
    codes = []
    for body in ("candidates", "candidates", "candidates[:1]"):
        path.write_text(path.read_text().rpartition("return ")[0] + f"return {body}\n")
        codes.append(
            command(failures, *RERANK, "rerank:counts", "--json").record["replay"]["setting"]["reranker"]
        )
    assert codes[0] == codes[1] != codes[2]


def test_what_a_reranker_gave_counts_while_the_files_it_read_stay(failures: Path, command: Command) -> None:
    path = failures / "rerank.py"
    path.write_text(
        RERANKERS
        + "\nfrom pathlib import Path\n\ndef by_list(input, candidates):\n"
        + "    order = Path(__file__).with_name('order.txt').read_text().split()\n"
        + "    return sorted(candidates, key=lambda p: order.index(p.doc_id) if p.doc_id in order else 9)\n"
    )
    for order, recovered in (("n1", 0), ("a b", 3), ("n1", 0)):
        (failures / "order.txt").write_text(order)
        replay = command(failures, *RERANK, "rerank:by_list")
        assert f"Recovered under reranker rerank:by_list: {recovered} of 6" in replay.lines


def test_several_rerankings_run_at_once_in_one_worker(project: Callable[..., Path], command: Command) -> None:
    cases = [case(f"below {n}", ["n1", "n2", "a"]) for n in range(12)]
    folder = project(cases, execution={"threads": 4, "workers": 2})
    for name in ("backwards", "awaited"):
        replay = command(folder, *RERANK, f"rerank:{name}")
        assert (
            f"Confirmed under reranker rerank:{name}: 12 of 12 RANKED_OUT cases also recovered"
            in replay.lines
        )


def test_a_recovery_without_the_lost_evidence_confirms_nothing(
    project: Callable[..., Path], command: Command
) -> None:
    folder = project([case("below", ["n1", "n2", "helps", "a"], ["helps"], gold=["a", "helps"])])
    replay = command(folder, *TOP_K)
    assert replay.lines[2:5] == [
        "Recovered under top-k 3: 1 of 1",
        "Confirmed under top-k 3: 0 of 1 RANKED_OUT cases also recovered",
        "Not counted as confirmed: 1 recovered without more relevant evidence in the context",
    ]


def test_a_case_that_passes_the_replay_s_control_is_unstable_whatever_its_label_was(
    project: Callable[..., Path], command: Command
) -> None:
    folder = project([case("flips", ["a", "n1"], flips="flips", gold=["a"])])
    assert "UNSTABLE" in command(folder, *GOLD).stdout
    assert "UNSTABLE: 1 of 1" in command(folder, *TOP_K).stdout


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--intervention", "top-k", "--top-k", "5"), "recorded no more than 4 candidates a case, its depth"),
        (
            ("--intervention", "top-k", "--top-k", "2"),
            "is 2, and a replay of its failures needs a larger one",
        ),
        (
            ("--intervention", "top-k", "--top-k", "1"),
            "is 2, and a replay of its failures needs a larger one",
        ),
        (("--intervention", "top-k"), "--intervention top-k needs --top-k N"),
        (("--intervention", "gold-context", "--top-k", "3"), "--top-k goes with --intervention top-k"),
        (
            ("--intervention", "token-budget", "--token-budget", "6"),
            "is 6, and a replay of its failures needs",
        ),
        (
            ("--intervention", "token-budget", "--token-budget", "5"),
            "is 6, and a replay of its failures needs",
        ),
        (("--intervention", "reranker"), "--intervention reranker needs --reranker MODULE:FUNCTION"),
        (
            ("--intervention", "reranker", "--reranker", "best"),
            "expected module:function such as checks:polite",
        ),
        (("--intervention", "top-k", "--top-k", "3", "--control", "full"), "which a replay never calls"),
    ],
)
def test_a_replay_that_could_show_nothing_is_refused_with_a_sentence(
    failures: Path, command: Command, arguments: tuple[str, ...], told: str
) -> None:
    finished = command(failures, *GOLD[:-2], *arguments)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert told in finished.stderr
    assert noted(failures) == {}


def test_a_budget_is_not_raised_where_there_is_none(project: Callable[..., Path], command: Command) -> None:
    folder = project([case("below", ["n1", "n2", "a"])], APP.replace("token_budget=6, ", ""))
    finished = command(folder, *GOLD[:-1], "token-budget", "--token-budget", "9")
    assert finished.returncode == 2
    assert "has no token budget, so nothing was dropped by one" in finished.stderr


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("raises", r"ValueError: no\nmodel"),
        ("adds", "passage 4 of what rerank:adds returned, 'new', is none of those it was given"),
        (
            "duplicates",
            "passage 4 of what rerank:duplicates returned, 'n1', was returned before, as passage 1",
        ),
        ("rewrites", "'n1', has another text than it was given; it may not be altered"),
        ("rewrites_in_place", "'n1', has another text than it was given; it may not be altered"),
        ("rescores", "'n1', has another score than it was given; it may not be altered"),
        ("names", "passage 1 of what rerank:names returned must be a Passage, got an object of type str"),
        ("nothing", "rerank:nothing must return a tuple of the Passages it was given, got None"),
        ("ends", "exit status 3"),
        ("hangs", "within 1 s"),
    ],
)
def test_a_reranker_that_fails_is_an_error_that_names_it_and_the_case(
    project: Callable[..., Path], command: Command, name: str, told: str
) -> None:
    folder = project([case("below", ["n1", "n2", "a"])], execution={"timeout_seconds": 1})
    for arguments in ((*RERANK, f"rerank:{name}"), ("what-if", "latest", "--reranker", f"rerank:{name}")):
        finished = command(folder, *arguments)
        assert (finished.returncode, finished.stdout) == (2, "")
        assert f"the reranker rerank:{name} failed on the case below: " in finished.stderr
        assert told in finished.stderr
        assert len(finished.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rerank:missing", "module rerank has no missing"),
        ("rerank:Passage.__doc__", "rerank:Passage.__doc__ is no function but an object of type str"),
        ("nowhere:best", "nowhere"),
    ],
)
def test_a_reranker_that_is_not_there_is_refused_before_anything_is_called(
    failures: Path, command: Command, name: str, told: str
) -> None:
    for arguments in ((*RERANK, name), ("what-if", "latest", "--reranker", name)):
        finished = command(failures, *arguments)
        assert (finished.returncode, finished.stdout) == (2, "")
        assert f"the reranker {name} cannot be called: " in finished.stderr
        assert told in finished.stderr
    assert noted(failures) == {}


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("app.py", '"right" if', '"Right" if', "the code of generate has changed since run_"),
        ("app.py", "list(input", "sorted(input", "the code of retrieve has changed since run_"),
        ("app.py", "5 if", "6 if", "the code of count_tokens has changed since run_"),
        ("app.py", 'index_version="1"', 'index_version="2"', "with index_version 1, and it is 2 now"),
        ("app.py", "depth=4", "depth=5", "with depth 4, and it is 5 now"),
        ("app.py", 'version="1", depth', 'version="2", depth', "measured replayed 1 (app:Rag)"),
        ("data.txt", "one", "two", "data.txt: changed since run_"),
    ],
)
def test_a_system_that_changed_since_the_run_is_refused_with_the_way_to_run_it_again(
    make_project: MakeProject, command: Command, file: str, old: str, new: str, told: str
) -> None:
    app = APP.replace("        found = list", '        (HERE / "data.txt").read_text()\n        found = list')
    folder = make_project(app, cases=[case("below", ["n1", "n2", "a"])], files={"data.txt": "one"}, **CONFIG)
    assert command(folder, "run").returncode == 0
    path = folder / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    for arguments in (TOP_K, ("what-if", "latest", "--top-k", "3"), (*GOLD, "--control", "full")):
        finished = command(folder, *arguments)
        assert (finished.returncode, finished.stdout) == (2, "")
        assert told in finished.stderr
        assert "`oloproof run`" in finished.stderr


def test_a_gold_context_is_refused_too_when_code_that_it_does_not_call_has_changed(
    project: Callable[..., Path], command: Command
) -> None:
    folder = project([case("below", ["n1", "n2", "a"])])
    for stage, old, new in (("retrieve", "list(input", "sorted(input"), ("count_tokens", "5 if", "6 if")):
        assert old in APP
        (folder / "app.py").write_text(APP.replace(old, new))
        finished = command(folder, *GOLD)
        assert (finished.returncode, finished.stdout) == (2, "")
        assert f"the code of {stage} has changed since run_" in finished.stderr
        assert "`oloproof run`" in finished.stderr


def test_other_variables_or_another_evaluator_are_refused_too(
    project: Callable[..., Path], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL", "small")
    judge = "def right(input, expected, output, context):\n    return output['answer'] == 'right'\n"
    own = {"type": "python", "criterion": "right", "object": "judge:right"}
    folder = project(
        [case("below", ["n1", "n2", "a"])],
        APP + "\nimport judge\n",
        evaluators=[own, *CONFIG["evaluators"]],
        identity={"env": ["MODEL"]},
        extra={"judge.py": judge},
    )
    right = (*TOP_K[:3], "right", *TOP_K[4:])
    what_if = ("what-if", "latest", "--top-k", "3")
    assert command(folder, *right).returncode == 0
    assert command(folder, *what_if).returncode == 0

    (folder / "judge.py").write_text(judge.replace("==", "in ('fine',) or output['answer'] =="))
    for arguments in (right, what_if):
        finished = command(folder, *arguments)
        assert finished.returncode == 2
        assert "the code of judge:right, which judges right, has changed since run_" in finished.stderr
    (folder / "judge.py").write_text(judge)
    monkeypatch.setenv("MODEL", "large")
    for arguments in (right, what_if, GOLD):
        finished = command(folder, *arguments)
        assert finished.returncode == 2
        assert "a variable that identity.env names has changed since run_" in finished.stderr


def test_an_edited_case_file_changes_nothing_and_is_said_to_be_edited(
    failures: Path, command: Command
) -> None:
    before = command(failures, *GOLD).lines
    path = failures / "cases.jsonl"
    path.write_text(path.read_text().replace('"needs": ["a"]', '"needs": ["n1"]'))
    edited, *after = command(failures, *GOLD).lines
    assert edited.startswith("Dataset: cases.jsonl has been edited since; the cases are those that run_")
    assert after[:9] == before[:9]
    assert command(failures, "what-if", "latest", "--top-k", "3").lines[0] == edited
    assert command(failures, *GOLD, "--json").record["dataset_edited"] is True
    path.unlink()
    assert (
        command(failures, *GOLD).lines[0].startswith("Dataset: cases.jsonl cannot be read now; the cases are")
    )


def test_cases_whose_results_were_pruned_are_left_out_and_counted(failures: Path, command: Command) -> None:
    store = sqlite3.connect(failures / ".oloproof" / "store.sqlite3")
    with store:
        store.execute(
            "DELETE FROM execution WHERE id = (SELECT execution FROM run_case WHERE case_id = 'below')"
        )
    store.close()
    gold = command(failures, *GOLD).lines
    assert gold[0].startswith("Selected: 5 failed cases with gold context")
    assert "Left out: 1 failed case whose recorded execution is no longer stored" in gold
    what_if = command(failures, "what-if", "latest", "--top-k", "3").lines
    assert "Not replayed, so missing: 1 case whose retrieval is no longer stored" in what_if
    assert any("1 missing" in line for line in what_if if line.startswith("│ top_k 3"))


# ---------------------------------------------------------------------------------- replays of whole runs


@pytest.fixture
def suite(project: Callable[..., Path]) -> Path:
    """4 cases fail, of which top_k 3 recovers 2; 9 pass, of which it breaks 1."""
    good = [case(f"good {n}", ["a", f"n{n}"]) for n in range(8)]
    trapped = case("trapped", ["a", "n", "t"], traps=["t"])
    below = [case(f"below {n}", ["x", f"n{n}", "a"]) for n in range(2)]
    missed = [case(f"missed {n}", [f"n{n}"]) for n in range(2)]
    return project([*good, trapped, *below, *missed])


def test_what_if_says_what_a_setting_recovers_and_what_it_breaks(suite: Path, command: Command) -> None:
    finished = command(suite, "what-if", "latest", "--top-k", "3")
    assert finished.returncode == 0
    row = next(line for line in finished.lines if "top_k 3" in line)
    *cells, difference = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == ["top_k 3", "3 of 13", "2 of 4", "1 of 9"]
    assert difference.startswith("+7.7 points [")
    assert "top_k 3 · correct: recovered below 0, below 1; broken trapped" in finished.lines
    assert finished.lines[-1] == "What moved here is a hypothesis to test on new cases."
    assert "cause" not in finished.stdout
    calls = noted(suite)
    assert (calls.get("retrieve", 0), calls["generate"]) == (0, 3)


def test_what_if_says_what_a_comparison_with_a_run_under_that_setting_says_and_saves_its_calls(
    suite: Path, command: Command
) -> None:
    what_if = command(suite, "what-if", "latest", "--top-k", "3")
    app = suite / "app.py"
    app.write_text(app.read_text().replace("top_k=2", "top_k=3"))
    noted(suite)
    run = command(suite, "run", "--json").record["run"]
    assert noted(suite) == {}
    assert run["metrics"][0]["total"] == 10
    compared = command(suite, "compare", "latest", "latest~1").lines
    figures = next(line for line in compared if line.startswith("correct: ")).split(" · ")[0]
    assert f"│ {figures.removeprefix('correct: ')} " in what_if.stdout


def test_replays_of_drawn_cases_foretell_what_runs_under_the_settings_come_to(
    project: Callable[..., Path], command: Command
) -> None:
    drawing = random.Random(20260916)
    names = ["a", "b", "big", "n1", "n2", "t"]
    cases = [
        case(
            f"case {n}",
            drawing.sample(names, drawing.choice([0, 3, 4, 4, 4])),
            drawing.sample(["a", "b"], drawing.choice([0, 1, 1, 2])),
            traps=drawing.sample(["t", "n1"], drawing.randint(0, 1)),
        )
        for n in range(80)
    ]
    folder = project(cases)
    tried = command(folder, "what-if", "latest", "--top-k", "1,3,4", "--token-budget", "4,7", "--json").record
    baseline = command(folder, "runs", "--json").record[0]["id"]
    moved = set()
    noted(folder)
    config = json.loads((folder / "oloproof.yaml").read_text())
    for each in tried["settings"]:
        setting = {name: each["setting"][name] for name in ("top_k", "token_budget")}
        config["system"]["rag"] |= setting
        (folder / "oloproof.yaml").write_text(json.dumps(config))
        run = command(folder, "run", "--json").record["run"]
        compared = command(folder, "compare", run["id"], baseline, "--json").record["comparison"]
        assert compared["flips"] == each["flips"], setting
        assert compared["metrics"] == each["metrics"], setting
        moved |= {*each["flips"][0]["fixed"], *each["flips"][0]["new_failures"]}
    assert noted(folder) == {}
    assert len(moved) >= 8


def test_a_grid_prints_a_row_a_setting_and_generates_each_context_once(suite: Path, command: Command) -> None:
    arguments = ("what-if", "latest", "--top-k", "1,3", "--top-k", "4", "--token-budget", "4,9")
    finished = command(suite, *arguments)
    rows = [line.split("│")[1].strip() for line in finished.lines if line.startswith("│ top_k")]
    assert rows == [f"top_k {k}, token_budget {budget}" for k in (1, 3, 4) for budget in (4, 9)]
    assert noted(suite)["generate"] == 11 + 3  # one passage instead of two for 11 cases; three for 3
    record = command(suite, *arguments, "--json").record
    assert noted(suite) == {}
    assert [each["setting"]["top_k"] for each in record["settings"]] == [1, 1, 3, 3, 4, 4]
    assert [each["generated"] for each in record["settings"]] == [0] * 6


def test_cases_with_one_input_share_what_is_generated(project: Callable[..., Path], command: Command) -> None:
    cases = [case(f"same {n}", ["n1", "n2", "a"]) for n in range(6)]
    folder = project([{**each, "input": cases[0]["input"]} for each in cases])
    (tried,) = command(folder, "what-if", "latest", "--top-k", "3", "--json").record["settings"]
    assert noted(folder)["generate"] == tried["generated"] == 1
    assert tried["changed"] == tried["replayed"] == len(tried["flips"][0]["fixed"]) == 6


def test_what_if_measures_retrieval_criteria_anew_under_a_reranker(suite: Path, command: Command) -> None:
    record = command(suite, "what-if", "latest", "--reranker", "rerank:backwards", "--json").record
    (tried,) = record["settings"]
    flips = {each["criterion"]: each for each in tried["flips"]}
    assert flips["hit_rate_at_2"]["fixed"] == ["below 0", "below 1"]
    assert flips["correct"]["fixed"] == ["below 0", "below 1"]
    assert flips["correct"]["new_failures"] == ["trapped"]


def test_cases_that_errored_in_the_run_or_under_a_setting_are_missing_and_named(
    project: Callable[..., Path], command: Command
) -> None:
    folder = project(
        [case("good", ["a"]), case("dead", ["a"], dies=["a"]), case("dies", ["a", "n", "d"], dies=["d"])]
    )
    finished = command(folder, "what-if", "latest", "--top-k", "3")
    assert "top_k 3 · gave no answer: dies" in finished.lines
    assert "Errored in the run, so is missing on both sides: 1 case, dead" in finished.lines
    row = next(line for line in finished.lines if line.startswith("│ top_k 3"))
    assert "2 missing" in row


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "name what to change: --top-k, --token-budget or --reranker"),
        (("--top-k", "5"), "recorded no more than 4 candidates a case"),
        (("--top-k", "3", "--criterion", "corect"), "has no criterion corect; it has correct, hit_rate_at_2"),
    ],
)
def test_what_if_refuses_what_it_cannot_try(
    suite: Path, command: Command, arguments: tuple[str, ...], told: str
) -> None:
    finished = command(suite, "what-if", "latest", *arguments)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert told in finished.stderr


def test_what_if_counts_no_tokens_that_the_app_does_not_count(
    project: Callable[..., Path], command: Command
) -> None:
    app = APP.replace("token_budget=6, ", "").replace("def count_tokens", "def tokens")
    folder = project([case("good", ["a"])], app)
    finished = command(folder, "what-if", "latest", "--token-budget", "9")
    assert finished.returncode == 2
    assert "app:Rag has no method count_tokens(self, passage) -> int" in finished.stderr


def test_a_child_run_is_not_replayed_but_its_parent(failures: Path, command: Command) -> None:
    record = command(failures, *GOLD, "--json").record
    for arguments in (
        ("what-if", record["gold_run"], "--top-k", "3"),
        (GOLD[0], record["gold_run"], *TOP_K[2:]),
    ):
        finished = command(failures, *arguments)
        assert finished.returncode == 2
        assert f"{record['run']} itself" in finished.stderr
