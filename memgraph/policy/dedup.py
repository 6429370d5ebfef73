"""When two texts say the same. Two levels: equal content, and nearly equal words.

Equal content lets a write be answered with ``duplicate`` and its text be dropped, so it is strict:
only canonical Unicode forms (NFC) and white space are evened out. Case and compatibility forms
are kept apart, because "US" is not "us" and "10²" is not "102".
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from enum import StrEnum

JACCARD_THRESHOLD = 0.75

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_NEGATIONS = frozenset(
    ["cannot", "never", "no", "nobody", "none", "nor", "not", "nothing", "nowhere", "without"]
)


class Sameness(StrEnum):
    EXACT = "exact"
    NEAR = "near"
    DIFFERENT = "different"


def normalise_content(text: str) -> str:
    """NFC, every run of white space one space, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def content_hash(text: str) -> str:
    """SHA-256 of the normalised text in UTF-8, 64 hexadecimal digits."""
    # surrogatepass: total over every str; storing such a text is refused elsewhere.
    normalised = normalise_content(text).encode("utf-8", "surrogatepass")
    return hashlib.sha256(normalised).hexdigest()


def word_set(text: str) -> frozenset[str]:
    """Words after NFKC and case folding; a contraction is one word.

    A script that writes no spaces gives one word for a whole run: such texts are told apart by
    ``content_hash`` alone.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return frozenset(_WORD.findall(folded))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Shared words by all words, 0..1; two empty sets share nothing (0).

    Source: P. Jaccard, "The distribution of the flora in the alpine zone", 1912.
    """
    shared = len(left & right)
    union = len(left) + len(right) - shared
    return shared / union if union else 0.0


def compare(left: str, right: str, threshold: float = JACCARD_THRESHOLD) -> Sameness:
    """How alike two texts are.

    NEAR asks for a word overlap of at least ``threshold``, and for the same numbers and
    negations: "the limit is 10" and "the limit is not 20" overlap well and say different things.
    The order of words is not looked at.
    """
    if normalise_content(left) == normalise_content(right):
        return Sameness.EXACT
    words_left, words_right = word_set(left), word_set(right)
    if jaccard(words_left, words_right) < threshold:
        return Sameness.DIFFERENT
    return Sameness.NEAR if same_weights(left, right) else Sameness.DIFFERENT


def same_weights(left: str, right: str) -> bool:
    """Whether two texts hold the same numbers and negations, whatever else they say."""
    return not any(_weighs(word) for word in word_set(left) ^ word_set(right))


def _weighs(word: str) -> bool:
    """A single word that turns what a sentence says."""
    return (
        word in _NEGATIONS
        or word.endswith("n't")
        or any(character.isnumeric() for character in word)
    )
