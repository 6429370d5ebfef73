"""A line of a block within a number of tokens: a long text loses its middle."""

from __future__ import annotations

from collections.abc import Callable

from memgraph.context.blocks import render_line
from memgraph.model.context import BlockFormat, BlockLine

CUT = " … "
"""Stands where the middle of a text was."""

_HEAD_PARTS, _PARTS = 2, 3
_SMALLER = 0.9
# Fewer characters say nothing.
_FEWEST = 20


def fitted(
    line: BlockLine,
    format: BlockFormat,  # noqa: A002  the word that requests and settings have for it
    limit: int,
    count: Callable[[str], int],
) -> tuple[BlockLine, int]:
    """The line and its cost; above ``limit`` tokens with the beginning and the end of its text.

    Where not even twenty characters of the text fit, it stays as it is.
    """
    cost = count(render_line(line, format))
    if cost <= limit:
        return line, cost
    bare = count(render_line(_with_text(line, CUT), format))
    # Where tokens are spread evenly this is enough; else a tenth less is tried.
    kept = int(len(line.text) * max(limit - bare, 0) / max(cost - bare, 1))
    while kept >= _FEWEST:
        shorter = _with_text(line, shortened(line.text, kept))
        smaller = count(render_line(shorter, format))
        if smaller <= limit:
            return shorter, smaller
        kept = int(kept * _SMALLER)
    return line, cost


def shortened(text: str, kept: int) -> str:
    """The first two thirds and the last third of ``kept`` characters, and a mark between them."""
    if len(text) <= kept:
        return text
    head = kept * _HEAD_PARTS // _PARTS
    tail = kept - head
    return f"{text[:head].rstrip()}{CUT}{text[len(text) - tail :].lstrip()}"


def _with_text(line: BlockLine, text: str) -> BlockLine:
    return line.model_copy(update={"text": text})
