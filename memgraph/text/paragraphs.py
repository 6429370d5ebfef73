"""Put the wrapped lines of a paragraph together, and cut a long one at the ends of sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from memgraph.text.sentences import split_sentences

MAX_CHARS: Final = 800
"""A paragraph up to this length, about 120 words, stays whole."""
# An editor wraps no narrower than this.
_LEAST_WIDTH: Final = 60


def wrap_width(paragraphs: Iterable[Sequence[str]]) -> int:
    """Return the width at which an editor wrapped the lines of a text; 0 if it did not.

    Args:
        paragraphs: the lines of each, without the white space around them.
    """
    return max((_width(lines) for lines in paragraphs if _is_wrapped(lines)), default=0)


def unwrapped(lines: Sequence[str], width: int = 0) -> list[range]:
    """Return the lines that belong together, as ranges of places in ``lines``.

    A writer's line ends stay. Those of an editor show: the line above is full, and at least one
    line of the paragraph goes on in lower case.

    Args:
        width: the ``wrap_width`` of the whole text.
    """
    own_width = _width(lines) if _is_wrapped(lines) else 0
    starts = [0]
    for place, (above, line) in enumerate(pairwise(lines), start=1):
        by_text = width and above[-1:] not in ".!?:" and _fills(above, line, width)
        by_own = own_width and (_fills(above, line, own_width) or _goes_on(above, line, own_width))
        if not (by_text or by_own):
            starts.append(place)
    return [range(start, end) for start, end in pairwise((*starts, len(lines)))] if lines else []


def _width(lines: Sequence[str]) -> int:
    return max(map(len, lines), default=0)


def _is_wrapped(lines: Sequence[str]) -> bool:
    width = _width(lines)
    if width < _LEAST_WIDTH:
        return False
    if lines[0][:1].islower() and not any(". " in line or line[-1:] == "." for line in lines):
        # Notes of somebody who writes in lower case.
        return False
    return any(_goes_on(above, line, width) for above, line in pairwise(lines))


def _fills(above: str, line: str, width: int) -> bool:
    """Return True if the first word of a line has no room in the line above."""
    return len(above) + 1 + len(line.split(" ", 1)[0]) > width


def _goes_on(above: str, line: str, width: int) -> bool:
    """Return True if a line goes on in lower case, and the line above is not short."""
    return line[:1].islower() and (
        _fills(above, line, width) or (len(above) > 0.5 * width and above[-1:] not in ".!?:;")
    )


def cut(text: str, limit: int = MAX_CHARS) -> Iterator[tuple[int, int]]:
    """Yield the spans of a text in pieces of at most ``limit`` characters.

    A cut is at the end of a sentence, or of a word in a sentence that is longer than ``limit``.
    """
    start, end = 0, 0
    for sentence_end in _sentence_ends(text) if len(text) > limit else (len(text),):
        if sentence_end - start > limit and end > start:
            yield start, end
            start = _next_word(text, end)
        while sentence_end - start > limit:
            space = text.rfind(" ", start + limit // 2, start + limit)
            end = space if space > 0 else start + limit
            yield start, end
            start = _next_word(text, end)
        end = sentence_end
    if end > start:
        yield start, end


def _sentence_ends(text: str) -> Iterator[int]:
    at = 0
    for sentence in split_sentences(text):
        at = text.index(sentence, at) + len(sentence)
        yield at


def _next_word(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
