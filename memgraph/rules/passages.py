"""Split a text into the passages that are compared with those of other texts; pure."""

from __future__ import annotations

from typing import Final

from memgraph.text.sentences import split_sentences

MAX_WORDS: Final = 40
"""A passage is made of whole sentences while they have at most so many words together."""
MAX_PASSAGES: Final = 6


def passages(text: str) -> list[str]:
    """Return the passages of a text in order, at most ``MAX_PASSAGES``.

    A sentence of more than ``MAX_WORDS`` words is one passage, however long it is.
    """
    found: list[str] = []
    room = 0
    for line in text.splitlines():
        for sentence in split_sentences(line):
            size = len(sentence.split())
            if found and size <= room:
                found[-1] = f"{found[-1]} {sentence}"
                room -= size
            elif size:
                found.append(sentence)
                room = MAX_WORDS - size
    return found[:MAX_PASSAGES]
