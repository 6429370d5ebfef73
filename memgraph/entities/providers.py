"""The port of what finds entities in a text, and the provider that is always there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memgraph.entities.regex import extract
from memgraph.entities.spans import EntitySpan


@dataclass(frozen=True, slots=True)
class Findings:
    """What a provider found in one text.

    Attributes:
        rejected: codes of what it proposed and rules did not take.
    """

    spans: list[EntitySpan]
    rejected: tuple[str, ...] = ()


@runtime_checkable
class EntityProvider(Protocol):
    """Finds entities. Threads may share an instance; making one loads no model.

    ``extract`` and ``extract_many`` raise ProviderError (a model failed or is not there) and
    ExtraMissing (a package is not installed).
    """

    @property
    def name(self) -> str:
        """The name in the settings: ``regex``, ``spacy`` or ``llm``."""
        ...

    def extract(self, text: str) -> list[EntitySpan]:
        """The entities of one text, in order; they may overlap."""
        ...

    def extract_many(self, texts: Sequence[str]) -> list[Findings]:
        """The same for several texts, in their order; cheaper where a model works in batches."""
        ...


class RegexNames:
    """Rules, lists and cue words; see ``memgraph.entities.regex``."""

    name = "regex"

    def extract(self, text: str) -> list[EntitySpan]:
        return extract(text)

    def extract_many(self, texts: Sequence[str]) -> list[Findings]:
        return [Findings(extract(text)) for text in texts]
