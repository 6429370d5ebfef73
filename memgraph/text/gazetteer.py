"""Lists of given names, places and cue words, read once from the data files."""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_DATA: Final = Path(__file__).parent / "data"


class Gazetteer(NamedTuple):
    """Known names, case-sensitive.

    Attributes:
        given: given names, ``ambiguous`` those among them that are also ordinary words.
        lower_given: given names that may be recognised in lower case.
        cues: cue words by category, lower case.
    """

    given: frozenset[str]
    ambiguous: frozenset[str]
    lower_given: frozenset[str]
    places: frozenset[str]
    cues: dict[str, frozenset[str]]


@cache
def gazetteer() -> Gazetteer:
    ambiguous = frozenset(_words("ambiguous_names.txt"))
    written = frozenset(_words("given_names.txt")) | ambiguous
    given_names = written | {without_accents(name) for name in written}
    places = {phrase for line in _lines("places.txt") for phrase in line.split(" | ")}
    cues = (line.partition(": ") for line in _lines("cues.txt"))
    lower = {name.lower() for name in given_names - ambiguous if len(name) >= 4}
    return Gazetteer(
        given=given_names,
        ambiguous=ambiguous,
        lower_given=frozenset(lower - {word.lower() for word in ambiguous}),
        places=frozenset(places),
        cues={name: frozenset(words.split(" ")) for name, _, words in cues},
    )


def without_accents(word: str) -> str:
    """Return ``word`` with combining marks removed: "José" -> "Jose"."""
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word)
    return "".join(part for part in parts if not unicodedata.combining(part))


def _lines(name: str) -> list[str]:
    lines = (_DATA / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _words(name: str) -> list[str]:
    return [word for line in _lines(name) for word in line.split()]
