"""The language model of background jobs: ``memory.llm``, by tool calls or JSON completions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from memgraph.config import Settings
from memgraph.model.enums import Sensitivity
from memgraph.providers.completion import CompletionProvider, completion_provider
from memgraph.providers.tool_calling import ToolCallingProvider, tool_calling_provider


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
    variables = os.environ if environ is None else environ
    key = variables.get(chosen.api_key_env) if chosen.api_key_env else None
    return LanguageModel(
        tool_calling_provider(
            chosen.provider,
            timeout_s=chosen.timeout_s,
            retries=chosen.retries,
            api_base=chosen.api_base or None,
            api_key=key,
        ),
        completion_provider(
            chosen.provider,
            timeout_s=chosen.timeout_s,
            retries=chosen.retries,
            api_base=chosen.api_base or None,
            api_key=key,
        ),
        Sensitivity(chosen.max_sensitivity),
    )
