"""Writes data/corpus.jsonl and data/faq.jsonl from the package `zaragoza-construction-faq`.

    pip install -r requirements.txt
    python convert.py

Each question becomes a case, each answer a document. The opening sentence of an answer is what a reply
to its question has to contain. Six questions are asked twice, with two answers; either answer is a good
one to find, so both documents count as relevant to both cases, while each case goes on expecting the
sentence, and has as its gold passage the answer, that the package gives with it.
"""

import json
from collections import defaultdict
from pathlib import Path

import zaragoza_construction_faq
from sentences import split_sentences

DATA = Path(__file__).parent / "data"

# Thirty-nine categories over 503 questions are too fine to say anything; these six areas are ours.
AREAS = {
    "tax": ("rot-avdrag", "rut-avdrag", "f-skatt", "omvand-moms", "personalliggare"),
    "permits": (
        "bygglov", "bbr-pbl", "attefallshus-friggebod", "marklov-rivningslov", "strandskydd",
        "altan-staket-plank", "tomtgrans-servitut", "buller-granne",
    ),
    "contracts": (
        "kontrakt", "dolda-fel", "dispute", "reklamation-process", "garantier", "forsakring-ansvar",
        "besiktning",
    ),
    "firms": ("verifiera-byggfirma", "yrkesbevis-certifikat", "arbetsmiljo"),
    "works": (
        "takläggning", "badrumsrenovering", "koksrenovering", "fasadrenovering", "tillbyggnad", "isolering",
        "kostnader",
    ),
    "installations": (
        "vvs", "elinstallation", "varmesystem", "ventilation", "energideklaration", "radon-fuktskador",
        "solceller-varmpump", "bergvarme-jordvarme", "oppen-spis-vedeldning",
    ),
}  # fmt: skip
AREA_OF = {category: area for area, categories in AREAS.items() for category in categories}


def documents(entries):
    """One document per answer, under the id that the package gives the pair."""
    return [{"doc_id": entry["id"], "text": entry["a"]} for entry in entries]


def cases(entries):
    """One case per pair, in the package's order."""
    answered_by = defaultdict(list)
    for entry in entries:
        answered_by[entry["q"]].append(entry["id"])
    return [
        {
            "id": entry["id"],
            "input": {"question": entry["q"]},
            "expected": {
                "answer": split_sentences(entry["a"])[0],
                "relevant": [{"doc_id": doc_id} for doc_id in answered_by[entry["q"]]],
                "gold_context": [{"doc_id": entry["id"], "text": entry["a"]}],
            },
            "metadata": {"area": AREA_OF[entry["category"]], "category": entry["category"]},
        }
        for entry in entries
    ]


def render():
    """The converted files: path and full text of each."""
    entries = zaragoza_construction_faq.load(lang="en")
    return {
        DATA / "corpus.jsonl": _json_lines(documents(entries)),
        DATA / "faq.jsonl": _json_lines(cases(entries)),
    }


def _json_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)


if __name__ == "__main__":
    for path, text in render().items():
        path.write_text(text, encoding="utf-8", newline="\n")
        print(f"{path}: {len(text.splitlines())} lines")
