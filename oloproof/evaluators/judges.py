"""Judges by models: whether an answer is grounded in its context, whether its citations support it, whether it meets a
rubric of the user's.

A judge's settings are an evaluator's like any other's; what it asks stands in `oloproof.judges`. Its judgments inform.
No rule may rest on them before they were checked against people's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, model_validator

from oloproof.canonical import canonical_json
from oloproof.evaluators.base import CriterionName, Evaluator, FieldName
from oloproof.evaluators.fields import ABSENT, find_field
from oloproof.judges.prompts import (
    CITATION_SUPPORT,
    GROUNDEDNESS,
    Evidence,
    Prompt,
    citation_prompt,
    evidence,
    groundedness_prompt,
    is_blank,
    rubric_prompt,
)
from oloproof.judges.providers import BASE_URLS, KEY_VARIABLES, Model, Provider
from oloproof.records import FAILED, PASSED, Case, Execution, Judgment, excluded, missing

Text = Annotated[str, Field(min_length=1)]
NO_CLAIMS = excluded("answer_claims_nothing")


def _address_problem(url: str) -> str:
    """What keeps an address from being one where a provider can be asked; empty when nothing does."""
    try:
        found = urlsplit(url)
        reachable = found.scheme in ("http", "https") and bool(found.hostname) and found.port != 0
    except ValueError:
        reachable = False
    if not reachable or any(character.isspace() for character in url):
        return "is no address; expected one such as https://models.example/v1"
    if found.username is not None or found.password is not None:
        return "holds a user or a password; it is stored with every run, so name the key's variable in api_key_env"
    if found.query or found.fragment:
        return "ends in a query or a fragment; expected what /chat/completions or /messages can follow"
    return ""


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_VARIABLE = 100
#: What keys hold and names of variables hardly do: digits among small letters, at some length.
_LIKE_A_KEY = re.compile(r"(?=.*[a-z])(?=.*[0-9]).{20,}")


def _names_a_variable(text: str) -> bool:
    """Whether a text can name a variable; what looks like a key itself is not to stand in a message, or in a store."""
    return (
        len(text) <= _LONGEST_VARIABLE
        and _VARIABLE.fullmatch(text) is not None
        and _LIKE_A_KEY.fullmatch(text) is None
    )


class Question:
    """One prompt of a judge with the passages that its answer may quote."""

    __slots__ = ("passages", "prompt")

    def __init__(self, prompt: Prompt, passages: Sequence[Evidence]) -> None:
        self.prompt = prompt
        self.passages = tuple(passages)


class JudgeEvaluator(Evaluator):
    """Base of the judges. `repeats` asks so many separate samples of each question; the most frequent verdict counts,
    and a tie is no verdict.

    `questions` says what there is to ask about an answer, or the judgment that needs no asking; `judgment` turns the
    verdicts into one. Neither touches the network. With `corrected` a run also tells the pass rate that people would
    have found, as far as their labels on its answers show it.
    """

    #: 2: quotes are whole words.
    code_version: ClassVar[int] = 2
    asks_model: ClassVar[bool] = True
    validated: ClassVar[bool] = False
    #: The part of the prompt that `rubric_text` or `rubric_file` replaces.
    default_rubric: ClassVar[str] = ""

    criterion: CriterionName | None = None
    provider: Provider
    model: Text
    base_url: Text | None = None
    api_key_env: Text | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    max_tokens: Annotated[int, Field(ge=16, le=100_000)] = 1024
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    repeats: Annotated[int, Field(ge=1, le=25)] = 1
    rubric_text: Text | None = None
    rubric_file: Text | None = None
    corrected: bool = False
    field: FieldName = "answer"
    _file_text: str = PrivateAttr(default="")

    @model_validator(mode="after")
    def _settings_fit(self) -> Self:
        if self.provider == "openai_compatible" and self.base_url is None:
            raise ValueError("provider openai_compatible needs base_url, such as http://127.0.0.1:8000/v1")
        if self.base_url is not None and (problem := _address_problem(self.base_url)):
            raise ValueError(f"base_url {problem}")
        if self.api_key_env is not None and not _names_a_variable(self.api_key_env):
            raise ValueError(
                "api_key_env must name the environment variable that holds the key, not give the key"
            )
        if self.rubric_text is not None and self.rubric_file is not None:
            raise ValueError("give rubric_text or rubric_file, not both")
        if not self.default_rubric and self.rubric_text is None and self.rubric_file is None:
            raise ValueError("needs rubric_text or rubric_file: what an answer must meet")
        return self

    def with_rubric(self, text: str) -> Self:
        """The same judge with the text of its `rubric_file`."""
        known = self.model_copy()
        known._file_text = text
        return known

    @property
    def own_rubric(self) -> str:
        """The user's rubric; "" where ours is in force."""
        text = self.rubric_text or self._file_text
        return "" if text == self.default_rubric else text

    @property
    def rubric(self) -> str:
        """The rubric in force."""
        return self.own_rubric or self.default_rubric

    @property
    def key_variable(self) -> str | None:
        """The environment variable that holds the key; None when no key is sent."""
        return self.api_key_env or KEY_VARIABLES.get(self.provider)

    def asked_model(self) -> Model:
        """The model with its sampling."""
        base = self.base_url or BASE_URLS.get(self.provider, "")
        return Model(self.provider, self.model, base, self.temperature, self.max_tokens)

    def definition(self) -> dict[str, Any]:
        """Without what changes no verdict: where the key stands, how long an answer may take, what is reported."""
        settings = super().definition()
        for name in ("api_key_env", "timeout_seconds", "rubric_file", "rubric_text", "corrected"):
            del settings[name]
        return {**settings, "rubric": self.rubric}

    def assess(self, case: Case, execution: Execution) -> Judgment:
        """Only the model can say."""
        return missing("not_judged")

    def questions(
        self, case: Case, execution: Execution, context: Sequence[Sequence[Any]]
    ) -> list[Question] | Judgment:
        """What to ask; `context` holds doc_id, chunk_id, score and text of each passage."""
        raise NotImplementedError

    def question(
        self, input: Any, answer: str, passages: Sequence[Evidence], expected: Any = None
    ) -> Question:
        """One question about an answer and the passages that it is held against."""
        raise NotImplementedError

    @property
    def shows_expected(self) -> bool:
        """Whether the judge is shown the expected value."""
        return False

    def shown_expected(self, case: Case) -> dict[str, Any] | None:
        """What of the expected value the judge is shown; None when nothing is."""
        return dict(case.expected) if self.shows_expected else None

    def judgment(self, verdicts: Sequence[str]) -> Judgment:
        """The judgment from a verdict for each question."""
        raise NotImplementedError

    def answer_of(self, execution: Execution) -> str | None:
        """The answer's text; None when there is no such field."""
        found = find_field(execution.output, self.field)
        if found is ABSENT or found is None:
            return None
        return found if isinstance(found, str) else canonical_json(found)


