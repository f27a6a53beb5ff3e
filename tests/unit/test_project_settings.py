"""oloproof.yaml: what it may say, what the defaults are, and how each mistake is reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from oloproof.errors import ConfigurationError
from oloproof.settings.project import Project, check_against, load_project

Load = Callable[[str], Project]

SEED = """\
version: 1
dataset: data/support.jsonl
system:
  name: support-rag
  version: "3"
  rag:
    object: app:SupportRag
    depth: 6
    top_k: 2
    token_budget: 40
    index_version: kb-2026-09-16
evaluators:
  - {type: contains, criterion: answer_correct, field: answer, expected_field: answer}
  - {type: hit_rate, k: 2}
  - {type: recall, k: 2, relevance_unit: chunk}
  - {type: ndcg, k: 6}
  - {type: citation_validity}
slices: [metadata.topic, relevant_position, context_truncated]
min_slice_support: 4
"""

LEAST = """\
version: 1
dataset: d.jsonl
system: {rag: {object: "app:Rag"}}
evaluators: [{type: hit_rate, k: 2}]
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load o.yaml in the current directory."""
    monkeypatch.chdir(tmp_path)

    def load_text(text: str) -> Project:
        path = Path("o.yaml")
        path.write_text(text, "utf-8")
        return load_project(path)

    return load_text


def problems_of(load: Load, text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(text)
    return list(caught.value.problems)


def test_the_configuration_of_the_seed_is_read(load: Load) -> None:
    config = load(SEED).config
    assert [evaluator.criterion_name for evaluator in config.evaluators] == [
        "answer_correct",
        "hit_rate_at_2",
        "recall_at_2",
        "ndcg_at_6",
        "citations_valid",
    ]
    rag = config.system.rag
    assert (rag.object, rag.depth, rag.top_k, rag.token_budget) == ("app:SupportRag", 6, 2, 40)
    assert (config.system.version, rag.index_version) == ("3", "kb-2026-09-16")
    assert config.slices == ("metadata.topic", "relevant_position", "context_truncated")


def test_where_there_is_no_configuration_the_command_that_writes_one_is_named() -> None:
    with pytest.raises(
        ConfigurationError, match=r"no/such\.yaml: no such file; `oloproof init MODULE:CLASS` writes"
    ):
        load_project(Path("no/such.yaml"))


def test_what_may_be_left_out_has_the_documented_defaults(load: Load) -> None:
    config = load(LEAST).config
    assert config.model_dump(exclude={"evaluators"}) == {
        "version": 1,
        "project": None,
        "dataset": "d.jsonl",
        "system": {
            "name": None,
            "version": None,
            "rag": {
                "object": "app:Rag",
                "depth": None,
                "top_k": None,
                "token_budget": None,
                "index_version": None,
            },
        },
        "relevance_unit": "document",
        "slices": (),
        "min_slice_support": 5,
        "execution": {
            "workers": 1,
            "threads": 1,
            "timeout_seconds": 60.0,
            "retries": 0,
            "memory_mb": None,
            "env": None,
        },
        "diagnosis": {"max_cases": 50, "max_generate_calls": 400, "criterion": None},
        "experiments": {"rerankers": ()},
        "identity": {"env": (), "ignore_files": (), "on_stale_index": "rerun"},
        "cache": {"max_mb": 500},
        "judges": {"max_in_flight": 8, "max_calls": None, "max_cost": None, "prices": {}},
        "prepare": None,
    }


def test_a_token_budget_of_null_differs_from_none_given(load: Load) -> None:
    given = load(LEAST.replace('"app:Rag"', '"app:Rag", token_budget: null')).config.system.rag
    absent = load(LEAST).config.system.rag
    assert given.token_budget is absent.token_budget is None
    assert "token_budget" in given.model_fields_set
    assert "token_budget" not in absent.model_fields_set


def test_ranking_evaluators_without_a_unit_get_the_suites(load: Load) -> None:
    def units(project: Project) -> list[str | None]:
        return [getattr(evaluator, "relevance_unit", None) for evaluator in project.config.evaluators]

    assert units(load(SEED)) == [None, "document", "chunk", "document", None]
    assert units(load(SEED + "relevance_unit: chunk\n")) == [None, "chunk", "chunk", "chunk", None]


def test_paths_are_relative_to_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "o.yaml").write_text(SEED, "utf-8")
    monkeypatch.chdir(tmp_path)
    project = load_project(Path("suite/o.yaml"))
    assert project.path == Path("suite/o.yaml")
    assert project.root == tmp_path / "suite"
    assert project.dataset == tmp_path / "suite" / "data" / "support.jsonl"
    assert project.dataset_shown == "suite/data/support.jsonl"


def test_settings_cannot_be_changed_afterwards(load: Load) -> None:
    project = load(SEED)
    with pytest.raises(ValueError, match="frozen"):
        project.config.min_slice_support = 1  # type: ignore[misc]


# ------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("key", ["version", "dataset", "system", "evaluators"])
def test_a_required_key_is_missed(load: Load, key: str) -> None:
    text = "".join(line for line in LEAST.splitlines(keepends=True) if not line.startswith(key))
    assert problems_of(load, text) == [f"o.yaml:1: {key}: missing; this key is required"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("slice: []", "slice: unknown key; did you mean slices?"),
        ("project:", "project: expected a value, found nothing; write one or remove the key"),
        ("project: 5", 'project: expected text, found the number 5; quote it: "5"'),
        ("prepare: ''", "prepare: must not be empty"),
        ("relevance_unit: documents", 'relevance_unit: unknown value "documents"; did you mean document?'),
        ("min_slice_support: 0", "min_slice_support: must be at least 1, found 0"),
        ("execution: {workers: 0}", "execution.workers: must be at least 1, found 0"),
        ("execution: {workers: 257}", "execution.workers: must be at most 256, found 257"),
        ("execution: {threads: 257}", "execution.threads: must be at most 256, found 257"),
        ("execution: {timeout_seconds: 0}", "execution.timeout_seconds: must be above 0, found 0"),
        ("execution: {timeout_seconds: .inf}", "execution.timeout_seconds: expected a finite number, found"),
        ("execution: {retries: -1}", "execution.retries: must be at least 0, found -1"),
        ("execution: {timeout: 5}", "execution.timeout: unknown key; did you mean timeout_seconds?"),
        ("diagnosis: {max_cases: 0}", "diagnosis.max_cases: must be at least 1, found 0"),
        ("identity: {env: [5]}", 'identity.env[0]: expected text, found the number 5; quote it: "5"'),
        ("identity: {env: HOME}", 'identity.env: expected a list, found the text "HOME"; write [HOME]'),
        ("identity:", "identity: expected a mapping (keys and values), found nothing"),
        ("slices: [topic]", 'slices[0]: unknown slice "topic"; did you mean metadata.topic?'),
        (
            "slices: [relevant_positon]",
            'slices[0]: unknown slice "relevant_positon"; did you mean relevant_position?',
        ),
        (
            "slices: [metadata]",
            'slices[0]: unknown slice "metadata"; known are metadata.KEY, relevant_position and',
        ),
        ("slices: [metadata..a]", 'slices[0]: unknown slice "metadata..a"; known are metadata.KEY'),
        ("slices: [metadata.a.b, metadata.a.b]", "slices[1]: metadata.a.b stands on line 5 already"),
        (
            "diagnosis: {criterion: hit_rate}",
            "diagnosis.criterion: no evaluator yields the criterion hit_rate; did you",
        ),
    ],
)
def test_a_mistake_is_reported_with_line_key_and_remedy(load: Load, line: str, problem: str) -> None:
    (found,) = problems_of(load, LEAST + line + "\n")
    assert found.startswith(f"o.yaml:5: {problem}")


@pytest.mark.parametrize("name", ["depth", "top_k", "token_budget"])
@pytest.mark.parametrize("value", ["0", "-1"])
def test_depth_top_k_and_budget_below_one_are_refused(load: Load, name: str, value: str) -> None:
    text = LEAST.replace('"app:Rag"', f'"app:Rag", {name}: {value}')
    assert problems_of(load, text) == [f"o.yaml:3: system.rag.{name}: must be at least 1, found {value}"]


@pytest.mark.parametrize("name", ["depth", "top_k", "index_version"])
def test_an_override_that_stands_there_has_a_value(load: Load, name: str) -> None:
    (problem,) = problems_of(load, LEAST.replace('"app:Rag"', f'"app:Rag", {name}: null'))
    assert (
        problem
        == f"o.yaml:3: system.rag.{name}: expected a value, found nothing; write one or remove the key"
    )


def test_a_misspelt_override_gets_the_nearest_name(load: Load) -> None:
    assert problems_of(load, SEED.replace("top_k", "topk")) == [
        "o.yaml:9: system.rag.topk: unknown key; did you mean top_k?"
    ]


@pytest.mark.parametrize(
    "text", ["app", "app.Rag", "app:", ":Rag", "app.py:Rag-1", "src/app:Rag", "a:b:c", " app:Rag"]
)
def test_the_object_must_be_module_and_class(load: Load, text: str) -> None:
    assert problems_of(load, LEAST.replace("app:Rag", text)) == [
        f'o.yaml:3: system.rag.object: expected module:Class such as app:SupportRag, found "{text}"'
    ]


@pytest.mark.parametrize("text", ["app:Rag", "pkg.app:Outer.Rag", "_a1:B"])
def test_the_object_may_be_in_a_package_or_a_class(load: Load, text: str) -> None:
    assert load(LEAST.replace("app:Rag", text)).config.system.rag.object == text


def evaluators(*entries: str) -> str:
    return LEAST.split("evaluators:")[0] + "evaluators:\n" + "".join(f"  - {entry}\n" for entry in entries)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{type: hitrate, k: 2}", '.type: unknown type "hitrate"; did you mean hit_rate?'),
        ("{k: 2}", ".type: missing; this key is required, one of contains, "),
        ("{type: hit_rate}", ".k: missing; this key is required"),
        ("{type: hit_rate, k: 0}", ".k: must be at least 1, found 0"),
        ("{type: hit_rate, k: 2, kk: 3}", ".kk: unknown key; did you mean k?"),
        ("{type: regex, criterion: a, field: b}", ": regex needs exactly one of pattern and expected_field"),
        (
            "{type: contains, criterion: a b, field: b, expected_field: c}",
            ".criterion: expected letters, digits",
        ),
        ("hit_rate", ': expected a mapping (keys and values), found the text "hit_rate"'),
    ],
)
def test_a_wrong_evaluator_is_named_by_its_place(load: Load, entry: str, problem: str) -> None:
    (found,) = problems_of(load, evaluators("{type: recall, k: 2}", entry))
    assert found.startswith(f"o.yaml:6: evaluators[1]{problem}")


def test_a_suite_without_evaluators_is_refused(load: Load) -> None:
    text = LEAST.split("evaluators:")[0] + "evaluators: []\n"
    assert problems_of(load, text) == ["o.yaml:4: evaluators: needs at least 1 entry, found none"]


def test_two_evaluators_of_one_criterion_name_both_lines(load: Load) -> None:
    (problem,) = problems_of(
        load, evaluators("{type: recall, k: 2}", "{type: mrr, k: 2, criterion: recall_at_2}")
    )
    assert problem.startswith(
        "o.yaml:6: evaluators[1]: yields the criterion recall_at_2, as evaluators[0] on line 5 does"
    )


def test_only_a_pass_fail_criterion_can_be_diagnosed(load: Load) -> None:
    (problem,) = problems_of(load, SEED + "diagnosis: {criterion: ndcg_at_6}\n")
    assert problem.startswith("o.yaml:20: diagnosis.criterion: ndcg_at_6 is a score, and only a pass/fail")
    assert (
        load(SEED + "diagnosis: {criterion: hit_rate_at_2}\n").config.diagnosis.criterion == "hit_rate_at_2"
    )


def test_all_mistakes_come_in_one_go(load: Load) -> None:
    text = SEED.replace("version: 1", "version: 2").replace("depth: 6", "depth: six").replace("k: 6", "k: 0")
    assert [problem.split(" ")[0] for problem in problems_of(load, text)] == [
        "o.yaml:1:",
        "o.yaml:8:",
        "o.yaml:16:",
    ]


# -------------------------------------------------------------------------- against the settings in force


def check_problems(project: Project, depth: int, top_k: int) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        check_against(project, depth, top_k)
    return list(caught.value.problems)


def test_settings_that_fit_pass(load: Load) -> None:
    check_against(load(SEED), depth=6, top_k=6)


def test_a_k_above_depth_is_refused_since_every_case_would_be_missing(load: Load) -> None:
    (problem,) = check_problems(load(SEED), depth=5, top_k=2)
    assert problem.startswith(
        "o.yaml:16: evaluators[3].k: k is 6 but depth is 5, so every case would be missing"
    )


def test_top_k_above_depth_is_reported_where_it_stands(load: Load) -> None:
    (problem,) = check_problems(load(SEED), depth=6, top_k=7)
    assert problem.startswith("o.yaml:9: system.rag.top_k: top_k is 7 but depth is 6")


def test_top_k_of_the_class_above_an_overridden_depth_is_reported_at_depth(load: Load) -> None:
    project = load(LEAST.replace('{object: "app:Rag"}', '{object: "app:Rag",\n depth: 3}'))
    (problem,) = check_problems(project, depth=3, top_k=4)
    assert problem.startswith("o.yaml:4: system.rag.depth: top_k is 4 but depth is 3")


def test_top_k_above_depth_in_the_class_alone_is_reported_at_the_object(load: Load) -> None:
    (problem,) = check_problems(load(LEAST), depth=3, top_k=4)
    assert problem.startswith("o.yaml:3: system.rag.object: top_k is 4 but depth is 3")


# ------------------------------------------------------------------------------------------------ fuzz

_value = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10**12)
    | st.floats()
    | st.dates()
    | st.text(max_size=6)
    | st.sampled_from(["hit_rate", "regex", "type", "kind", "metadata.a", "app:Rag"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A good configuration with one to three values replaced, added or removed."""
    root = yaml.safe_load(text)
    for _ in range(draw(st.integers(1, 3))):
        here = root
        while True:
            keys = list(here) if isinstance(here, dict) else list(range(len(here)))
            key = draw(st.sampled_from([*keys, "new"] if isinstance(here, dict) else [*keys] or ["none"]))
            if key == "none":
                break
            deeper = here[key] if key in keys else None
            if isinstance(deeper, dict | list) and draw(st.booleans()):
                here = deeper
                continue
            if key in keys and draw(st.integers(0, 3)) == 0:
                del here[key]
            else:
                here[key] = draw(_value)
            break
        if not root:
            break
    dumped: str = yaml.safe_dump(root, allow_unicode=True)
    return dumped


@settings(deadline=None, max_examples=150)
@given(damaged(SEED + "execution: {workers: 1}\ndiagnosis: {criterion: answer_correct}\n"))
def test_no_damage_brings_out_anything_but_a_configuration_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz-oloproof.yaml"
    path.write_text(text, "utf-8")
    problems: list[str] = []
    try:
        load_project(path)
    except ConfigurationError as error:
        problems.extend(error.problems[:20])
    assert all(problem.startswith(f"{path}:") and problem.isprintable() for problem in problems)
    assert not any("pydantic" in problem or "Input" in problem for problem in problems)
