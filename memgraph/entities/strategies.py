"""Strategies: ordered providers that look for entities, and the merging of their results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memgraph.entities.patterns import extract
from memgraph.entities.spans import EntitySpan, merge
from memgraph.errors import ExtraMissing, MemgraphError, ProviderError


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


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """The results of a strategy for some texts.

    Attributes:
        spans: of each text, without overlap; see ``spans.merge``.
        rejected: of each text, the codes of rejected proposals.
        failures: the failed providers, whose results are missing, by name.
    """

    spans: list[list[EntitySpan]]
    rejected: list[tuple[str, ...]]
    failures: dict[str, MemgraphError]


@dataclass(frozen=True, slots=True)
class EntityStrategy:
    """Providers in order. One that fails is reported and left out; the others' results are used."""

    providers: tuple[EntityProvider, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(provider.name for provider in self.providers)

    def extract(self, texts: Sequence[str], *, without: Collection[str] = ()) -> StrategyResult:
        """Return the entities of each text.

        Args:
            without: names of providers that must not see these texts.
        """
        failures: dict[str, MemgraphError] = {}
        by_text: list[list[EntityFindings]] = [[] for _ in texts]
        for provider in self.providers:
            if provider.name in without:
                continue
            try:
                results = provider.extract_many(texts)
            except (ProviderError, ExtraMissing) as error:
                failures[provider.name] = error
                continue
            for findings, result in zip(by_text, results, strict=True):
                findings.append(result)
        return StrategyResult(
            spans=[
                merge(span for result in results_of_text for span in result.spans)
                for results_of_text in by_text
            ],
            rejected=[
                tuple(code for result in results_of_text for code in result.rejected)
                for results_of_text in by_text
            ],
            failures=failures,
        )
