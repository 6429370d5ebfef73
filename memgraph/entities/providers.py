"""The interface of entity providers, and the provider that is always available."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memgraph.entities.patterns import extract
from memgraph.entities.spans import EntitySpan


@dataclass(frozen=True, slots=True)
class EntityFindings:
    """The findings of a provider in one text.

    Attributes:
        rejected: codes of proposals that rules rejected.
    """

    spans: list[EntitySpan]
    rejected: tuple[str, ...] = ()


@runtime_checkable
class EntityProvider(Protocol):
    """Finds entities. Threads may share an instance; creating one loads no model.

    ``extract`` and ``extract_many`` raise ProviderError (a model failed or is not available) and
    ExtraMissing (a package is not installed).
    """

    @property
    def name(self) -> str:
        """The name in the settings: ``regex``, ``spacy`` or ``llm``."""
        ...

    def extract(self, text: str) -> list[EntitySpan]:
        """Return the entities of one text, in order; they may overlap."""
        ...

    def extract_many(self, texts: Sequence[str]) -> list[EntityFindings]:
        """Return the same for several texts, in order; cheaper when a model works in batches."""
        ...


class RegexNames:
    """Rules, lists and cue words; see ``memgraph.entities.patterns``."""

    name = "regex"

    def extract(self, text: str) -> list[EntitySpan]:
        return extract(text)

    def extract_many(self, texts: Sequence[str]) -> list[EntityFindings]:
        return [EntityFindings(extract(text)) for text in texts]
