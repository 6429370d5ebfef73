"""How much a memory gains by being said again: from independent sources, and from no other.

The confidence of a memory with n independent sources is ``C - (C - base) x k^(n-1)``: each further
one takes away the same share of what is missing to a ceiling C below certainty. That is the
noisy-OR of J. Pearl, "Probabilistic Reasoning in Intelligent Systems", 1988, chapter 4, bounded:
however many repeat a thing, only a person's word makes it certain.

Sources are kept beside a memory, each once, so a source that comes again adds nothing; and since
the formula can be turned round, the base is never lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

CEILING = 0.95
SHARE_KEPT = 0.7
"""k: what is left of the distance to the ceiling after one further source."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What tells one source from another: a conversation, a file, a run of a workflow."""

    conversation_id: str | None = None
    source_path: str | None = None
    content_sha256: str | None = None
    workflow_run_id: str | None = None

    @property
    def keys(self) -> frozenset[tuple[str, str]]:
        """Two origins that share one of them are the same place, told twice."""
        named = (
            ("conversation", self.conversation_id),
            ("path", self.source_path),
            ("content", self.content_sha256),
            ("run", self.workflow_run_id),
        )
        return frozenset((name, value) for name, value in named if value)


def independent_sources(own: Iterable[Origin], supports: Iterable[Origin]) -> int:
    """How many independent sources say it, the memory's own included; at least 1.

    Args:
        own: where the memory came from: its source, the session in which it was said.
        supports: further sources in the order in which they came. One that shares its conversation,
            file or run with one before it is no further source, nor is one that names none.
    """
    known = {key for origin in own for key in origin.keys}
    count = 1
    for origin in supports:
        if origin.keys and not origin.keys & known:
            count += 1
        known |= origin.keys
    return count


def supported_confidence(base: float, sources: int) -> float:
    """The confidence, 0..1, of a memory of this base with so many independent sources (>= 1).

    A base at the ceiling or above it stays as it is.
    """
    return strengthened(base, 1, sources)


def base_confidence(confidence: float, sources: int) -> float:
    """The base from which ``supported_confidence`` came to this confidence; at least 0."""
    if confidence >= CEILING:
        return confidence
    return max(CEILING - (CEILING - confidence) / SHARE_KEPT ** (max(sources, 1) - 1), 0.0)


def strengthened(confidence: float, before: int, after: int) -> float:
    """The confidence after the independent sources became more; never lower than it was."""
    if after <= before or confidence >= CEILING:
        return confidence
    return CEILING - (CEILING - confidence) * SHARE_KEPT ** (after - before)
