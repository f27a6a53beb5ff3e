"""What an earlier walk reached, as long as everything that it looked at looks the same.

A walk is a function of what it is asked, of what it sees on disk, and of the code that walks: nothing else goes into
it. What it sees decides where it looks next, so its result stands at the end of a trail: each entry on it has for its
key a digest over all that was seen up to there, and says either where to look next, or what was reached. Entries never
change; projects in different states have trails that part where what was seen differs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from oloproof.canonical import canonical_json, digest, given_json
from oloproof.identity.disk import Disk
from oloproof.identity.summary import ParseCache

#: The modules of ours that a walk runs beside those of this package.
ELSEWHERE = ("canonical.py", "jsontext.py", "worker/left_out.py")
#: What an entry has: notes of where to look next; or the libraries of each stage, and the ingredients that stages have
#: in common, by the names of these stages.
_NEXT, _LIBRARIES, _INGREDIENTS = "next", "libraries", "ingredients"


@dataclass(frozen=True, slots=True)
class Reached:
    """What one stage reaches: ingredients by name, and the top-level names of modules outside the project."""

    ingredients: Mapping[str, str]
    libraries: frozenset[str]


#: By stage; None for one that is not there.
AllReached = dict[str, Reached | None]


def reached_again(
    question: Sequence[Any],
    first: Iterable[str],
    disk: Disk,
    kept: ParseCache | None,
    walk: Callable[[], AllReached],
) -> AllReached:
    """What `walk` gives: from `kept` when it gave that before and would again.

    `question` is all that the walk is asked, as JSON can hold it; `first` are notes of looks that it takes in any case,
    `disk` is what it looks through. Raises what the walk raises.
    """
    version = code_version()
    if kept is None or not version:
        return walk()
    trail = digest("walk", version, canonical_json(list(question)))
    known: dict[str, None] = {}
    notes: list[str] = list(first)
    while True:
        known.update(dict.fromkeys(notes))
        trail = _step(trail, notes, disk)
        try:
            entry = json.loads(kept.read(_key(trail)) or "{}")
            if _LIBRARIES in entry:
                return _read(entry)
            notes = [note for note in entry.get(_NEXT, ()) if note not in known]
            for note in notes:
                disk.look(note)
        except (ValueError, TypeError, AttributeError):
            break  # a damaged entry is none
        if not notes:
            break
    found = walk()
    entries = {}
    if more := [note for note in disk.seen if note not in known]:
        entries[_key(trail)] = canonical_json({_NEXT: more})
        trail = _step(trail, more, disk)
    kept.write({**entries, _key(trail): _written(found)})
    return found


def _step(trail: bytes, notes: Sequence[str], disk: Disk) -> bytes:
    return digest(trail, canonical_json([[note, disk.look(note)] for note in notes]))


def _key(trail: bytes) -> str:
    return "walk/" + trail.hex()


def _written(found: AllReached) -> str:
    stages: dict[tuple[str, str], str] = {}
    libraries: dict[str, list[str] | None] = {}
    for stage, reached in found.items():
        libraries[stage] = None if reached is None else sorted(reached.libraries)
        for each in reached.ingredients.items() if reached is not None else ():
            stages[each] = f"{stages[each]} {stage}" if each in stages else stage
    ingredients: dict[str, dict[str, str]] = {}
    for (name, value), together in stages.items():
        ingredients.setdefault(together, {})[name] = value
    return given_json({_LIBRARIES: libraries, _INGREDIENTS: ingredients})


def _read(entry: Mapping[str, Any]) -> AllReached:
    """What `_written` wrote. Raises ValueError, TypeError or AttributeError for anything else."""
    ingredients: dict[str, dict[str, str]] = {stage: {} for stage in entry[_LIBRARIES]}
    for together, found in entry.get(_INGREDIENTS, {}).items():
        if not all(isinstance(value, str) for value in found.values()):
            raise ValueError("ingredients that are no texts")
        for stage in together.split(" "):
            ingredients.get(stage, {}).update(found)
    return {
        stage: None if libraries is None else Reached(ingredients[stage], frozenset(map(str, libraries)))
        for stage, libraries in entry[_LIBRARIES].items()
    }


@cache
def code_version() -> str:
    """A digest of the code that walks and of the Python that runs it; empty when that code is not there to be read."""
    here = Path(__file__).parent
    files = [*sorted(here.glob("*.py")), *(here.parent / name for name in ELSEWHERE)]
    try:
        texts = [part for file in files for part in (file.name, file.read_bytes())]
    except OSError:
        return ""
    return digest(sys.version, *texts).hex()
