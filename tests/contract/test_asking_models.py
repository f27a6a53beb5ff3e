"""What is asked of a provider of models, and what becomes of everything that it may answer."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from model_server import ModelServer

from oloproof.judges.calling import GIVE_UP_AFTER, Limits, Price, Provider
from oloproof.judges.prompts import GROUNDEDNESS, evidence, groundedness_prompt
from oloproof.judges.providers import Answered, Model, body
from oloproof.judges.sending import Call
from oloproof.judges.verdicts import read_verdict

KEY = "sk-very-secret-key"
PASSAGES = evidence([["kb-1", None, 1.0, "Refunds take 14 days."]])
PROVIDERS = ("openai", "anthropic", "openai_compatible")


class Asker:
    """Asks a server, and takes no time where it should wait."""

    def __init__(self, models: ModelServer, **limits: Any) -> None:
        self.url = models.url
        self.lines: list[str] = []
        self.pauses: list[float] = []
        self.now = 1000.0
        environment = {"KEY": KEY, "EMPTY": " ", "ODD": "schlüssel", "LINE": f"{KEY}\n"}
        self.provider = Provider(
            environment, Limits(**limits), self.lines.append, self._pause, lambda: self.now
        )

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def ask(self, question: str, provider: Any = "openai", **settings: Any) -> Answered:
        variable = settings.pop("key", "KEY")
        timeout = settings.pop("timeout", 20.0)
        model = replace(Model(provider, "m", self.url, 0.0, 500), **settings)
        prompt = groundedness_prompt(GROUNDEDNESS, question, "14 days.", PASSAGES)
        return self.provider.call(Call(model, body(model, prompt), variable, timeout))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_verdict_comes_back_in_the_format_of_each_provider(models: ModelServer, provider: str) -> None:
    answered = Asker(models).ask("How long?", provider)
    assert not answered.fault
    prompt = groundedness_prompt(GROUNDEDNESS, "How long?", "14 days.", PASSAGES)
    assert read_verdict(answered.text, prompt, PASSAGES).verdict == "grounded"
    assert answered.tokens.input > 0
    assert answered.tokens.output > 0
    (headers, asked), *others = models.requests
    assert not others
    assert headers["x-api-key" if provider == "anthropic" else "Authorization"].endswith(KEY)
    assert KEY not in json.dumps(asked)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("fault", "name", "requests"),
    [
        ("bad-request", "judge_bad_request", 1),
        ("too-long", "judge_prompt_too_long", 1),
        ("wrong-key", "judge_key_refused", 1),
        ("no-model", "judge_model_unknown", 1),
        ("asked-too-often", "judge_rate_limited", 10),
        ("asked-far-too-often", "judge_rate_limited", 1),
        ("broken", "judge_provider_error", 6),
        ("overloaded", "judge_provider_error", 6),
        ("empty", "judge_empty_answer", 1),
        ("cut-short", "judge_truncated", 1),
        ("html", "judge_answer_unreadable", 6),
        ("cut", "judge_unreachable", 6),
        ("hung-up", "judge_unreachable", 6),
        ("echo", "judge_bad_request", 1),
    ],
)
def test_a_fault_has_a_name_and_only_what_may_pass_is_asked_again(
    models: ModelServer, provider: str, fault: str, name: str, requests: int
) -> None:
    asker = Asker(models)
    answered = asker.ask(f"fault:{fault}", provider)
    assert (answered.fault, answered.text) == (name, "")
    assert answered.detail
    assert KEY not in repr(answered)
    assert models.asked() == answered.requests == requests
    assert bool(asker.pauses) == (requests > 1)
    assert bool(asker.lines) == (requests > 1 or fault in ("wrong-key", "no-model", "asked-far-too-often"))


@pytest.mark.parametrize("fault", ["late", "dripping", "dripping-headers"])
def test_an_answer_that_is_not_there_in_time_is_given_up(models: ModelServer, fault: str) -> None:
    answered = Asker(models).ask(f"fault:{fault}", timeout=0.3)
    assert (answered.fault, answered.detail) == ("judge_timed_out", "no answer within 0.3 s")
    assert answered.requests == 6


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", ["refusal", "declined"])
def test_a_refusal_is_named_as_one_and_what_it_took_is_counted(
    models: ModelServer, provider: str, fault: str
) -> None:
    answered = Asker(models).ask(f"fault:{fault}", provider)
    assert (answered.fault, answered.text, answered.requests) == ("judge_refused", "", 1)
    assert answered.tokens.input > 0


def test_a_wait_is_as_long_as_the_provider_asks_and_everybody_keeps_it(models: ModelServer) -> None:
    asker = Asker(models, max_in_flight=8)
    asker.ask("fault:asked-too-often")
    assert asker.pauses == pytest.approx([7.0] * 9)
    assert asker.lines[0] == "asked too often: waiting 7 s, then 4 at a time"


def test_without_such_a_wish_the_waits_grow(models: ModelServer) -> None:
    asker = Asker(models)
    asker.ask("fault:broken")
    assert [round(pause) for pause in asker.pauses] == pytest.approx([1, 2, 4, 8, 16], rel=0.3)
    assert asker.lines[0].startswith("no answer (judge_provider_error): waiting 1 s")


@pytest.mark.parametrize("fault", ["once-broken", "once-too-often"])
def test_what_passes_leaves_no_trace_but_its_request(models: ModelServer, fault: str) -> None:
    answered = Asker(models).ask(f"fault:{fault}")
    assert (answered.fault, answered.requests) == ("", 2)


@pytest.mark.parametrize("fault", ["wrong-key", "no-model", "asked-far-too-often"])
def test_what_goes_for_every_question_is_asked_once(models: ModelServer, fault: str) -> None:
    asker = Asker(models)
    first = asker.ask(f"fault:{fault}")
    second = asker.ask("another question")
    assert (second.fault, second.detail, second.requests) == (first.fault, first.detail, 0)
    assert models.asked() == 1
    assert not asker.ask("a question to another model", name="n").fault


def test_a_provider_that_is_down_is_not_waited_for_with_every_question(models: ModelServer) -> None:
    asker = Asker(models)
    for number in range(9):
        assert asker.ask(f"fault:broken {number}").fault == "judge_provider_error"
    assert models.asked() == 6 * GIVE_UP_AFTER
    assert asker.lines[-1] == "openai is not asked any more in this run (judge_provider_error)"


def test_a_question_that_breaks_the_provider_keeps_no_other_from_an_answer(models: ModelServer) -> None:
    asker = Asker(models)
    for number in range(2 * GIVE_UP_AFTER):
        assert asker.ask(f"fault:broken {number}").fault
        assert not asker.ask(f"sound {number}").fault


@pytest.mark.parametrize(
    ("variable", "detail"),
    [
        ("NOWHERE", "the environment variable NOWHERE is not set"),
        ("EMPTY", "the environment variable EMPTY is not set"),
        ("ODD", "the environment variable ODD holds characters that no key has"),
    ],
)
def test_without_a_key_nothing_is_asked(models: ModelServer, variable: str, detail: str) -> None:
    answered = Asker(models).ask("How long?", key=variable)
    assert (answered.fault, answered.detail, answered.requests) == ("judge_no_key", detail, 0)
    assert not models.requests


def test_a_line_break_after_a_key_is_none_of_it(models: ModelServer) -> None:
    assert not Asker(models).ask("How long?", key="LINE").fault


def test_no_more_is_asked_than_the_budget_allows(models: ModelServer) -> None:
    asker = Asker(models, max_calls=3)
    faults = [asker.ask(f"question {number}").fault for number in range(5)]
    assert faults == ["", "", "", "judge_budget_spent", "judge_budget_spent"]
    assert models.asked() == 3


def test_repeats_count_towards_the_budget(models: ModelServer) -> None:
    asker = Asker(models, max_calls=4)
    answered = asker.ask("fault:broken")
    assert (answered.fault, answered.requests) == ("judge_budget_spent", 4)


def test_no_more_is_spent_than_the_budget_allows(models: ModelServer) -> None:
    asker = Asker(models, max_cost=1e-6, prices={"m": Price(1.0, 1.0)})
    assert [bool(asker.ask(f"question {n}").fault) for n in range(3)] == [False, True, True]


@pytest.mark.parametrize("limit", [0.5, 3.5, 17.0])
def test_costs_pass_their_limit_by_no_more_than_one_answer_however_many_ask_at_once(
    models: ModelServer, limit: float
) -> None:
    models.delay = 0.02
    prices = {"m": Price(0.0, 1_000_000 / 7)}  # aimock's tool calls take 7 tokens: a cost of 1
    asker = Asker(models, max_in_flight=8, max_cost=limit, prices=prices)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda n: asker.ask(f"question {n}", "anthropic"), range(40)))
    costs = [prices["m"].cost(each.tokens) for each in answers if not each.fault]
    assert costs == pytest.approx([1.0] * math.ceil(limit))
    assert {each.fault for each in answers} == {"", "judge_budget_spent"}


@pytest.mark.parametrize("at_once", [1, 8])
def test_calls_keep_to_their_limit_however_many_ask_at_once(models: ModelServer, at_once: int) -> None:
    models.delay = 0.02
    asker = Asker(models, max_in_flight=at_once, max_calls=13)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda n: asker.ask(f"question {n}"), range(40)))
    assert models.asked() == sum(not each.fault for each in answers) == 13


def test_a_very_long_question_is_sent_whole(models: ModelServer) -> None:
    assert not Asker(models).ask("long " * 60_000).fault
    ((_, asked),) = models.requests
    assert len(asked["messages"][-1]["content"]) > 300_000


@pytest.mark.parametrize(
    ("url", "detail"),
    [
        ("http://127.0.0.1:9/v1", "connection refused"),
        ("http://no-such-host.invalid/v1", "no-such-host.invalid: "),
    ],
)
def test_a_provider_that_cannot_be_reached_is_named(models: ModelServer, url: str, detail: str) -> None:
    answered = Asker(models).ask("How long?", base_url=url)
    assert answered.fault == "judge_unreachable"
    assert detail in answered.detail
