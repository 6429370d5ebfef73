"""Add a language model's proposals for prose and notes to the lines of a file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ingest.candidates import (
    MAX_CANDIDATES,
    MAX_CONFIDENCE,
    MAX_IMPORTANCE,
    IngestCandidate,
    ParsedDocument,
    ParseFinding,
    line_range,
    lines,
)
from ingest.parsers.notes import part_of
from ingest.reasons import SkippedPart
from memgraph.errors import ExtraMissing, ProviderRejected, ProviderUnavailable
from memgraph.model.enums import MemoryType
from memgraph.model.values import EdgeInput

if TYPE_CHECKING:
    from memgraph.operations.ingestion.extraction import Proposal, Proposals

Propose = Callable[[str], "Proposals | None"]
"""Returns a model's proposals for a text; None if no model is configured."""

# After this many failed files in a row the model is not called for the remaining ones.
GIVE_UP_AFTER = 3
_FORMATS = ("markdown", "prose")
_DOWN = (ProviderUnavailable.code, ProviderRejected.code, ExtraMissing.code)
_MAX_QUOTE_CHARS = 500


@dataclass(slots=True)
class ModelExtractor:
    """Calls the configured model until it fails repeatedly; make a new instance for each run."""

    propose: Propose
    _failures: int = 0

    def extend(self, extracted: ParsedDocument) -> ParsedDocument:
        """Return ``extracted`` with the model's proposals; call it before any transaction.

        A proposal that repeats a line at the same place gives its type to an Observation, and is
        left out otherwise. A failure of the model, and proposals that break a rule, are reported as
        findings; all lines stay.
        """
        if extracted.format not in _FORMATS:
            return extracted
        if self._failures >= GIVE_UP_AFTER:
            return _with_findings(extracted, [ParseFinding(SkippedPart.EXTRACTOR_NOT_ASKED)])
        proposals = self.propose(extracted.text)
        if proposals is None:
            return extracted
        self._failures = self._failures + 1 if proposals.error_code in _DOWN else 0
        return _Merge(extracted, proposals).done()


@dataclass(slots=True)
class _Merge:
    """The merging of proposals into one file."""

    extracted: ParsedDocument
    told: Proposals
    lines: list[IngestCandidate] = field(default_factory=list)
    made: list[IngestCandidate] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    repeated: int = 0

    def done(self) -> ParsedDocument:
        self.lines = list(self.extracted.candidates)
        self._take_all()
        main = self.extracted.main_key
        if main is None and self.made:
            main = self.made[0].key
        grown = replace(
            self.extracted,
            candidates=(*self.lines, *self.made),
            edges=(*self.extracted.edges, *self._parts()),
            main_key=main,
        )
        if self.made:
            findings = [e for e in grown.findings if e.code is not SkippedPart.NOTHING_EXTRACTED]
            grown = replace(grown, findings=tuple(findings))
        return _with_findings(grown, list(self._findings()))

    def _take_all(self) -> None:
        # Imported here, because it is not needed without a model.
        from memgraph.operations.ingestion.extraction import LocatedSentences

        sentences = LocatedSentences()
        for candidate in self.lines:
            sentences.add(candidate.content, *line_range(candidate.locator))
        self.refused.update(self.told.rejected)
        room = MAX_CANDIDATES - len(self.lines)
        line_ends = [at for at, char in enumerate(self.extracted.text) if char == "\n"]
        firsts = [line_range(candidate.locator)[0] for candidate in self.lines]
        for proposal in self.told.accepted:
            first, last = (bisect_left(line_ends, at) + 1 for at in (proposal.start, proposal.end))
            if not any(char.isalpha() for char in proposal.content):
                self.refused["content"] += 1
            elif (place := sentences.find(proposal.content, first, last)) is not None:
                self._repeat(place, proposal)
            elif len(self.made) >= room:
                self.refused["too_many_proposals"] += 1
            else:
                sentences.add(proposal.content, first, last)
                # The date, tags and section of the last line that begins at or above apply.
                above = bisect_right(firsts, first)
                near = self.lines[above - 1] if above else None
                self._take(proposal, lines(first, last), near)

    def _repeat(self, place: int, proposal: Proposal) -> None:
        """Give the type of a proposal to the line that it repeats, if that has none."""
        untyped = place < len(self.lines) and self.lines[place].type is MemoryType.OBSERVATION
        if not untyped or proposal.type in (MemoryType.OBSERVATION, MemoryType.IDENTITY):
            self.repeated += 1
            return
        attributes = {**self.lines[place].attributes, "extractor": self.told.provider}
        self.lines[place] = replace(
            self.lines[place],
            type=proposal.type,
            importance=min(proposal.importance, MAX_IMPORTANCE),
            attributes=attributes,
        )

    def _take(self, proposal: Proposal, locator: str, near: IngestCandidate | None) -> None:
        quote = self.extracted.text[proposal.start : proposal.end]
        attributes = {"extractor": self.told.provider, "quote": quote[:_MAX_QUOTE_CHARS]}
        if near is not None and "section" in near.attributes:
            attributes["section"] = near.attributes["section"]
        # The service limits these values as well; a text must not be able to exceed either limit.
        identity = proposal.type is MemoryType.IDENTITY
        self.made.append(
            IngestCandidate(
                f"p{len(self.made) + 1}",
                proposal.content,
                locator,
                type=MemoryType.FACT if identity else proposal.type,
                importance=min(proposal.importance, MAX_IMPORTANCE),
                confidence=min(proposal.confidence, MAX_CONFIDENCE),
                event_time=near.event_time if near else None,
                tags=near.tags if near else (),
                attributes=attributes,
            )
        )

    def _parts(self) -> Iterator[EdgeInput]:
        """Yield an edge from each proposal to its note; prose has no memory of the whole file."""
        main = self.extracted.main_key
        if self.extracted.format == "markdown" and main is not None:
            for candidate in self.made:
                yield part_of(candidate.key, main)

    def _findings(self) -> Iterator[ParseFinding]:
        for code, count in sorted(self.refused.items()):
            yield ParseFinding(SkippedPart.PROPOSAL_REJECTED, details={"reason": code}, count=count)
        if self.repeated:
            yield ParseFinding(SkippedPart.PROPOSAL_REPEATED, count=self.repeated)
        if self.told.error_code is not None:
            details = {
                "error": self.told.error_code,
                "pieces": self.told.pieces,
                "failed": self.told.failed,
            }
            yield ParseFinding(SkippedPart.EXTRACTOR_FAILED, details=details)


def _with_findings(document: ParsedDocument, findings: Sequence[ParseFinding]) -> ParsedDocument:
    return replace(document, findings=(*document.findings, *findings))
