"""Cut a long text to the sentences that match a question."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from memgraph.rules.budget import counted
from memgraph.text.lexicon import STOP_WORDS
from memgraph.text.sentences import split_sentences
from memgraph.text.stem import stem, words

ELLIPSIS = "…"
"""Stands for each omitted part of a text."""

_FIRST_WORDS = 12
_FEWEST_CHARS = 8
_SMALLER = 0.9
# A blank is looked for at most this far from a cut, in characters.
_NEAR_CHARS = 12
_BLANK = re.compile(r"\s")
_LAST_WORD = re.compile(r"\s\S*\Z")


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words, without stop words."""
    return frozenset(stem(word) for word in words(text) if word not in STOP_WORDS)


def excerpt(text: str, limit: int, stems: Collection[str] = ()) -> str:
    """Return at most about ``limit`` tokens of a text.

    A text that costs no more is returned as it is. Of a longer one remain its first words, the
    sentences that share most words with the question and, if there is room, the first others, in
    their order, with `ELLIPSIS` in place of the rest. Of a sentence that is too long itself, the
    part around the first match remains.

    Args:
        limit: tokens; the result may cost a few more, never more than the whole text.
        stems: the stems of the question's words.
    """
    whole = " ".join(text.split())
    if counted(whole) <= limit:
        return text
    sentences = [
        sentence for line in text.splitlines() for sentence in split_sentences(line) if sentence
    ]
    beginning = " ".join(sentences[0].split()[:_FIRST_WORDS])
    if counted(beginning) * 2 > limit:
        # Text without blanks, or very little room.
        beginning = ""
    shared = [len(content_stems(sentence) & set(stems)) for sentence in sentences]
    chosen, next_best, room = _chosen(sentences, shared, counted(beginning), limit)
    if next_best is not None and (not chosen or room > limit // 2):
        # Without one more ellipsis: it may be cut at both ends.
        sentences[next_best] = _around(sentences[next_best], room - 1, stems)
        chosen.add(next_best)
    return _joined(sentences, chosen, beginning)


def _chosen(
    sentences: Sequence[str], shared: Sequence[int], first_words: int, limit: int
) -> tuple[set[int], int | None, int]:
    """Return the places of the best sentences that fit, most shared words first, and the place of
    the next one, which does not fit, with the room for it.

    Of those that share as many, the first.

    Args:
        first_words: the tokens of the first words, which the first sentence would replace.
    """
    chosen: set[int] = set()
    # Before and behind the text; every gap between two places has an ellipsis.
    ends = {-1, len(sentences)}
    room = limit - first_words - 1
    for at in sorted(range(len(sentences)), key=lambda at: (-shared[at], at)):
        gaps = 1 - len({at - 1, at + 1} & (chosen | ends))
        cost = counted(sentences[at]) + gaps
        if cost > room:
            return chosen, at, room + first_words * (0 in chosen)
        chosen.add(at)
        room -= cost
    return chosen, None, room


def _joined(sentences: Sequence[str], chosen: set[int], beginning: str) -> str:
    parts = [] if 0 in chosen or not beginning else [beginning]
    before = -1 if 0 in chosen else 0
    for at in sorted(chosen):
        if at != before + 1 or (at == 1 and 0 not in chosen) or (at and not parts):
            parts.append(ELLIPSIS)
        parts.append(sentences[at])
        before = at
    if before != len(sentences) - 1:
        parts.append(ELLIPSIS)
    return " ".join(" ".join(parts).split()).replace(f"{ELLIPSIS} {ELLIPSIS}", ELLIPSIS)


def _around(sentence: str, limit: int, stems: Collection[str]) -> str:
    """Return the part of a sentence around its first word of the question."""
    first = next(
        (
            match.start()
            for match in re.finditer(r"\w+", sentence)
            if not content_stems(match.group()).isdisjoint(stems)
        ),
        0,
    )
    length = int(len(sentence) * max(limit, 1) / max(counted(sentence), 1))
    while True:
        length = max(length, _FEWEST_CHARS)
        start = min(max(first - length // 3, 0), max(len(sentence) - length, 0))
        end = min(start + length, len(sentence))
        part = _between_words(sentence, start, end).strip()
        if counted(part) <= limit or length == _FEWEST_CHARS:
            before = f"{ELLIPSIS} " if start else ""
            return before + part + (f" {ELLIPSIS}" if end < len(sentence) else "")
        length = int(length * _SMALLER)


def _between_words(text: str, start: int, end: int) -> str:
    """Return a span of a text without the words that it cuts, if there is a blank nearby."""
    near = max((end - start) // 2, min(end - start, _NEAR_CHARS))
    if start and not text[start - 1].isspace():
        blank = _BLANK.search(text, start, start + near)
        start = start if blank is None else blank.end()
    if end < len(text) and not text[end].isspace():
        part = _LAST_WORD.search(text, end - near, end)
        end = end if part is None else part.start()
    return text[start:end]
