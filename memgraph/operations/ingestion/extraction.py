"""The optional extractor: a language model proposes memories from a text, checked as on a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from memgraph.config import Settings
from memgraph.consolidation.page_model import read_text
from memgraph.errors import ProviderAnswerInvalid, ProviderError, ProviderRejected
from memgraph.model.enums import MemoryType
from memgraph.providers.completion import CompletionProvider, completion_provider
from memgraph.providers.options import options_of
from memgraph.rules.similarity import is_near as is_near

# After this many failures in a row the provider is not called for the rest of a text.
MAX_FAILURES = 3
MAX_CHARS = 12_000
"""The maximum text in one call."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """An accepted proposal. ``start`` and ``end``: its quote in the text, or the paragraph."""

    content: str
    type: MemoryType
    importance: int
    confidence: float
    start: int
    end: int


@dataclass(slots=True)
class Proposals:
    """The proposals for a text.

    The text was cut into ``pieces``. If ``error_code`` is set, ``failed`` of them have no usable
    answer.
    """

    provider: str = ""
    accepted: list[Proposal] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    error_code: str | None = None
    pieces: int = 0
    failed: int = 0


def configured_extractor(
    settings: Settings, environ: Mapping[str, str] | None = None
) -> CompletionProvider | None:
    """Return the model of ``memory.extractor.provider``; None if that is ``none``."""
    chosen = settings.memory.extractor
    if chosen.provider == "none":
        return None
    options = options_of(chosen, environ, settings.memory.llm.timeout_s)
    return completion_provider(chosen.provider, **options)


def propose(
    provider: CompletionProvider,
    text: str,
    *,
    max_chars: int = MAX_CHARS,
) -> Proposals:
    """Ask a model for the memories in ``text``, in pieces of at most ``max_chars`` characters.

    An unusable answer loses only its piece. A provider that rejects the key or the request, or
    fails ``MAX_FAILURES`` times in a row, is not called for the rest. The code of the last error is
    reported.
    """
    pieces = _pieces(text, max_chars)
    proposals = Proposals(provider.name, pieces=len(pieces))
    answered = consecutive_failures = 0
    for offset, piece in pieces:
        try:
            accepted, codes = _proposed(provider, piece)
        except ProviderError as error:
            proposals.error_code = error.code
            consecutive_failures = (
                0 if isinstance(error, ProviderAnswerInvalid) else consecutive_failures + 1
            )
            if isinstance(error, ProviderRejected) or consecutive_failures == MAX_FAILURES:
                break
            continue
        answered, consecutive_failures = answered + 1, 0
        proposals.rejected += codes
        proposals.accepted += [
            replace(proposal, start=proposal.start + offset, end=proposal.end + offset)
            for proposal in accepted
        ]
    proposals.failed = len(pieces) - answered
    return proposals


def _proposed(provider: CompletionProvider, text: str) -> tuple[list[Proposal], list[str]]:
    """Return a model's proposals for a text, and the codes of those that were not accepted."""
    paragraphs = {str(place): span for place, span in enumerate(_paragraphs(text))}
    read = read_text(provider, {str(place): text[a:b] for place, (a, b) in paragraphs.items()})
    proposals = []
    for fact in read.facts:
        start, end = paragraphs[fact.quoted]
        if (place := text.find(fact.quote, start, end)) >= 0:
            start, end = place, place + len(fact.quote)
        proposals.append(
            Proposal(fact.content, fact.type, fact.importance, fact.confidence, start, end)
        )
    return proposals, [each.code for each in read.rejected]


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the paragraphs of a text, without the white space around them."""
    start = 0
    for end in (*(match.start() for match in _BLANK_LINES.finditer(text)), len(text)):
        paragraph = text[start:end]
        if bare := paragraph.strip():
            first = start + paragraph.index(bare[0])
            yield first, first + len(bare)
        start = end


_BLANK_LINES = re.compile(r"\n[^\S\n]*\n")


def _pieces(text: str, size: int) -> list[tuple[int, str]]:
    """Cut a text at line ends where possible, so that sentences stay whole."""
    pieces = []
    start = 0
    while start < len(text):
        end = min(start + size, len(text))
        if end < len(text):
            line_end = text.rfind("\n", start + size // 2, end)
            end = line_end + 1 if line_end > 0 else end
        pieces.append((start, text[start:end]))
        start = end
    return pieces
