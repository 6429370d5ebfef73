"""A line of a block within a number of tokens: a long text loses its middle."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from memgraph.context.blocks import render_line
from memgraph.model.context import BlockFormat, BlockLine
from memgraph.model.enums import MemoryKind
from memgraph.storage.rows import built

CUT = " … "
"""Stands where the middle of a text was."""

_HEAD_PARTS, _PARTS = 2, 3
_SMALLER = 0.9
# Fewer characters say nothing.
_FEWEST = 20
_REMEMBERED_CHARS = 1_000


def fitted(
    line: BlockLine,
    format: BlockFormat,  # noqa: A002  the word that requests and settings have for it
    limit: int,
    count: Callable[[str], int],
) -> tuple[BlockLine, str, int]:
    """The line, as it is rendered, and its cost; above ``limit`` tokens with the beginning and the
    end of its text.

    Where not even twenty characters of the text fit, it stays as it is.
    """
    rendered, cost = _rendered(line, format, count)
    if cost <= limit:
        return line, rendered, cost
    bare = count(render_line(_with_text(line, CUT), format))
    # Where tokens are spread evenly this is enough; else a tenth less is tried.
    kept = int(len(line.text) * max(limit - bare, 0) / max(cost - bare, 1))
    while kept >= _FEWEST:
        shorter = _with_text(line, shortened(line.text, kept))
        written = render_line(shorter, format)
        smaller = count(written)
        if smaller <= limit:
            return shorter, written, smaller
        kept = int(kept * _SMALLER)
    return line, rendered, cost


def shortened(text: str, kept: int) -> str:
    """The first two thirds and the last third of ``kept`` characters, and a mark between them."""
    if len(text) <= kept:
        return text
    head = kept * _HEAD_PARTS // _PARTS
    tail = kept - head
    return f"{text[:head].rstrip()}{CUT}{text[len(text) - tail :].lstrip()}"


def _rendered(
    line: BlockLine,
    format: BlockFormat,  # noqa: A002  as above
    count: Callable[[str], int],
) -> tuple[str, int]:
    if len(line.text) > _REMEMBERED_CHARS:
        rendered = render_line(line, format)
        return rendered, count(rendered)
    said = (line.memory_id, line.kind, line.text, line.at, line.citation)
    # Confidence fades from one moment to the next; a line shows two digits of it.
    return _remembered(said, round(line.confidence, 2), format, count)


@lru_cache(maxsize=4_096)
def _remembered(
    said: tuple[str, MemoryKind, str, int, str],
    confidence: float,
    format: BlockFormat,  # noqa: A002  as above
    count: Callable[[str], int],
) -> tuple[str, int]:
    """What is held and what is most important comes into one context after another."""
    memory_id, kind, text, at, citation = said
    fields = {
        "memory_id": memory_id,
        "kind": kind,
        "text": text,
        "at": at,
        "citation": citation,
        "confidence": confidence,
    }
    rendered = render_line(built(BlockLine, fields), format)
    return rendered, count(rendered)


def _with_text(line: BlockLine, text: str) -> BlockLine:
    return line.model_copy(update={"text": text})
