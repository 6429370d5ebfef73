"""Models and extractors as configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memgraph.config import Settings
from memgraph.consolidation.ports import ConflictJudge, Extractor, PageProposal, TurnPage
from memgraph.consolidation.sentence_rules import RuleExtractor
from memgraph.model.enums import Sensitivity
from memgraph.model.jobs import RejectedItem
from memgraph.providers.completion import CompletionProvider, completion_provider
from memgraph.providers.options import options_of
from memgraph.providers.tool_calls import ToolCallingProvider, tool_calling_provider
from memgraph.service.open_orchestrator import OpenOrchestrator


@dataclass(frozen=True)
class LanguageModel:
    """A model that answers with tool calls and with JSON.

    Attributes:
        tools: for consolidation.
        completion: for everything else.
        max_sensitivity: more sensitive texts are not sent.
    """

    tools: ToolCallingProvider
    completion: CompletionProvider
    max_sensitivity: Sensitivity = Sensitivity.INTERNAL

    @property
    def name(self) -> str:
        return self.tools.name

    def may_read(self, sensitivity: Sensitivity) -> bool:
        """Return True when a text of this sensitivity may be sent."""
        return sensitivity.level <= self.max_sensitivity.level


def configured_llm(
    settings: Settings, environ: Mapping[str, str] | None = None
) -> LanguageModel | None:
    """Return the model of ``memory.llm.provider``; None when that is ``none``. Opens no
    connection.
    """
    chosen = settings.memory.llm
    if chosen.provider == "none":
        return None
    options = options_of(chosen, environ)
    return LanguageModel(
        tool_calling_provider(chosen.provider, **options),
        completion_provider(chosen.provider, **options),
        Sensitivity(chosen.max_sensitivity),
    )


RULES = "rules"


def chosen_extractor(opened: OpenOrchestrator) -> Extractor:
    """Return the model of ``memory.llm`` with the rules as fallback, or the rules alone."""
    model = opened.llm
    if model is None:
        return RulePages()
    from memgraph.consolidation.agent import AgentExtractor

    return AgentExtractor(model.tools, RulePages(), max_sensitivity=model.max_sensitivity)


def chosen_judge(opened: OpenOrchestrator) -> ConflictJudge | None:
    """Return the judge of ``memory.llm`` for contradictions; None: the rules decide alone."""
    model = opened.llm
    if model is None:
        return None
    from memgraph.consolidation.conflict_judge import ModelConflictJudge

    return ModelConflictJudge(model.completion, max_sensitivity=model.max_sensitivity)


class RulePages:
    """The rules as an extractor of pages."""

    name = RULES

    def propose(self, page: TurnPage) -> PageProposal:
        facts, remaining = RuleExtractor().extract_some(page.turns, limit=page.max_facts)
        if not remaining:
            return PageProposal(facts=tuple(facts))
        where = f"session {page.session_id}, turns from {page.turns[0].memory_id}"
        left_out = RejectedItem(code="fact.too_many", where=where, count=remaining)
        return PageProposal(facts=tuple(facts), rejected=(left_out,))
