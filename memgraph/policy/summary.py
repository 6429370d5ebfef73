"""A short text for a long one, when nobody gave any."""

from __future__ import annotations

import re

SUMMARY_CHARS = 160

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")


def summarise(content: str, limit: int = SUMMARY_CHARS) -> str:
    """All of it on one line where that is at most ``limit`` characters, else the first sentence,
    cut between words."""
    whole = " ".join(content.split())
    if len(whole) <= limit:
        return whole
    first = next((part for part in _SENTENCE_END.split(content.strip(), maxsplit=1) if part), "")
    line = " ".join(first.split())
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    cut = head.rfind(" ")
    return (head[:cut] if cut > limit // 2 else head) + "…"
