"""Looking, remotely: get, list_memories, recall, trace, subgraph, contradictions, bulletin."""

from __future__ import annotations

from typing import Any

from memgraph.client.calls import Call, segment, value_of
from memgraph.client.places import Place
from memgraph.client.words import word
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.values import Memory, validated


class AskingWords(Place):
    """The words that look."""

    @word
    def get(self, memory_id: str) -> Call[Memory]:
        """One memory. Raises NotFound: there is none that the key may see."""
        return self._get(f"/memories/{segment(memory_id)}", value_of(Memory))

    @word
    def recall(self, /, query: str | RecallRequest = "", **fields: Any) -> Call[Bundle]:
        """The memories that answer a question, best first, with their reasons and sources.

        Args:
            query: words or a sentence; or a whole request.
            fields: the other fields of ``RecallRequest``.

        Raises:
            InvalidInput: a field is wrong, or neither query nor filter says what to recall.
            AccessDenied: the request reaches further than the key.
        """
        request = query
        if not isinstance(request, RecallRequest):
            request = validated(RecallRequest, {"query": query, **fields})
        return self._look("/recall", request, value_of(Bundle))
