"""A project whose cases say themselves what is retrieved for them and what their answer takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

#: Answers "right" when every document it needs is in the context and none that it is trapped by. With top_k 2 and a
#: budget of 6 a document takes 2 tokens, "big" takes 5. Calls are noted, and in a folder of the system's for temporary
#: files it is counted how often a case that flips was answered: it passes every second time.
APP = """
import os
from pathlib import Path
from oloproof import Passage, Retrieval, rag_system

HERE = Path(__file__).parent

def note(stage):
    with (HERE / "calls.txt").open("a") as file:
        file.write(f"{stage}\\n")

def turn(name):
    with open(f"{os.environ['TURNS']}/{name}", "ab") as file:
        before = file.tell()
        file.write(b"x")
    return before

@rag_system(name="replayed", version="1", depth=4, top_k=2, token_budget=6, index_version="1")
class Rag:
    def retrieve(self, input, depth):
        note("retrieve")
        found = list(input["found"])
        if input.get("wanders") and turn("wanders") % 2:
            found.reverse()
        passages = tuple(Passage(doc_id=name, score=1.0, text=f"{name} text") for name in found)
        return Retrieval(query=input, depth=depth, candidates=passages[:depth])

    def generate(self, input, context):
        note("generate")
        there = {passage.doc_id for passage in context}
        if there & set(input.get("dies", ())):
            raise RuntimeError("cannot answer from this")
        if "flips" in input:
            right = turn(input["flips"]) % 2 == 1
        else:
            right = set(input["needs"]) <= there and not there & set(input.get("traps", ()))
        return {"answer": "right" if right else "wrong", "citations": sorted(there)}

    def count_tokens(self, passage):
        note("count_tokens")
        return 5 if passage.doc_id == "big" else 2
"""

RERANKERS = """
from dataclasses import replace
from oloproof import Passage

def backwards(input, candidates):
    return candidates[::-1]

async def awaited(input, candidates):
    return list(candidates[::-1])

def drops(input, candidates):
    return [passage for passage in candidates if passage.doc_id == "a"]

def raises(input, candidates):
    raise ValueError("no\\nmodel")

def adds(input, candidates):
    return (*candidates, Passage(doc_id="new", text="new text"))

def duplicates(input, candidates):
    return (*candidates, candidates[0])

def rewrites(input, candidates):
    return [replace(passage, text="better") for passage in candidates]

def rescores(input, candidates):
    return [replace(passage, score=0.5) for passage in candidates]

def rewrites_in_place(input, candidates):
    for passage in candidates:
        object.__setattr__(passage, "text", "better")
    return candidates

def names(input, candidates):
    return [passage.doc_id for passage in candidates]

def nothing(input, candidates):
    pass

def ends(input, candidates):
    import os
    os._exit(3)

def hangs(input, candidates):
    import time
    time.sleep(60)
"""
CONFIG: dict[str, Any] = {
    "evaluators": [
        {"type": "contains", "criterion": "correct", "field": "answer", "expected_field": "answer"},
        {"type": "hit_rate", "k": 2},
        {"type": "citation_validity"},
    ],
}


def case(
    name: str,
    found: Iterable[str],
    needs: Iterable[str] = ("a",),
    *,
    relevant: Iterable[str] | None = ("a",),
    gold: Iterable[str] | None = ("a",),
    **more: Any,
) -> dict[str, Any]:
    """A case for which `found` is retrieved and `needs` makes the answer right; `more` is part of its input."""
    expected: dict[str, Any] = {"answer": "right"}
    if relevant is not None:
        expected["relevant"] = [{"doc_id": each} for each in relevant]
    if gold is not None:
        expected["gold_context"] = [{"doc_id": each, "text": f"{each} text"} for each in gold]
    return {
        "id": name,
        "input": {"name": name, "found": list(found), "needs": list(needs), **more},
        "expected": expected,
    }


#: Cases that fail under top_k 2 and a budget of 6, by what a diagnosis says of each.
EVERY_LABEL: Mapping[str, tuple[dict[str, Any], str]] = {
    "missed": (case("missed", ["n1", "n2"]), "RETRIEVAL_MISS, relevant_not_retrieved"),
    "below": (case("below", ["n1", "n2", "a"]), "RANKED_OUT, relevant_ranked_below_top_k"),
    "dropped": (case("dropped", ["big", "a"]), "CONTEXT_ASSEMBLY_LOSS, relevant_dropped_from_context"),
    "partly": (
        case("partly", ["a", "n1", "b"], ["a", "b"], relevant=["a", "b"], gold=["a", "b"]),
        "RANKED_OUT, part_of_relevant_ranked_below_top_k",
    ),
    "trapped": (
        case("trapped", ["a", "t"], traps=["t"]),
        "CONTEXT_DISTRACTION, recovered_with_relevant_in_context",
    ),
    "beyond": (case("beyond", ["a", "n1"], ["a", "z"]), "GENERATION_FAILURE, fails_with_gold_context"),
    "flips": (case("flips", ["a", "n1"], flips="flips"), "UNSTABLE, unstable_under_control"),
    "dies": (case("dies", ["n1", "n2"], dies=["a"]), "UNRESOLVED, intervention_evidence_missing"),
    "unlabelled": (case("unlabelled", ["n1"], relevant=None), "UNRESOLVED, no_relevance_labels"),
    "without": (case("without", ["n1"], gold=None), "NOT_DIAGNOSED, no_gold_context"),
}


def turns(folder: Path) -> dict[str, str]:
    """The environment variable that names the folder in which turns are counted."""
    place = folder.parent / f"{folder.name}-turns"
    place.mkdir(exist_ok=True)
    return {"TURNS": str(place)}
