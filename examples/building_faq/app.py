"""Questions about building in Sweden: BM25 over 503 published answers, and answers quoted from them.

The index is built in memory when the system is constructed, in a few hundredths of a second. There is no
model: `generate` quotes the sentences that share most words with the question.
"""

import json
from pathlib import Path

import bm25s
import numpy as np
from sentences import split_sentences

from oloproof import Passage, Retrieval, rag_system

CORPUS = Path(__file__).parent / "data" / "corpus.jsonl"
NOT_FOUND = "None of the published answers speaks about that."
QUOTED_SENTENCES = 2
ENDINGS = ("ies", "ing", "ed", "es", "s")


def stems(words):
    """The words without their English endings, so that "permits" finds "permit"."""
    return [next((word[: -len(end)] for end in ENDINGS if _ends(word, end)), word) for word in words]


def _ends(word, ending):
    return word.endswith(ending) and len(word) >= len(ending) + 3


# Settings of the retriever alone. To see what a changed retriever does to the suite, set STEMMER to None
# (words as they are written) or B to 0.4 (long answers suffer less), and run `oloproof-ci preview`.
STEMMER = stems
K1 = 1.5
B = 0.75


def terms(texts, stemmer):
    """For each text its words in lower case, without stop words; with a stemmer, their stems."""
    return bm25s.tokenize(texts, stopwords="en_plus", stemmer=stemmer, return_ids=False, show_progress=False)


@rag_system(
    name="building-faq",
    version="1",
    depth=10,
    top_k=3,
    token_budget=120,
    index_version="zaragoza-construction-faq-1.2.1",
)
class BuildingFaq:
    """Ranks the answers by BM25 and quotes the one that shares most words with the question."""

    def __init__(self):
        lines = CORPUS.read_text(encoding="utf-8").splitlines()
        self.documents = [json.loads(line) for line in lines]
        self.index = bm25s.BM25(k1=K1, b=B)
        self.index.index(terms([d["text"] for d in self.documents], STEMMER), show_progress=False)

    def retrieve(self, input, depth):
        """The answers that share a word with the question, best first."""
        (question,) = terms([input["question"]], STEMMER)
        scores = self._scores(question)
        # bm25s leaves the order of equal scores to numpy's partition; a stable sort keeps the corpus's.
        best = np.argsort(-scores, kind="stable")[:depth]
        candidates = tuple(
            Passage(
                doc_id=self.documents[position]["doc_id"],
                score=float(scores[position]),
                text=self.documents[position]["text"],
            )
            for position in best
            if scores[position] > 0
        )
        return Retrieval(query=input["question"], depth=depth, candidates=candidates)

    def _scores(self, question):
        """One BM25 score per document, rounded so that machines agree; all zero without a known word."""
        if not question:
            return np.zeros(len(self.documents))
        return self.index.get_scores(question).astype(float).round(4)

    def generate(self, input, context):
        """The two best sentences of the best passage, in their own order, and where they stand."""
        if not context:
            return {"answer": NOT_FOUND, "citations": []}
        (question,) = terms([input["question"]], stems)

        def shared(text):
            return len(set(question).intersection(*terms([text], stems)))

        best = max(context, key=lambda passage: shared(passage.text))
        found = split_sentences(best.text)
        ranked = sorted(range(len(found)), key=lambda position: shared(found[position]), reverse=True)
        quoted = sorted(ranked[:QUOTED_SENTENCES])
        return {"answer": " ".join(found[position] for position in quoted), "citations": [best.doc_id]}

    def count_tokens(self, passage):
        """The words of a passage."""
        return len((passage.text or "").split())