class GroundednessJudge(JudgeEvaluator):
    """Whether every claim of the answer follows from the context that the model was given.

    A blank answer, and one that claims nothing, are excluded; an answer that matches `no_answer` (a text it may
    contain, such as "could not find") claims nothing either. Any other answer to an empty context, or to one of blank
    passages, is not grounded, without a question.
    """

    default_rubric: ClassVar[str] = GROUNDEDNESS

    type: Literal["groundedness_judge"] = "groundedness_judge"
    no_answer: Text | None = None

    @property
    def criterion_name(self) -> str:
        return self.criterion or "grounded"

    def questions(
        self, case: Case, execution: Execution, context: Sequence[Sequence[Any]]
    ) -> list[Question] | Judgment:
        answer = self.answer_of(execution)
        if answer is None:
            return missing("field_missing")
        if is_blank(answer) or (self.no_answer and self.no_answer.casefold() in answer.casefold()):
            return NO_CLAIMS
        passages = evidence(context)
        if not passages:
            return FAILED
        return [self.question(case.input, answer, passages)]

    def question(
        self, input: Any, answer: str, passages: Sequence[Evidence], expected: Any = None
    ) -> Question:
        return Question(groundedness_prompt(self.rubric, input, answer, passages), passages)

    def judgment(self, verdicts: Sequence[str]) -> Judgment:
        (verdict,) = verdicts
        return NO_CLAIMS if verdict == "no_claims" else PASSED if verdict == "grounded" else FAILED


class CitationSupportJudge(JudgeEvaluator):
    """Whether each passage that the answer cites supports the claims that cite it; one question a citation, which may
    name a document of which several chunks are in the context.

    An answer that cites nothing is excluded. A citation of a passage that is blank or was not in the context supports
    nothing, without a question.
    """

    default_rubric: ClassVar[str] = CITATION_SUPPORT

    type: Literal["citation_support_judge"] = "citation_support_judge"
    citations: FieldName = "citations"

    @property
    def criterion_name(self) -> str:
        return self.criterion or "citations_support"

    def questions(
        self, case: Case, execution: Execution, context: Sequence[Sequence[Any]]
    ) -> list[Question] | Judgment:
        answer, cited = self.answer_of(execution), find_field(execution.output, self.citations)
        if answer is None:
            return missing("field_missing")
        if cited is ABSENT or cited is None or cited == []:
            return excluded("answer_cites_nothing")
        if not isinstance(cited, list) or not all(isinstance(name, str) for name in cited):
            return missing("citations_malformed")
        if is_blank(answer):
            return NO_CLAIMS
        found: list[Question] = []
        passages = evidence(context)
        for name in dict.fromkeys(cited):
            named = [each for each in passages if name in (each.name, context[each.number - 1][0])]
            if not named:
                return FAILED
            found.append(self.question(case.input, answer, named))
        return found

    def question(
        self, input: Any, answer: str, passages: Sequence[Evidence], expected: Any = None
    ) -> Question:
        return Question(citation_prompt(self.rubric, input, answer, passages), passages)

    def judgment(self, verdicts: Sequence[str]) -> Judgment:
        return PASSED if all(verdict == "supported" for verdict in verdicts) else FAILED


class RubricJudge(JudgeEvaluator):
    """Whether the answer meets a rubric of the user's own. The expected value is shown only with `show_expected`."""

    type: Literal["rubric_judge"] = "rubric_judge"
    criterion: CriterionName
    show_expected: bool = False

    @property
    def shows_expected(self) -> bool:
        return self.show_expected

    def expected_key(self, case: Case) -> str:
        return case.expected_json if self.show_expected else ""

    def questions(
        self, case: Case, execution: Execution, context: Sequence[Sequence[Any]]
    ) -> list[Question] | Judgment:
        answer = self.answer_of(execution)
        if answer is None:
            return missing("field_missing")
        return [self.question(case.input, answer, (), self.shown_expected(case))]

    def question(
        self, input: Any, answer: str, passages: Sequence[Evidence], expected: Any = None
    ) -> Question:
        return Question(rubric_prompt(self.rubric, input, answer, expected), ())

    def judgment(self, verdicts: Sequence[str]) -> Judgment:
        (verdict,) = verdicts
        return PASSED if verdict == "pass" else FAILED
