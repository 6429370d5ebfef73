"""Sentences of a model that cite numbered lines: read, check and write them. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memgraph.rules.blocks import cleaned

MAX_SENTENCES: Final = 40
MAX_SENTENCE_CHARS: Final = 2_000
SENTENCES: Final[dict[str, Any]] = {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["text", "lines"],
        "properties": {
            "text": {"type": "string"},
            "lines": {"type": "array", "minItems": 1, "items": {"type": "integer"}},
        },
    },
}
"""The JSON schema of a list of sentences with the numbers of the lines that they cite.

It has no limits: llama.cpp cannot make a grammar of large ones.
"""
_BRACKETED = re.compile(r"\s*\[((?:\d+(?:\s*,\s*)?)+)\]")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence and the numbers of the lines that it cites, at least one, in its order."""

    text: str
    numbers: tuple[int, ...]


def cited_sentences(items: Any, numbers: Collection[int]) -> tuple[list[CitedSentence], int]:
    """Return the sentences of a model's answer that cite lines, and how many others there were.

    A number in brackets within the text is a citation, too. Numbers without a line are dropped.

    Args:
        items: the part of the answer that ``SENTENCES`` describes, in any shape.
        numbers: the numbers of the lines that were sent.
    """
    listed = items if isinstance(items, list) else [items]
    sentences = [_sentence(item, numbers) for item in listed[:MAX_SENTENCES] if item]
    cited = [sentence for sentence in sentences if sentence is not None]
    return cited, len(sentences) - len(cited)


def _sentence(item: Any, numbers: Collection[int]) -> CitedSentence | None:
    text, lines = (item.get("text"), item.get("lines")) if isinstance(item, dict) else (item, None)
    if not isinstance(text, str) or len(text) > MAX_SENTENCE_CHARS:
        return None
    named = _NUMBER.findall(str(lines)) if isinstance(lines, list | int | str) else []
    named += [number for match in _BRACKETED.findall(text) for number in _NUMBER.findall(match)]
    bare = " ".join(cleaned(_BRACKETED.sub("", text)).split())
    known = tuple(dict.fromkeys(int(number) for number in named if int(number) in numbers))
    return CitedSentence(bare, known) if bare and known else None


def written(sentences: Sequence[CitedSentence]) -> str:
    """Return sentences as one text, each followed by its citations: ``Text. [1] [4]``."""
    return " ".join(
        f"{sentence.text} {' '.join(f'[{number}]' for number in sentence.numbers)}"
        for sentence in sentences
    )
