"""Where the sentences of an answer end, for the converter and the app alike."""

import re

# The full stop of an abbreviation ends no sentence: "AB 04 kap. 5", "(e.g. a garage)". A capital after
# "kap." (chapter) does begin one, as that word often stands last.
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\bkap\.)(?<!\be\.g\.)(?<!\bapprox\.)(?<!\borg\.)(?<!\bch\.)(?<!\bp\.)\s+"
    r"|(?<=\bkap\.)\s+(?=[A-ZÅÄÖ])"
)
_SHORTEST = 4


def split_sentences(text):
    """The sentences of a text; a fragment under four words, such as "No.", stays with what follows it."""
    joined = []
    for sentence in _SENTENCE_END.split(text):
        if joined and len(joined[-1].split()) < _SHORTEST:
            joined[-1] += " " + sentence
        else:
            joined.append(sentence)
    return joined
