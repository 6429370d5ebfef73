"""Compare texts: duplicates, near duplicates, and lines that the memory handed out."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from typing import Final

from memgraph.text.lexicon import NEGATIONS
from memgraph.text.sentences import split_sentences
from memgraph.text.stem import CONTRACTIONS

JACCARD_THRESHOLD: Final = 0.75
"""The share of words that two near texts have in common, at least."""


def normalise_content(text: str) -> str:
    """Return a text in NFC, stripped, with every run of white space as one space."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def content_hash(text: str) -> str:
    """Return the SHA-256 of the folded text in UTF-8, 64 hexadecimal digits.

    Two texts with the same hash are duplicates. A text of punctuation alone is not folded.
    """
    # surrogatepass, so that every str has a hash; storing such a text is refused elsewhere.
    return hashlib.sha256(_identity(text).encode("utf-8", "surrogatepass")).hexdigest()


def _identity(text: str) -> str:
    return folded(text) or normalise_content(text)


def word_set(text: str) -> frozenset[str]:
    """Return the words after NFKC and case folding; a contraction is one word.

    In a script without spaces a whole run is one word: such texts are compared by
    ``content_hash`` alone.
    """
    return frozenset(_word_list(text))


def _word_list(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return CONTRACTIONS.findall(folded)


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Return the number of shared words by that of all words, 0..1; 0 for two empty sets.

    Source: P. Jaccard, "The distribution of the flora in the alpine zone", 1912.
    """
    shared = len(left & right)
    union = len(left) + len(right) - shared
    return shared / union if union else 0.0


def is_near(left: str, right: str) -> bool:
    """Return True if two texts are equal, or differ in a few words.

    These may be no names, numbers or negations: "the limit is 10" and "the limit is not 20" overlap
    by ``JACCARD_THRESHOLD``, but say different things. The order of words is ignored; see
    ``same_order``.
    """
    if _identity(left) == _identity(right):
        return True
    near = jaccard(word_set(left), word_set(right)) >= JACCARD_THRESHOLD
    return near and same_weights(left, right)


def same_order(left: str, right: str) -> bool:
    """Return True if the words that two texts share stand in one order, by their first places.

    "Ann lent Ben 50" and "Ben lent Ann 50" differ in nothing else.
    """
    shared = word_set(left) & word_set(right)
    first, second = (
        [word for word in dict.fromkeys(_word_list(text)) if word in shared]
        for text in (left, right)
    )
    return first == second


def same_weights(left: str, right: str) -> bool:
    """Return True if two texts contain the same names, numbers and negations.

    A word with a capital letter counts as a name.
    """
    names = _capitalised(left) | _capitalised(right)
    return not any(word in names or _weighs(word) for word in word_set(left) ^ word_set(right))


def _capitalised(text: str) -> frozenset[str]:
    found = CONTRACTIONS.findall(unicodedata.normalize("NFKC", text).replace("’", "'"))
    return frozenset(word.casefold() for word in found if word != word.lower())


def _weighs(word: str) -> bool:
    """Return True for a word that changes the meaning of a sentence: a negation, a number."""
    return (
        word in NEGATIONS
        or word.endswith("n't")
        or any(character.isnumeric() for character in word)
    )


MEMORY_ID: Final = r"(?:fact|ep|ref)_[0-9A-Za-z]{20,32}"


# Find what the memory handed out, when it comes back in a conversation.


_ENDS: Final = " .!?…。！？"


def folded(text: str) -> str:
    """Return a text in NFKC, without case, runs of white space and sentence-final punctuation."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(_ENDS)


def statements(text: str) -> set[str]:
    """Return the lines of a text and their sentences, folded."""
    lines = [line for line in text.splitlines() if line.strip()]
    parts = [part for line in lines for part in (line, *split_sentences(line))]
    return {folded(part) for part in parts} - {""}


def without_echoes(text: str, handed_out: Mapping[str, int], at_ms: int) -> tuple[str, int]:
    """Return a text without the lines and sentences that were handed out, and their number.

    Args:
        handed_out: folded lines and sentences, each with the time when it was first handed out.
        at_ms: when the text was stored; only what was handed out before counts.
    """

    def is_echo(part: str) -> bool:
        return handed_out.get(folded(part), at_ms) < at_ms

    count = 0
    lines = []
    for line in text.splitlines():
        parts = [line] if is_echo(line) else split_sentences(line)
        remaining = [part for part in parts if not is_echo(part)]
        count += len(parts) - len(remaining)
        lines.append(line if len(remaining) == len(parts) else " ".join(remaining))
    return ("\n".join(line for line in lines if line.strip()), count) if count else (text, 0)
