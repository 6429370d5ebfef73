"""Create the models and extractors that the settings configure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memgraph.config import Settings
from memgraph.consolidation.labels import LabelExtractor
from memgraph.consolidation.ports import Extractor
from memgraph.model.enums import Sensitivity
from memgraph.providers.completion import CompletionProvider, completion_provider
from memgraph.providers.options import options_of
from memgraph.providers.tool_calls import ToolCallingProvider, tool_calling_provider
from memgraph.service.open_orchestrator import OpenOrchestrator


@dataclass(frozen=True)
class LanguageModel:
    """A language model, for tool calls and for JSON answers.

    Attributes:
        tools: the tool-calling interface, used by consolidation.
        completion: the JSON interface, used by everything else.
        max_sensitivity: the highest sensitivity of texts that may be sent to the model.
    """

    tools: ToolCallingProvider
    completion: CompletionProvider
    max_sensitivity: Sensitivity = Sensitivity.INTERNAL

    @property
    def name(self) -> str:
        return self.tools.name

    def may_read(self, sensitivity: Sensitivity) -> bool:
        """Return True if a text of this sensitivity may be sent to the model."""
        return sensitivity.level <= self.max_sensitivity.level


def configured_llm(
    settings: Settings, environ: Mapping[str, str] | None = None
) -> LanguageModel | None:
    """Return the model of ``memory.llm.provider``; None if that is ``none``.

    Opens no connection.
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


def chosen_extractor(opened: OpenOrchestrator) -> Extractor:
    """Return the model of ``memory.llm``, or else what reads only labelled sentences."""
    model = opened.llm
    if model is None:
        return LabelExtractor()
    from memgraph.consolidation.agent import AgentExtractor

    return AgentExtractor(model.tools, LabelExtractor(), max_sensitivity=model.max_sensitivity)
