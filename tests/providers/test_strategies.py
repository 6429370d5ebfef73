"""Strategies: providers in order, overlaps settled, failures told and not fatal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memgraph.errors import ExtraMissing, MemgraphError, ProviderUnavailable
from memgraph.model.enums import EntityType
from memgraph.providers.entity_names import EntityFindings, EntityStrategy
from memgraph.text.names import EntitySpan

PERSON, PLACE, OTHER = EntityType.PERSON, EntityType.LOCATION, EntityType.OTHER


@dataclass
class Says:
    """A provider that finds what it is told to, or fails."""

    name: str
    spans: Sequence[tuple[str, EntityType, float]] = ()
    error: MemgraphError | None = None
    rejected: tuple[str, ...] = ()
    asked: int = 0

    def extract(self, texts: Sequence[str]) -> list[EntityFindings]:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return [EntityFindings(self._spans(text), self.rejected) for text in texts]

    def _spans(self, text: str) -> list[EntitySpan]:
        return [
            EntitySpan(name, text.index(name), text.index(name) + len(name), kind, confidence)
            for name, kind, confidence in self.spans
            if name in text
        ]


TEXT = "Oswin Tarrant saw Vellmark"


def found(*providers: Says) -> list[tuple[str, EntityType]]:
    [found], _ = EntityStrategy(providers).extract([TEXT])
    return [(each.text, each.type) for each in found.spans]


def test_the_more_confident_wins_an_overlap_then_the_longer() -> None:
    short = Says("regex", [("Oswin", OTHER, 0.6), ("Vellmark", OTHER, 0.9)])
    sure = Says("spacy", [("Oswin Tarrant", PERSON, 0.8), ("Vellmark", PLACE, 0.8)])
    assert found(short, sure) == [("Oswin Tarrant", PERSON), ("Vellmark", OTHER)]
    equal = Says("regex", [("Oswin", OTHER, 0.8)])
    assert found(equal, sure) == [("Oswin Tarrant", PERSON), ("Vellmark", PLACE)]
    assert found(sure, equal) == found(equal, sure)


def test_a_provider_that_fails_is_told_and_the_others_count() -> None:
    down = Says("llm", error=ProviderUnavailable("down"))
    missing = Says("spacy", error=ExtraMissing("no spaCy"))
    rules = Says("regex", [("Vellmark", PLACE, 0.9)])
    [one], failures = EntityStrategy((down, missing, rules)).extract([TEXT])
    assert [each.text for each in one.spans] == ["Vellmark"]
    assert {name: error.code for name, error in failures.items()} == {
        "llm": "provider.unavailable",
        "spacy": "extra.missing",
    }


def test_a_provider_that_must_not_see_a_text_does_not() -> None:
    model = Says("llm", [("Vellmark", PLACE, 0.9)])
    [one], _ = EntityStrategy((model,)).extract([TEXT], without=("llm",))
    assert (one.spans, model.asked) == ([], 0)
