"""The effective settings of a RAG system, and the identities of what its stages produce."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from oloproof.canonical import canonical_json, digest, framed
from oloproof.identity.fingerprint import Fingerprints
from oloproof.records import Candidate, Case

#: Fields of `System` whose parts are ingredients in a group of that name.
ENVIRONMENT, PREPARE = "environment", "prepare"


@dataclass(frozen=True)
class System:
    """What a run measured: the declared settings with the overrides of oloproof.yaml, and the code fingerprints.

    `object` is `module:Class`. `environment` is the digest of the variables that `identity.env` names, in hex; empty
    when it names none. `prepare` is the digest of the command that prepares a checkout, with the scripts it runs; empty
    when there is none.
    """

    name: str
    version: str
    object: str
    depth: int
    top_k: int
    token_budget: int | None
    index_version: str
    fingerprints: Fingerprints
    environment: str = ""
    prepare: str = ""


@dataclass(frozen=True)
class Reranker:
    """A function of the user's that reorders candidates: `object` is `module:function`, `code` its fingerprint."""

    object: str
    code: str


class StageDigests(NamedTuple):
    """One digest a stage."""

    retrieve: bytes
    count_tokens: bytes
    generate: bytes


class Identities:
    """Digests (32 bytes) of the stage results of one system.

    Retrieval does not depend on top_k or the budget, generation not on how its context came about; case id,
    metadata, order and checkout path are part of none.
    """

    def __init__(self, system: System) -> None:
        prints = system.fingerprints
        who = (system.name, system.version, system.object, system.environment, system.prepare)
        count = prints.count_tokens if system.token_budget is not None else ""
        self._retrieval = digest("retrieval", *who, prints.retrieve, system.index_version, str(system.depth))
        self._tokens = digest("tokens", *who, prints.count_tokens)
        self._generation = digest("generation", *who, prints.generate)
        self._execution = digest(
            "execution", str(system.top_k), str(system.token_budget), count, prints.generate
        )
        #: What the names of all results of a stage begin with, as it goes into their digests.
        self._retrievals = framed(self._retrieval)
        self._counts = framed(self._tokens)
        self._generations = framed(self._generation)
        self._executions = framed(self._execution)

    @property
    def stages(self) -> StageDigests:
        """What the results of each stage depend on, apart from what goes into it and the files it reads."""
        return StageDigests(self._retrieval, self._tokens, self._generation)

    def retrieval(self, case: Case) -> bytes:
        return sha256(self._retrievals + framed(case.input_given)).digest()

    def reranked(self, retrieval: bytes, reranker: Reranker) -> bytes:
        """A recorded retrieval, named by its key, in the order of a reranker."""
        return digest("reranked", retrieval, reranker.object, reranker.code)

    def execution(self, retrieval: bytes) -> bytes:
        return sha256(self._executions + framed(retrieval)).digest()

    def token_count(self, candidate: Candidate) -> bytes:
        return sha256(self._counts + framed(canonical_json(candidate))).digest()

    def generation(self, case: Case, context: Iterable[Candidate]) -> bytes:
        parts = framed(case.input_given, canonical_json(list(context)))
        return sha256(self._generations + parts).digest()

    def given_execution(self, generation: bytes) -> bytes:
        """An execution whose context was given, not retrieved."""
        return digest("given context", generation)


def judgment_id(execution: bytes, evaluator: bytes, expected: str) -> bytes:
    """Identity of a judgment: the execution, the evaluator's definition and code version, the expected value."""
    return digest("judgment", execution, evaluator, expected)


def judgment_ids(execution: bytes, evaluators: Iterable[bytes], expected: Iterable[str]) -> list[bytes]:
    """`judgment_id` for several evaluators, each given as `framed` puts it, and what each expects."""
    start = framed("judgment", execution)
    return [
        sha256(start + evaluator + framed(value)).digest()
        for evaluator, value in zip(evaluators, expected, strict=True)
    ]


def text_id(text: str) -> str:
    """The name under which a passage's text is stored: 128 bits of its SHA-256, in hex."""
    return sha256(text.encode()).hexdigest()[:32]
