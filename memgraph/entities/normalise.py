"""The form of a name under which it is looked up."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_POSSESSIVES: Final = ("'s", "s'")
# From here on stand the scripts of East Asia, which write no spaces between words.
_UNPARTED: Final = "\u2e80"
_EDGE: Final = ' .,;:!?"“”„«»()[]{}'


def canonical(name: str) -> str:
    """NFKC, case-folded, whitespace collapsed, without edge punctuation or possessive ``'s``.

    Idempotent. May be empty, when the name holds nothing else. ``@`` and ``#`` are kept: a
    handle and a word are different names.
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
    """Whether it belongs to a script that writes no spaces between words."""
    return letter >= _UNPARTED


def as_a_word(name: str) -> str:
    """A pattern for a name that is no part of a longer word, in a script that parts words."""
    before = "" if is_unspaced(name[0]) else r"(?<!\w)"
    after = "" if is_unspaced(name[-1]) else r"(?!\w)"
    return f"{before}{re.escape(name)}{after}"
