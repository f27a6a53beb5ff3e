"""How each provider is asked, and how its answer is read. Both are pure: nothing here touches the network.

Sources: https://platform.openai.com/docs/api-reference/chat and https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from oloproof.judges.prompts import Prompt

Provider = Literal["openai", "anthropic", "openai_compatible"]

#: Where each provider is reached, and which variable holds the key, unless the configuration says otherwise.
BASE_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com/v1"}
KEY_VARIABLES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
ANTHROPIC_VERSION = "2023-06-01"
TOOL = "give_verdict"
#: How much of a provider's error message is kept.
MAX_MESSAGE = 300
#: A shorter key is in too many words by chance to be hidden.
SHORTEST_KEY = 4
#: More tokens than this no answer takes: such a number is no count.
MOST_TOKENS = 1_000_000_000


@dataclass(frozen=True)
class Model:
    """A model and how it samples. `temperature` None leaves the provider's own."""

    provider: Provider
    name: str
    base_url: str
    temperature: float | None
    max_tokens: int


@dataclass(frozen=True)
class Tokens:
    """Tokens as the provider counted them."""

    input: int = 0
    output: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.input + other.input, self.output + other.output)


@dataclass(frozen=True)
class Answered:
    """What a provider answered: a text that should hold a verdict, or a `fault` with its `detail`. `retry` says whether
    asking again may help, `lasting` that every other question will be answered in the same way. `tokens` is what was
    paid for, in `requests` that it took."""

    text: str = ""
    tokens: Tokens = Tokens()
    fault: str = ""
    detail: str = ""
    retry: bool = False
    lasting: bool = False
    requests: int = 1


def address(model: Model) -> str:
    path = "messages" if model.provider == "anthropic" else "chat/completions"
    return f"{model.base_url.rstrip('/')}/{path}"


def headers(model: Model, key: str | None) -> dict[str, str]:
    if model.provider == "anthropic":
        return {"anthropic-version": ANTHROPIC_VERSION, **({"x-api-key": key} if key else {})}
    return {"Authorization": f"Bearer {key}"} if key else {}


def body(model: Model, prompt: Prompt) -> dict[str, Any]:
    """The request's body. Where the provider can hold an answer to a schema, it is asked to."""
    sampling = {} if model.temperature is None else {"temperature": model.temperature}
    user = {"role": "user", "content": prompt.user}
    if model.provider == "anthropic":
        tool = {"name": TOOL, "description": "Give the verdict.", "input_schema": prompt.schema()}
        return {
            "model": model.name,
            "max_tokens": model.max_tokens,
            **sampling,
            "system": prompt.system,
            "messages": [user],
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": TOOL},
        }
    asked: dict[str, Any] = {
        "model": model.name,
        "messages": [{"role": "system", "content": prompt.system}, user],
    }
    if model.provider == "openai":
        schema = {"name": "verdict", "strict": True, "schema": prompt.schema()}
        form = {"type": "json_schema", "json_schema": schema}
        return {**asked, "max_completion_tokens": model.max_tokens, **sampling, "response_format": form}
    return {**asked, "max_tokens": model.max_tokens, **sampling}


def read_answer(
    model: Model, status: int, text: str, key: str = "", asked: Mapping[str, Any] | None = None
) -> Answered:
    """What a response to the body `asked` says, whatever it holds; without the key, which providers repeat in their
    complaints, and without halves of characters, which cannot be stored."""
    answered = _read(model, status, text)
    spoken, detail = _whole(answered.text), _whole(answered.detail)
    if len(key) >= SHORTEST_KEY:
        detail = detail.replace(key, "***")
        if "\\" in spoken:
            spoken = _spelled_out(spoken, key)
        if key in spoken and not _stands_in(asked, key):
            spoken = spoken.replace(key, "***")
    return replace(answered, text=spoken, detail=_cut(detail))


def _read(model: Model, status: int, text: str) -> Answered:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if status != 200:
        return _refused(status, found, text)
    if not isinstance(found, dict):
        return Answered(
            fault="judge_answer_unreadable",
            detail=text if text.strip() else "the answer is empty",
            retry=True,
        )
    try:
        return _anthropic(found) if model.provider == "anthropic" else _openai(found)
    except (KeyError, IndexError, TypeError, AttributeError):
        return Answered(fault="judge_answer_unreadable", detail=text, retry=True)


