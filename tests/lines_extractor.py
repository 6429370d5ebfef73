"""An extractor for tests: every turn is one fact, word for word, unless it ends as a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memgraph.consolidation.ports import FactCandidate, PageProposal, PageTurn, TurnPage
from memgraph.model.enums import MemoryType


def fact(turn: PageTurn, **changes: Any) -> FactCandidate:
    values = {
        "content": turn.content,
        "type": MemoryType.FACT,
        "importance": 50,
        "confidence": 0.6,
        "event_time": None,
        "evidence": (turn.memory_id,),
        "quote": turn.content,
    }
    return FactCandidate(**(values | changes))


class Lines:
    """Proposes every line. ``on_page`` is called with each page before it answers."""

    name = "lines"

    def __init__(
        self,
        on_page: Callable[[TurnPage], None] = lambda _page: None,
        **changes: Any,
    ) -> None:
        self.pages: list[TurnPage] = []
        self._on_page = on_page
        self._changes = changes

    def propose(self, page: TurnPage) -> PageProposal:
        self.pages.append(page)
        self._on_page(page)
        facts = [
            fact(turn, **self._changes) for turn in page.turns if not turn.content.endswith("?")
        ]
        return PageProposal(tuple(facts))
