"""Fitting a line of a block into a number of tokens: the middle of a long text is cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache

from memgraph.context.blocks import render_line
from memgraph.model.context import BlockFormat, BlockLine
from memgraph.model.enums import MemoryKind
from memgraph.store.rows import built

CUT = " … "
"""The mark in place of a text's cut middle."""

_HEAD_PARTS, _PARTS = 2, 3
_SMALLER = 0.9
# Fewer characters say nothing.
_FEWEST = 20
_FEWEST_OF_THREE = 40
_FEWEST_LETTERS = 3
# Words of a query that stand closer than this many others are told by the first of them.
_LOOKED_AT = 50
# So far is looked for a blank, however short what is cut.
_NEAR_CHARS = 12
_REMEMBERED_CHARS = 1_000
_WORD = re.compile(r"\w+")
_BLANK = re.compile(r"\s")
_LAST_WORD = re.compile(r"\s\S*\Z")


def fitted(
    line: BlockLine,
    format: BlockFormat,  # noqa: A002  the word that requests and settings have for it
    limit: int,
    count: Callable[[str], int],
    words: Collection[str] = (),
) -> tuple[BlockLine, str, int]:
    """Return the rendered line and its cost; above ``limit`` tokens with a part of its text, see
    `shortened`.

    When not even twenty characters of the text fit, it stays as it is.
    """
    rendered, cost = written(line, format, count)
    if cost <= limit:
        return line, rendered, cost
    bare = count(render_line(_with_text(line, CUT), format))
    # Where tokens are spread evenly this is enough; else a tenth less is tried.
    length = int(len(line.text) * max(limit - bare, 0) / max(cost - bare, 1))
    while length >= _FEWEST:
        shorter = _with_text(line, shortened(line.text, length, words))
        rendered_shorter = render_line(shorter, format)
        smaller = count(rendered_shorter)
        if smaller <= limit:
            return shorter, rendered_shorter, smaller
        length = int(length * _SMALLER)
    return line, rendered, cost


def shortened(text: str, length: int, words: Collection[str] = ()) -> str:
    """Return the first two thirds and the last third of ``length`` characters, and a mark between
    them.

    When the beginning and the end lack some of the words and the middle has them: a third each of
    the beginning, of the place with most of these words, and of the end. Cut between words, where
    there are blanks.

    Args:
        words: case-folded.
    """
    if len(text) <= length:
        return text
    third = length // _PARTS
    start = _place_of(text, words, third)
    if start is None:
        head = length * _HEAD_PARTS // _PARTS
        spans = [(0, head), (len(text) - (length - head), len(text))]
    elif start - third <= len(CUT):
        spans = [(0, start + third), (len(text) - third, len(text))]
    else:
        spans = [(0, third), (start, start + third), (len(text) - third, len(text))]
    return CUT.join(_between_words(text, *span).strip() for span in spans)


def _place_of(text: str, words: Collection[str], width: int) -> int | None:
    """Return the first place in the middle of a text with most of the words that its ends lack."""
    if not words or width < _FEWEST_OF_THREE:
        return None
    end = len(text) - width
    matches = [
        (match.start(), match.end(), word)
        for match in _WORD.finditer(text)
        if len(word := match.group().casefold()) >= _FEWEST_LETTERS and word in words
    ]
    present = {word for first, last, word in matches if last <= width or first >= end}
    news = [
        each for each in matches if each[2] not in present and each[0] >= width and each[1] <= end
    ]
    best: tuple[int, int, int] | None = None
    for at, (first, _, _) in enumerate(news):
        inside = [each for each in news[at : at + _LOOKED_AT] if each[1] <= first + width]
        many = len({word for _, _, word in inside})
        if inside and (best is None or many > best[0]):
            best = (many, first, inside[-1][1])
    if best is None:
        return None
    _, first, last = best
    return min(max(first - (width - (last - first)) // 2, width), end - width)


def _between_words(text: str, start: int, end: int) -> str:
    """Return a span without the words that it cuts; unchanged when no blank is near."""
    near = max((end - start) // 2, min(end - start, _NEAR_CHARS))
    if start and not text[start - 1].isspace():
        blank = _BLANK.search(text, start, start + near)
        start = start if blank is None else blank.end()
    if end < len(text) and not text[end].isspace():
        part = _LAST_WORD.search(text, end - near, end)
        end = end if part is None else part.start()
    return text[start:end]


def written(
    line: BlockLine,
    format: BlockFormat,  # noqa: A002  as above
    count: Callable[[str], int],
) -> tuple[str, int]:
    """Return a rendered line and its cost."""
    if len(line.text) > _REMEMBERED_CHARS:
        rendered = render_line(line, format)
        return rendered, count(rendered)
    content = (line.memory_id, line.kind, line.text, line.at, line.citation, line.mark)
    # Confidence decays from one moment to the next; a line shows two digits of it.
    return _remembered(content, round(line.confidence, 2), format, count)


@lru_cache(maxsize=4_096)
def _remembered(
    content: tuple[str, MemoryKind, str, int, str, str],
    confidence: float,
    format: BlockFormat,  # noqa: A002  as above
    count: Callable[[str], int],
) -> tuple[str, int]:
    """Return a rendered line and its cost, cached: the same memories come into many contexts."""
    memory_id, kind, text, at, citation, mark = content
    fields = {
        "memory_id": memory_id,
        "kind": kind,
        "text": text,
        "at": at,
        "citation": citation,
        "confidence": confidence,
        "mark": mark,
    }
    rendered = render_line(built(BlockLine, fields), format)
    return rendered, count(rendered)


def _with_text(line: BlockLine, text: str) -> BlockLine:
    return line.model_copy(update={"text": text})
