"""The normal form of a name, under which it is looked up."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_POSSESSIVES: Final = ("'s", "s'")
# The scripts of East Asia begin here; they write no spaces between words.
_UNPARTED: Final = "\u2e80"
_EDGE: Final = ' .,;:!?"“”„«»()[]{}'


def canonical(name: str) -> str:
    """Return the name in NFKC, case-folded, without edge punctuation or possessive ``'s``.

    White space is collapsed. Idempotent. May be empty, when the name contains nothing else. ``@``
    and ``#`` are kept: a handle and a word are different names.
    """
    text = name
    while True:
        folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
        folded = " ".join(folded.split()).strip(_EDGE)
        if folded.endswith(_POSSESSIVES[0]):
            folded = folded[:-2]
        elif folded.endswith(_POSSESSIVES[1]):
            folded = folded[:-1]
        # Folding and stripping can each open the way for the other ("’S." and the like).
        if folded == text:
            return folded
        text = folded


def is_unspaced(letter: str) -> bool:
    """Return True when it belongs to a script without spaces between words."""
    return letter >= _UNPARTED


def as_a_word(name: str) -> str:
    """Return a pattern for a name as a whole word, in a script that separates words."""
    before = "" if is_unspaced(name[0]) else r"(?<!\w)"
    after = "" if is_unspaced(name[-1]) else r"(?!\w)"
    return f"{before}{re.escape(name)}{after}"
