"""Writing, remotely: remember, correct, confirm, retract, restore, relate, resolve."""

from __future__ import annotations

from typing import Any

from memgraph.client.calls import Call, member
from memgraph.client.places import Place
from memgraph.client.words import word
from memgraph.model.values import MemoryInput, validated


class RememberingWords(Place):
    """The words that change what is remembered."""

    @word
    def remember(self, /, content: str, **fields: Any) -> Call[str]:
        """Store one memory and give its id; one that is there already gives its own.

        Args:
            content: the text, 1 to 32,000 characters; it never changes afterwards.
            fields: the fields of ``MemoryInput``.

        Raises:
            InvalidInput: naming each field that is wrong.
            NotFound: a memory named in ``derived_from`` is not there, or not to be seen.
            AccessDenied: the key may not write, or not there.
        """
        given = validated(MemoryInput, {"content": content, **fields})
        return self._write("/memories", given, member("memory_id", str))
