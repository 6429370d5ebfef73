"""Token ids of texts, with the pieces of every word met kept: most words of a text are old ones.

The tokenizer (a BERT one: lower case, words apart from punctuation, WordPiece) cuts each word by
itself, so a text of plain characters is cut here and only new words are handed to it. Any other
text goes to it whole. The ids are the same either way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Bounds what is kept to about 10 MB; what is over begins anew.
_MOST_WORDS: Final = 50_000
_LONGEST_KEPT: Final = 40
# Few texts are tokenized one by one: a batch call starts the tokenizer's thread pool.
_SINGLE_CALLS: Final = 8
# Beside ASCII the punctuation of typeset text. Lower-casing changes letters alone, no count.
_PLAIN = re.compile("[\t\n\r -~\u2013\u2014\u2018\u2019\u201c\u201d\u2026]*")
_PART = re.compile(r"[0-9a-z]+|[^\s0-9a-z]")


class WordPieces:
    """Maps texts to token ids, the unknown token left out. Threads may share one."""

    def __init__(self, tokenizer: Tokenizer, unknown_id: int) -> None:
        self._tokenizer = tokenizer
        self._unknown_id = unknown_id
        self._known: dict[str, tuple[int, ...]] = {}

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of every text, in order."""
        found: list[list[int] | None] = [self._plain(text) for text in texts]
        others = iter(
            self._cut([text for text, ids in zip(texts, found, strict=True) if ids is None])
        )
        return [next(others) if ids is None else ids for ids in found]

    def _plain(self, text: str) -> list[int] | None:
        """The ids of a text of plain characters, else None."""
        if not _PLAIN.fullmatch(text):
            return None
        parts = _PART.findall(text.lower())
        known = self._known
        try:
            return list(chain.from_iterable(map(known.__getitem__, parts)))
        except KeyError:
            return list(chain.from_iterable(self._learn(parts)))

    def _learn(self, parts: Sequence[str]) -> Iterable[Sequence[int]]:
        # Another thread may begin anew meanwhile; what is known here only grows.
        known = self._known
        new = [part for part in dict.fromkeys(parts) if part not in known]
        pieces = dict(zip(new, map(tuple, self._cut(new)), strict=True))
        if len(known) + len(new) > _MOST_WORDS:
            self._known = {}
        self._known |= {part: ids for part, ids in pieces.items() if len(part) <= _LONGEST_KEPT}
        return [pieces[part] if part in pieces else known[part] for part in parts]

    def _cut(self, texts: list[str]) -> list[list[int]]:
        if len(texts) <= _SINGLE_CALLS:
            cut = [self._tokenizer.encode(text, add_special_tokens=False) for text in texts]
        else:
            cut = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [[one for one in each.ids if one != self._unknown_id] for each in cut]
