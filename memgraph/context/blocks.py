"""Render memories as text for a prompt. No text in a block can end its line or the block.

Pure and deterministic: the same lines, format and mark give the same text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from memgraph.clock import iso
from memgraph.errors import InvalidInput
from memgraph.model.context import BlockFormat, BlockLine
from memgraph.rules.blocks import (
    FENCE_INTRO,
    LIST_INSIGHT,
    LIST_TITLE,
    MARK_DIGITS,
    SECTION_INSIGHT,
    SECTION_TITLE,
    cleaned,
    one_line,
)

_MARK = re.compile(rf"[0-9a-f]{{{MARK_DIGITS}}}")
_IN_JSON = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_CONFIDENCE_DIGITS = 2


def render(
    lines: Sequence[BlockLine],
    format: BlockFormat,  # noqa: A002  the word that requests and settings have for it
    *,
    mark: str,
    insight: BlockLine | None = None,
) -> str:
    """Render memories as a block that ends in a newline, in the given order; "" if there are none.

    - ``fenced``: an introduction, ``<data-mark>``, for each memory a JSON object with ``id``,
      ``date``, ``source``, ``confidence`` and ``text``, ``</data-mark>``. No text contains ``<``.
    - ``list``: ``[Relevant Memory]``, then ``- text`` for each.
    - ``sections``: ``## Relevant memory``, then ``- text [id]`` for each.

    Contradicted memories are marked: by a field ``mark``, or after the line ``[contradicted by
    …]``.

    Args:
        mark: 16 hexadecimal digits that are new for this block; only ``fenced`` shows it.
        insight: the week's reflection. It comes last, under its own heading if there are headings.

    Raises:
        InvalidInput: the mark or the format is invalid.
    """
    if format not in tuple(BlockFormat):
        raise InvalidInput(f"format must be one of: {', '.join(BlockFormat)}", field="format")
    if not _MARK.fullmatch(mark):
        raise InvalidInput(f"a mark must be {MARK_DIGITS} hexadecimal digits", field="mark")
    if not lines and insight is None:
        return ""
    last = () if insight is None else (insight,)
    rendered = "".join(render_line(line, format) for line in lines)
    closing = "".join(render_line(line, format) for line in last)
    if format == BlockFormat.FENCED:
        return f"{FENCE_INTRO}\n<data-{mark}>\n{rendered}{closing}</data-{mark}>\n"
    title, heading = (
        (LIST_TITLE, LIST_INSIGHT)
        if format == BlockFormat.LIST
        else (SECTION_TITLE, SECTION_INSIGHT)
    )
    parts = [f"{head}\n{body}" for head, body in ((title, rendered), (heading, closing)) if body]
    return "\n".join(parts)


def render_line(
    line: BlockLine,
    format: BlockFormat,  # noqa: A002  as in render
) -> str:
    """Return a memory as one line of a block, with its newline."""
    if format == BlockFormat.LIST:
        return f"- {one_line(line.text)}{_marked(line)}\n"
    if format == BlockFormat.SECTIONS:
        return f"- {one_line(line.text)} [{one_line(line.memory_id)}]{_marked(line)}\n"
    record = {
        "id": cleaned(line.memory_id),
        "date": iso(line.at)[: len("2026-01-31")],
        "source": cleaned(line.citation),
        "confidence": round(line.confidence, _CONFIDENCE_DIGITS),
        "text": cleaned(line.text),
    }
    if line.mark:
        record["mark"] = cleaned(line.mark)
    return f"{as_json(record)}\n"


def _marked(line: BlockLine) -> str:
    return f" [{one_line(line.mark)}]" if line.mark else ""


def as_json(value: Any) -> str:
    """Return a value as one line of JSON in which no text can open or close a mark or a tag."""
    return json.dumps(value, ensure_ascii=False).translate(_IN_JSON)
