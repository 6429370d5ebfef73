"""The extractor and judge of a consolidation: rules, or a language model if configured."""

from __future__ import annotations

from memgraph.consolidation.ports import ConflictJudge, Extractor, Page, PageProposal
from memgraph.consolidation.quotations import RuleExtractor
from memgraph.model.jobs import RejectedItem
from memgraph.service.opened import Opened

RULES = "rules"


def chosen_extractor(opened: Opened) -> Extractor:
    """Return the model of ``memory.llm`` with the rules as fallback, or the rules alone."""
    model = opened.llm
    if model is None:
        return RulePages()
    from memgraph.consolidation.agent import AgentExtractor

    return AgentExtractor(model.tools, RulePages(), max_sensitivity=model.max_sensitivity)


def chosen_judge(opened: Opened) -> ConflictJudge | None:
    """Return the judge of ``memory.llm`` for contradictions; None: the rules decide alone."""
    model = opened.llm
    if model is None:
        return None
    from memgraph.consolidation.conflict_judge import ModelConflictJudge

    return ModelConflictJudge(model.completion, max_sensitivity=model.max_sensitivity)


class RulePages:
    """The rules as an extractor of pages."""

    name = RULES

    def propose(self, page: Page) -> PageProposal:
        facts, left = RuleExtractor().extract_some(page.turns, limit=page.max_facts)
        if not left:
            return PageProposal(facts=tuple(facts))
        where = f"session {page.session_id}, turns from {page.turns[0].memory_id}"
        left_out = RejectedItem(code="fact.too_many", where=where, count=left)
        return PageProposal(facts=tuple(facts), rejected=(left_out,))
