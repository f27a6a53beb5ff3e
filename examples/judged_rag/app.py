"""A support assistant whose answers sound better than they are: some add what no passage says.

Retrieval counts shared words, so the example is quick and gives the same answers on every machine. What a judge has to
find is in `generate`: it promises more than it has read, and answers when it has read nothing.
"""

import json
import re
from pathlib import Path

from oloproof import Passage, Retrieval, rag_system

CORPUS = Path(__file__).parent / "data" / "corpus.jsonl"
STOP_WORDS = {
    "a", "an", "and", "are", "at", "do", "does", "for", "from", "how", "i", "in", "is", "it", "long", "my", "of", "on",
    "or", "our", "the", "to", "what", "when", "who", "with", "you", "your",
}  # fmt: skip
PROMISES = {"refund": "No questions are asked.", "seat": "Unused seats are paid back in full."}


def words(text):
    """The distinct words of a text: lower case, no stop words, no plural s."""
    found = re.findall(r"[a-z0-9]+", text.lower())
    return {word.removesuffix("s") for word in found if word not in STOP_WORDS}


@rag_system(name="judged-rag", version="1", depth=4, top_k=2, index_version="kb-1")
class JudgedRag:
    """Answers with a sentence of the best passage, and a promise where it knows one."""

    def __init__(self):
        self.documents = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]

    def retrieve(self, input, depth):
        """The documents that share a word with the question, those that share most first."""
        question = words(input["question"])
        found = [
            Passage(doc_id=each["doc_id"], score=float(shared), text=each["text"])
            for each in self.documents
            if (shared := len(question & words(each["text"])))
        ]
        found.sort(key=lambda passage: passage.score, reverse=True)
        return Retrieval(query=input["question"], depth=depth, candidates=tuple(found[:depth]))

    def generate(self, input, context):
        """An answer with the passage that it cites."""
        if not context:
            return {"answer": "Yes, that is part of every plan.", "citations": []}
        question = words(input["question"])
        best = max(context, key=lambda passage: len(question & words(passage.text)))
        sentence = max(re.split(r"(?<=[.!?])\s+", best.text), key=lambda each: len(question & words(each)))
        promises = [promise for word, promise in PROMISES.items() if word in question]
        return {"answer": " ".join([sentence, *promises]), "citations": [best.doc_id]}
