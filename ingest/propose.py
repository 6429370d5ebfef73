"""Add a language model's proposals for prose and notes to the lines of a file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ingest.candidates import MAX_CANDIDATES, IngestCandidate, ParsedDocument, line_range, lines
from ingest.parsers.notes import PART_WEIGHT
from ingest.reasons import SkippedPart
from memgraph.errors import ExtraMissing, ProviderRejected, ProviderUnavailable
from memgraph.model.enums import EdgeType, MemoryType

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

    def extend(self, document: ParsedDocument) -> None:
        """Add the model's proposals to a document; call it before any transaction.

        A proposal that repeats a line at the same place gives its type to an Observation, and is
        left out otherwise. A failure of the model, and proposals that break a rule, are reported as
        findings; all lines stay.
        """
        if document.format not in _FORMATS:
            return
        if self._failures >= GIVE_UP_AFTER:
            document.report(SkippedPart.EXTRACTOR_NOT_ASKED)
            return
        proposals = self.propose(document.text)
        if proposals is None:
            return
        self._failures = self._failures + 1 if proposals.error_code in _DOWN else 0
        _add_proposals(document, proposals)
        if proposals.error_code is not None:
            details = {
                "error": proposals.error_code,
                "pieces": proposals.pieces,
                "failed": proposals.failed,
            }
            document.report(SkippedPart.EXTRACTOR_FAILED, details=details)


def _add_proposals(document: ParsedDocument, proposals: Proposals) -> None:
    """Add the proposals, each at its place, and report those that are refused or repeated."""
    # Imported here, because it is not needed without a model.
    from memgraph.operations.ingestion.extraction import is_near

    candidates = document.candidates
    ranges = [line_range(candidate.locator) for candidate in candidates]
    # The places of the candidates on each line.
    on_line: dict[int, set[int]] = {}
    for at, (first, last) in enumerate(ranges):
        for number in range(first, last + 1):
            on_line.setdefault(number, set()).add(at)
    firsts = [first for first, _ in ranges]
    line_ends = [at for at, char in enumerate(document.text) if char == "\n"]
    refused, repeated = Counter(proposals.rejected), 0
    for proposal in proposals.accepted:
        first, last = (bisect_left(line_ends, at) + 1 for at in (proposal.start, proposal.end))
        near_it = set[int]().union(*(on_line.get(at, ()) for at in range(first, last + 1)))
        same = (at for at in sorted(near_it) if is_near(proposal.content, candidates[at].content))
        place = next(same, None)
        if not any(char.isalpha() for char in proposal.content):
            refused["content"] += 1
        elif place is not None and place < len(firsts) and _gives_type(proposal, candidates[place]):
            line = candidates[place]
            candidates[place] = replace(
                line,
                type=proposal.type,
                importance=proposal.importance,
                attributes={**line.attributes, "extractor": proposals.provider},
            )
        elif place is not None:
            repeated += 1
        elif len(candidates) >= MAX_CANDIDATES:
            refused["too_many_proposals"] += 1
        else:
            for number in range(first, last + 1):
                on_line.setdefault(number, set()).add(len(candidates))
            # The date, tags and section of the last line that begins at or above apply.
            above = bisect_right(firsts, first)
            near = candidates[above - 1] if above else None
            _add(document, proposal, proposals.provider, lines(first, last), near)
    if document.main_key is None and candidates:
        document.main_key = candidates[0].key
        document.findings[:] = [
            each for each in document.findings if each.code is not SkippedPart.NOTHING_EXTRACTED
        ]
    for code, count in sorted(refused.items()):
        document.report(SkippedPart.PROPOSAL_REJECTED, details={"reason": code}, count=count)
    document.report(SkippedPart.PROPOSAL_REPEATED, count=repeated)


def _gives_type(proposal: Proposal, line: IngestCandidate) -> bool:
    untyped = (MemoryType.OBSERVATION, MemoryType.IDENTITY)
    return line.type is MemoryType.OBSERVATION and proposal.type not in untyped


def _add(
    document: ParsedDocument,
    proposal: Proposal,
    provider: str,
    locator: str,
    near: IngestCandidate | None,
) -> None:
    quote = document.text[proposal.start : proposal.end]
    attributes = {"extractor": provider, "quote": quote[:_MAX_QUOTE_CHARS]}
    if near is not None and "section" in near.attributes:
        attributes["section"] = near.attributes["section"]
    made = document.add(
        proposal.content,
        locator,
        type=proposal.type,
        importance=proposal.importance,
        confidence=proposal.confidence,
        event_time=near.event_time if near else None,
        tags=near.tags if near else (),
        attributes=attributes,
    )
    if document.main_key is not None:
        document.join(made.key, document.main_key, EdgeType.PART_OF, PART_WEIGHT)
