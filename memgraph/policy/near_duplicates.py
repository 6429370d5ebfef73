"""Which of many texts nearly say what another one says, without comparing each with each."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

from memgraph.policy.dedup import JACCARD_THRESHOLD, Sameness, compare, jaccard, word_set

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
    spread = Counter(word for each in words.values() for word in each)
    seen: defaultdict[str, list[int]] = defaultdict(list)
    found: dict[int, int] = {}
    for key, own in words.items():
        first = sorted(own, key=lambda word: (spread[word], word))[: _prefix(len(own))]
        sharing = {one for word in first for one in seen[word][-MOST_CANDIDATES:]}
        # What two sets share is the smaller one at most.
        least, most = JACCARD_THRESHOLD * len(own), len(own) / JACCARD_THRESHOLD
        candidates = sorted(one for one in sharing if least <= len(words[one]) <= most)
        for other in candidates[-MOST_CANDIDATES:]:
            if jaccard(own, words[other]) < JACCARD_THRESHOLD:
                continue
            if compare(texts[other], texts[key]) is Sameness.NEAR:
                found[key] = other
                break
        for word in first:
            seen[word].append(key)
    return found


def _prefix(size: int) -> int:
    return size - math.ceil(JACCARD_THRESHOLD * size) + 1 if size else 0
