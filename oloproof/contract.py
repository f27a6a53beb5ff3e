"""What a user's RAG system is made of: two value types and one class decorator.

This module is loaded inside the user's own interpreter, beside the user's own packages, so it uses
the standard library only and nothing else of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

#: Name of the class attribute under which `rag_system` leaves the settings.
SETTINGS_ATTRIBUTE = "__oloproof_settings__"


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved passage.

    `doc_id` names the document, `chunk_id` the part of it when the index holds parts. `score` is the
    retriever's own number; it is recorded and never used to sort. `text` is what the generator reads.
    """

    doc_id: str
    score: float | None = None
    text: str | None = None
    chunk_id: str | None = None


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What `retrieve` returns: the query it used, the depth it was asked for, and the candidates in order.

    The order is authoritative: position 1 is the first candidate, whatever the scores say. There may
    be fewer candidates than `depth`, never more.
    """

    query: Any
    depth: int
    candidates: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class SystemSettings:
    """The settings a class declares through `rag_system`; oloproof.yaml may override each."""

    name: str
    version: str
    depth: int
    top_k: int
    token_budget: int | None
    index_version: str


def rag_system(
    *,
    name: str,
    version: str,
    depth: int,
    top_k: int,
    index_version: str,
    token_budget: int | None = None,
) -> Callable[[type[T]], type[T]]:
    """Declare a class as a RAG system with two stages.

    The class has `retrieve(self, input, depth) -> Retrieval` and `generate(self, input, context) -> dict`,
    where `context` is a tuple of `Passage`; with a `token_budget` also `count_tokens(self, passage) -> int`.

    `depth` is how many candidates `retrieve` is asked for, `top_k` how many of them may reach the context,
    `token_budget` how many tokens the context may hold (None: no limit). `index_version` names the
    state of the index: change it whenever the index changes.

    Raises TypeError or ValueError where the class is declared when a setting has the wrong type or range,
    or a stage is missing.
    """
    for label, text in (("name", name), ("version", version), ("index_version", index_version)):
        if not isinstance(text, str):
            raise TypeError(f"rag_system: {label} must be a string, got {text!r}")
        if not text.strip():
            raise ValueError(f"rag_system: {label} must not be empty")
    for label, number in (("depth", depth), ("top_k", top_k), ("token_budget", token_budget)):
        if number is None and label == "token_budget":
            continue
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"rag_system: {label} must be a whole number, got {number!r}")
        if number < 1:
            raise ValueError(f"rag_system: {label} must be at least 1, got {number}")
    settings = SystemSettings(name, version, depth, top_k, token_budget, index_version)

    def declare(cls: type[T]) -> type[T]:
        if not isinstance(cls, type):
            raise TypeError(f"rag_system decorates a class, got {cls!r}")
        for stage in ("retrieve", "generate"):
            if not callable(getattr(cls, stage, None)):
                raise TypeError(f"rag_system: class {cls.__name__} has no method {stage}")
        setattr(cls, SETTINGS_ATTRIBUTE, settings)
        return cls

    return declare