def _spelled_out(text: str, key: str) -> str:
    """JSON without the escapes that a key in it was hidden behind; any other text as it is."""
    try:
        plain = _whole(json.dumps(json.loads(text), ensure_ascii=False))
    except (ValueError, RecursionError):
        return text
    return plain if key in plain else text


def _stands_in(asked: Mapping[str, Any] | None, key: str) -> bool:
    """Whether what was asked holds the key: a word such as `none`, which servers that need no key are given, may well
    be quoted from a passage."""
    return asked is not None and any(key in each["content"] for each in asked["messages"])


def _openai(found: Mapping[str, Any]) -> Answered:
    usage = found.get("usage") or {}
    tokens = Tokens(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))
    choice = found["choices"][0]
    message = choice["message"]
    if message.get("refusal"):
        return Answered(tokens=tokens, fault="judge_refused", detail=str(message["refusal"]))
    if choice.get("finish_reason") == "content_filter":
        return Answered(
            tokens=tokens, fault="judge_refused", detail="the provider's filter withheld the answer"
        )
    if choice.get("finish_reason") == "length":
        return Answered(tokens=tokens, fault="judge_truncated", detail="the answer is longer than max_tokens")
    return _spoken(message.get("content") or "", tokens)


def _anthropic(found: Mapping[str, Any]) -> Answered:
    usage = found.get("usage") or {}
    tokens = Tokens(_count(usage.get("input_tokens")), _count(usage.get("output_tokens")))
    if found.get("stop_reason") == "refusal":
        return Answered(tokens=tokens, fault="judge_refused", detail="the model refused to answer")
    if found.get("stop_reason") == "max_tokens":
        return Answered(tokens=tokens, fault="judge_truncated", detail="the answer is longer than max_tokens")
    if found.get("stop_reason") == "model_context_window_exceeded":
        return Answered(
            tokens=tokens, fault="judge_prompt_too_long", detail="prompt and answer exceed the model's window"
        )
    blocks = found["content"]
    for block in blocks:
        if block["type"] == "tool_use":
            return Answered(json.dumps(block["input"]), tokens)
    return _spoken("".join(block["text"] for block in blocks if block["type"] == "text"), tokens)


def _spoken(text: str, tokens: Tokens) -> Answered:
    if not isinstance(text, str):
        raise TypeError
    if not text.strip():
        return Answered(tokens=tokens, fault="judge_empty_answer", detail="the answer holds no text")
    return Answered(text, tokens)


#: What a status means, and whether asking again may help.
_FAULTS: dict[int, tuple[str, bool]] = {
    400: ("judge_bad_request", False),
    401: ("judge_key_refused", False),
    403: ("judge_key_refused", False),
    404: ("judge_model_unknown", False),
    408: ("judge_provider_error", True),
    409: ("judge_provider_error", True),
    413: ("judge_prompt_too_long", False),
    422: ("judge_bad_request", False),
    429: ("judge_rate_limited", True),
}
#: Statuses that say nothing of the question: the key is refused, the model is not there.
_LASTING = frozenset({401, 404})
#: What is said of a status where the provider says nothing.
_UNSAID = {3: "sends to another address, which is not followed"}
#: Words by which providers tell of a prompt beyond the model's window.
_TOO_LONG = (
    "context_length",
    "context length",
    "context size",
    "context window",
    "too long",
    "maximum context",
    "too many tokens",
)


def _refused(status: int, found: Any, text: str) -> Answered:
    error = found.get("error") if isinstance(found, dict) else None
    message = str(error.get("message", "")) if isinstance(error, dict) else str(error or "")
    code = str(error.get("code", "")) if isinstance(error, dict) else ""
    fault, retry = _FAULTS.get(status, ("judge_provider_error", status >= 500))
    if status == 400 and any(words in f"{code} {message}".lower() for words in _TOO_LONG):
        fault = "judge_prompt_too_long"
    spent = status == 429 and code == "insufficient_quota"
    said = message or text or _UNSAID.get(status // 100, "nothing is said of it")
    detail = f"{status}: {said}"
    return Answered(
        fault=fault, detail=detail, retry=retry and not spent, lasting=spent or status in _LASTING
    )


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else 0


def _whole(text: str) -> str:
    """A text with a question mark for each half of a character."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _cut(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= MAX_MESSAGE else plain[: MAX_MESSAGE - 1] + "…"
