"""The form of a name under which it is looked up."""

from __future__ import annotations

import unicodedata
from typing import Final

_POSSESSIVES: Final = ("'s", "s'")
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
