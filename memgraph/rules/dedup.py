"""Compare texts at two levels: equal content, and nearly equal words.

Equal content lets a write be answered with ``duplicate`` and its text be dropped, so it is strict:
only canonical Unicode forms (NFC) and white space are evened out. Case and compatibility forms
are kept apart, because "US" is not "us" and "10²" is not "102".
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

JACCARD_THRESHOLD = 0.75

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_NEGATIONS = frozenset(
    ["cannot", "never", "no", "nobody", "none", "nor", "not", "nothing", "nowhere", "without"]
)


class Similarity(StrEnum):
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


def compare(left: str, right: str, threshold: float = JACCARD_THRESHOLD) -> Similarity:
    """Return how alike two texts are.

    NEAR asks for a word overlap of at least ``threshold``, and for the same numbers and
    negations: "the limit is 10" and "the limit is not 20" overlap well and say different things.
    The order of words is not looked at.
    """
    if normalise_content(left) == normalise_content(right):
        return Similarity.EXACT
    words_left, words_right = word_set(left), word_set(right)
    if jaccard(words_left, words_right) < threshold:
        return Similarity.DIFFERENT
    return Similarity.NEAR if same_weights(left, right) else Similarity.DIFFERENT


def same_weights(left: str, right: str) -> bool:
    """Return True when two texts hold the same numbers and negations, whatever else they say."""
    return not any(_weighs(word) for word in word_set(left) ^ word_set(right))


def _weighs(word: str) -> bool:
    """A single word that turns what a sentence says."""
    return (
        word in _NEGATIONS
        or word.endswith("n't")
        or any(character.isnumeric() for character in word)
    )


# Which of many texts nearly say what another one says, without comparing each with each.


MOST_CANDIDATES: Final = 50
"""So many texts that share a rare word are compared with one: bounded, whatever the texts are."""


def near_duplicates(texts: Mapping[int, str]) -> dict[int, int]:
    """For each text that ``compare`` calls NEAR to an earlier one: the key of that one, the lowest.

    Two sets of words with a Jaccard index of at least t have one of the first
    ``|A| - ceil(t |A|) + 1`` words of A in common, in any one order of the words: only texts that
    share such a word are compared. The order is by rarity, so that few are.

    Source: S. Chaudhuri, V. Ganti, R. Kaushik, "A Primitive Operator for Similarity Joins in Data
    Cleaning", ICDE 2006 (the prefix filter).

    Args:
        texts: by key; a text stands for the others in the order of its key.
    """
    words = {key: word_set(texts[key]) for key in sorted(texts)}
    spread = Counter(word for words_of_item in words.values() for word in words_of_item)
    places: defaultdict[str, list[int]] = defaultdict(list)
    duplicates: dict[int, int] = {}
    for key, own in words.items():
        first = sorted(own, key=lambda word: (spread[word], word))[: _prefix(len(own))]
        sharing = {place for word in first for place in places[word][-MOST_CANDIDATES:]}
        # What two sets share is the smaller one at most.
        min_words, max_words = JACCARD_THRESHOLD * len(own), len(own) / JACCARD_THRESHOLD
        candidates = sorted(
            place for place in sharing if min_words <= len(words[place]) <= max_words
        )
        for other in candidates[-MOST_CANDIDATES:]:
            if jaccard(own, words[other]) < JACCARD_THRESHOLD:
                continue
            if compare(texts[other], texts[key]) is Similarity.NEAR:
                duplicates[key] = other
                break
        for word in first:
            places[word].append(key)
    return duplicates


def _prefix(size: int) -> int:
    return size - math.ceil(JACCARD_THRESHOLD * size) + 1 if size else 0
