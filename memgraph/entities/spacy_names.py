"""Entities by a spaCy pipeline: any that is installed, by its name or its folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from memgraph.entities.patterns import find_dates
from memgraph.entities.spans import EntitySpan
from memgraph.entities.strategies import EntityFindings
from memgraph.errors import ExtraMissing, ProviderRejected
from memgraph.model.enums import EntityType

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

# A pipeline gives no score for an entity. Above what a rule guesses of a lone word, below what it
# reads from a form, a list or a title.
CONFIDENCE: Final = 0.85
MAX_SPAN_CHARS: Final = 200
_BATCH: Final = 32

_TYPES: Final = {
    "PERSON": EntityType.PERSON,
    "PER": EntityType.PERSON,
    "ORG": EntityType.ORGANIZATION,
    "GPE": EntityType.LOCATION,
    "LOC": EntityType.LOCATION,
    "FAC": EntityType.LOCATION,
    "DATE": EntityType.DATE,
    # Not projects: a pipeline calls a phone and a film so.
    "PRODUCT": EntityType.OTHER,
    "WORK_OF_ART": EntityType.OTHER,
    "EVENT": EntityType.OTHER,
}
"""The types for the labels of spaCy's own pipelines; other labels name no entity (numbers,
languages, peoples). A pipeline may also use the names of ``EntityType``, in any case.
"""


def is_installed() -> bool:
    """Return True when the package is installed; loads nothing."""
    return find_spec("spacy") is not None


class SpacyNames:
    """Asks one pipeline, loaded at the first use.

    Args:
        pipeline: its package's name, or the folder that it was saved to.
    """

    name = "spacy"

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._loaded: Language | None = None
        self._lock = threading.Lock()

    def extract(self, text: str) -> list[EntitySpan]:
        return self.extract_many([text])[0].spans

    def extract_many(self, texts: Sequence[str]) -> list[EntityFindings]:
        # One at a time: a pipeline adds every new word to a vocabulary that its users share.
        with self._lock:
            pipeline = self._load()
            try:
                documents = list(pipeline.pipe(texts, batch_size=_BATCH))
            except (ValueError, RuntimeError, KeyError) as error:
                raise ProviderRejected(
                    f"the spaCy pipeline {self._pipeline!r} failed: {type(error).__name__}",
                    provider=self.name,
                ) from error
        return [EntityFindings(list(_spans(document))) for document in documents]

    def _load(self) -> Language:
        if self._loaded is None:
            try:
                import spacy
            except ImportError:
                raise ExtraMissing.of("spaCy is not installed", extra="spacy") from None
            try:
                self._loaded = spacy.load(self._pipeline)
            except (OSError, ValueError, ImportError) as error:
                raise ProviderRejected(
                    f"no spaCy pipeline {self._pipeline!r} can be loaded:"
                    " memory.entities.spacy_model is the name of an installed one, or a folder",
                    provider=self.name,
                    reason="pipeline",
                ) from error
        return self._loaded


def _spans(document: Doc) -> Iterator[EntitySpan]:
    for entity in document.ents:
        span = _span(document.text, entity)
        if span is not None:
            yield span


def _span(text: str, entity: Any) -> EntitySpan | None:
    kind = _type_of(entity.label_)
    start, end = int(entity.start_char), int(entity.end_char)
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if kind is None or start == end or end - start > MAX_SPAN_CHARS:
        return None
    # "yesterday", "two weeks" and "Monday" are dates for a pipeline and name no day here.
    if kind is EntityType.DATE and not any(find_dates(text[start:end])):
        return None
    return EntitySpan(text[start:end], start, end, kind, CONFIDENCE, "spacy")


def _type_of(label: str) -> EntityType | None:
    entity_type = _TYPES.get(label.upper())
    if entity_type is not None:
        return entity_type
    lower = label.lower()
    return EntityType(lower) if lower in EntityType.__members__.values() else None
