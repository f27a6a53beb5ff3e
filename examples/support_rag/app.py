"""A support assistant over a small knowledge base, with the two stages that Oloproof looks into.

Everything is done by counting shared words, so the example is quick, needs no provider and gives the
same answers on every machine. A real system has a vector index and a model in the same two places.
"""

import json
import re
from pathlib import Path

from oloproof import Passage, Retrieval, rag_system

CORPUS = Path(__file__).parent / "data" / "corpus.jsonl"
NOT_FOUND = "I could not find that in the knowledge base."
STOP_WORDS = {
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "get", "has",
    "have", "how", "i", "in", "is", "it", "long", "many", "my", "no", "not", "of", "on", "or", "our",
    "that", "the", "their", "them", "then", "this", "to", "was", "we", "what", "when", "where", "which",
    "who", "why", "will", "with", "you", "your",
}  # fmt: skip


def words(text):
    """The distinct words of a text: lower case, no punctuation, no stop words, no plural s."""
    found = re.findall(r"[a-z0-9]+", text.lower())
    return {word.removesuffix("s") for word in found if word not in STOP_WORDS}


def sentences(text):
    """The sentences of a text, each with its full stop."""
    return re.split(r"(?<=[.!?])\s+", text)


@rag_system(
    name="support-rag",
    version="slice-b-example",
    depth=6,
    top_k=2,
    token_budget=40,
    index_version="kb-2026-09-16",
)
class SupportRag:
    """Finds the passages that share words with the question and answers with one of their sentences."""

    def __init__(self):
        lines = CORPUS.read_text(encoding="utf-8").splitlines()
        self.documents = [json.loads(line) for line in lines]
        self.index = [words(document["text"]) for document in self.documents]

    def retrieve(self, input, depth):
        """The documents that share a word with the question, those that share most first."""
        question = words(input["question"])
        passages = []
        for document, indexed in zip(self.documents, self.index, strict=True):
            shared = len(question & indexed)
            if shared:
                passages.append(
                    Passage(doc_id=document["doc_id"], score=float(shared), text=document["text"])
                )
        # The sort is stable: documents that share equally many words keep the order of the corpus.
        passages.sort(key=lambda passage: passage.score, reverse=True)
        return Retrieval(query=input["question"], depth=depth, candidates=tuple(passages[:depth]))

    def generate(self, input, context):
        """The best sentence of the passage that shares most words with the question, and its source."""
        if not context:
            return {"answer": NOT_FOUND, "citations": []}
        question = words(input["question"])

        def shared(text):
            return len(question & words(text))

        best = max(context, key=lambda passage: shared(passage.text))
        answer = max(sentences(best.text), key=shared)
        return {"answer": answer, "citations": [best.doc_id]}

    def count_tokens(self, passage):
        """The words of a passage; a real system asks its model's tokenizer."""
        return len((passage.text or "").split())
