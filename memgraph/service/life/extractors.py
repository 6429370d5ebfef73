"""Who reads and judges in a consolidation: rules, or a language model where it may."""

from __future__ import annotations

from memgraph.consolidation.extracting import RuleExtractor
from memgraph.consolidation.ports import ConflictJudge, Extractor, Page, PageProposal
from memgraph.model.jobs import RejectedItem
from memgraph.service.classifiers import classify_types
from memgraph.service.opened import Opened

RULES = "rules"
# Facts of a page beyond so many are not counted where it is told how many were left out.
MAX_COUNTED = 200


def chosen_extractor(opened: Opened) -> Extractor:
    """The model of ``memory.llm`` with the rules behind it, or the rules alone."""
    model = opened.llm
    if model is None:
        return RulePages()
    from memgraph.consolidation.agent import AgentExtractor

    return AgentExtractor(model.tools, RulePages(), max_sensitivity=model.max_sensitivity)


def chosen_judge(opened: Opened) -> ConflictJudge | None:
    """The second opinion of ``memory.llm`` on contradictions; None: the rules alone decide."""
    model = opened.llm
    if model is None:
        return None
    from memgraph.consolidation.conflict_judge import ModelConflictJudge

    return ModelConflictJudge(model.completion, max_sensitivity=model.max_sensitivity)


class RulePages:
    """The rules and the local model behind the port."""

    name = RULES

    def __init__(self, rules: RuleExtractor | None = None) -> None:
        self._rules = rules or RuleExtractor(classify_types)

    def propose(self, page: Page) -> PageProposal:
        found = self._rules.extract(page.turns, before=page.before, limit=MAX_COUNTED)
        left = len(found) - page.max_facts
        if left <= 0:
            return PageProposal(facts=tuple(found))
        chosen = self._rules.extract(page.turns, before=page.before, limit=page.max_facts)
        where = f"session {page.session_id}, turns from {page.turns[0].memory_id}"
        left_out = RejectedItem(code="fact.too_many", where=where, count=left)
        return PageProposal(facts=tuple(chosen), rejected=(left_out,))
