"""Reduce words to stems like the full-text index: folded case, no diacritics, Porter stemming.

This reimplements FTS5's ``porter unicode61 remove_diacritics 2``, so that the terms of a question
can be looked up in the index's vocabulary and compared with texts outside the index.

Source: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from typing import Final

LETTERS: Final = re.compile(r"[^\W\d_]+")
"""Runs of letters."""
WORDS: Final = re.compile(r"[^\W_]+")
"""Runs of letters and digits, as the text index splits a text."""
CONTRACTIONS: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
"""Words; a contraction is one word: "don't"."""

_VOWELS = frozenset("aeiou")
# Like FTS5, do not stem very short and very long words.
_SHORTEST, _LONGEST = 3, 64

_STEP_2 = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("logi", "log"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
)
_STEP_3 = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
_STEP_4 = (
    "ement",
    "ance",
    "ence",
    "able",
    "ible",
    "ment",
    "ant",
    "ent",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
    "ion",
    "al",
    "er",
    "ic",
    "ou",
)


def words(text: str) -> list[str]:
    """Return the folded words of a text, in order, including repetitions."""
    return WORDS.findall(fold(text))


def fold(text: str) -> str:
    """Return a text in lower case, without diacritical marks."""
    folded = text.casefold()
    if folded.isascii():
        return folded
    # Mathematical letters have no case until they are decomposed, so fold the case again.
    decomposed = unicodedata.normalize("NFKD", folded).casefold()
    return "".join(char for char in decomposed if not unicodedata.combining(char))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a folded word; a word that is not ASCII is returned unchanged."""
    if not _SHORTEST <= len(word) <= _LONGEST or not (word.isascii() and word.isalnum()):
        return word
    word = _plural(word)
    word = _past_and_gerund(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
    word = _without_suffix(word)
    return _without_final_e(word)


def _is_consonant(word: str, at: int) -> bool:
    if word[at] in _VOWELS:
        return False
    return word[at] != "y" or at == 0 or not _is_consonant(word, at - 1)


def _measure(word: str) -> int:
    """Return Porter's measure m: the number of vowel sequences followed by a consonant."""
    kinds = [_is_consonant(word, at) for at in range(len(word))]
    return sum(1 for before, after in pairwise(kinds) if after and not before)


def _has_vowel(word: str) -> bool:
    return any(not _is_consonant(word, at) for at in range(len(word)))


def _ends_double(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _is_consonant(word, len(word) - 1)


def _ends_short(word: str) -> bool:
    """Return True if a word ends in consonant, vowel, consonant other than w, x and y."""
    size = len(word)
    return (
        size > 2
        and _is_consonant(word, size - 1)
        and not _is_consonant(word, size - 2)
        and _is_consonant(word, size - 3)
        and word[-1] not in "wxy"
    )


def _plural(word: str) -> str:
    # Like FTS5, do not cut off the whole word.
    if (word.endswith("sses") and len(word) > 4) or (word.endswith("ies") and len(word) > 3):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _past_and_gerund(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return _restored(rest) if _has_vowel(rest) else word
    return word


def _restored(word: str) -> str:
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _ends_double(word) and word[-1] not in "lsz":
        return word[:-1]
    if _measure(word) == 1 and _ends_short(word):
        return word + "e"
    return word


def _replaced(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    for suffix, replacement in rules:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return rest + replacement if _measure(rest) > 0 else word
    return word


def _without_suffix(word: str) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            if suffix == "ion" and not rest.endswith(("s", "t")):
                return word
            return rest if _measure(rest) > 1 else word
    return word


def _without_final_e(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _ends_short(rest)):
            word = rest
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word
