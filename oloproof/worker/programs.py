"""What a command line says of the files that a program reads.

Loaded inside the worker, so standard library only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
#: What may stand around a path in the text of a shell, or before it in an option.
_WORD = re.compile(r"[^\s'\"=<>|;&(){}`,]+")
MAX_NAME = 60


def program_name(program: str, words: Sequence[str]) -> str:
    """How a program is called in a warning: of a shell, the first word of what it is to run."""
    name = os.path.basename(program)
    if name in _SHELLS and len(words) > 0:
        found = _WORD.findall(words[-1])
        name = os.path.basename(found[0]) if found else name
    return "".join(c if c.isprintable() and c != "/" else "?" for c in name)[:MAX_NAME] or "?"


def named_paths(words: Sequence[str]) -> set[str]:
    """What of a command line may be a path."""
    found = set(words)
    for word in words:
        found.update(_WORD.findall(word))
    return {path for path in found if path and "\0" not in path}
