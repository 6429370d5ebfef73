"""Trust in sources: a less trusted source cannot replace memories of a more trusted one.

A memory is trusted no more than the least trusted memory that it is derived from. This is the
low-water mark policy of K. J. Biba, "Integrity Considerations for Secure Computer Systems", MITRE
MTR-3153, 1977. A poisoned file therefore gains no trust when a model paraphrases it.

The most trusted of its sources protects a memory, so nobody can lower it by repeating it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from memgraph.config.schema import TrustSettings
from memgraph.model.enums import CapturedBy, SourceName, SourceType, TrustTier

LESS_TRUSTED: Final = "source.less_trusted"
OTHER_AUTHOR: Final = "source.other_author"
"""The codes of an Updates edge that became an open contradiction."""
KEPT_APART: Final[Mapping[str, str]] = {
    LESS_TRUSTED: "a less trusted source replaces nothing that a more trusted one said",
    OTHER_AUTHOR: "an actor replaces what it stored itself, unless its source is of high trust",
}
"""The explanation of each code."""


_NO_QUOTA: Final = -1


class NamedSource(NamedTuple):
    """A source by one of its names. A path names a file, or a folder with everything below it."""

    kind: SourceName
    name: str


class AssignedTrust(NamedTuple):
    """The trust that an operator assigned. ``max_memories`` None means the tier's quota."""

    tier: TrustTier
    max_memories: int | None = None


class CaptureFacts(NamedTuple):
    """The properties of a source, and of a memory from it, on which its trust depends."""

    source_type: SourceType
    captured_by: CapturedBy
    source_path: str | None = None
    conversation_id: str | None = None
    workflow_run_id: str | None = None
    content_sha256: str | None = None
    session_id: str | None = None

    @property
    def names(self) -> frozenset[NamedSource]:
        """Return all names of the source; a session counts as a conversation."""
        values = (
            (SourceName.PATH, self.source_path),
            (SourceName.CONVERSATION, self.conversation_id),
            (SourceName.CONVERSATION, self.session_id),
            (SourceName.RUN, self.workflow_run_id),
            (SourceName.CONTENT, self.content_sha256),
        )
        return frozenset(NamedSource(kind, name) for kind, name in values if name)

    @staticmethod
    def of_session(session_id: str) -> frozenset[NamedSource]:
        """Return the source name that a session gives to its memories."""
        return frozenset((NamedSource(SourceName.CONVERSATION, session_id),) if session_id else ())


class Quota(NamedTuple):
    """The maximum number of memories from a named source, not counting retracted ones."""

    named: NamedSource
    most: int


@dataclass(frozen=True, slots=True)
class TrustRules:
    """The trust of the sources of one orchestrator.

    Attributes:
        told: the trust that operators assigned.
    """

    captured_by: Mapping[CapturedBy, TrustTier]
    source_type: Mapping[SourceType, TrustTier]
    max_memories: Mapping[TrustTier, int]
    told: Mapping[NamedSource, AssignedTrust] = field(default_factory=dict)

    @classmethod
    def of(
        cls, settings: TrustSettings, assigned: Mapping[NamedSource, AssignedTrust] | None = None
    ) -> TrustRules:
        """Build the rules from the settings and the operators' assignments."""
        captors, types = settings.captured_by, settings.source_type
        quotas = settings.max_memories
        return cls(
            {item: TrustTier(getattr(captors, item.value)) for item in CapturedBy},
            {item: TrustTier(getattr(types, item.value)) for item in SourceType},
            {item: getattr(quotas, item.value) for item in TrustTier},
            assigned or {},
        )

    @property
    def tiers(self) -> frozenset[TrustTier]:
        """Return every tier that a source can have."""
        assigned = (trust.tier for trust in self.told.values())
        return frozenset((*self.captured_by.values(), *self.source_type.values(), *assigned))

    @property
    def uniform(self) -> bool:
        """Return True when all sources have the same tier, so that nothing need be looked up."""
        return len(self.tiers) == 1

    @property
    def unlimited(self) -> bool:
        """Return True when no source can have a quota, so that nothing need be counted."""
        has_quota = any(entry.max_memories is not None for entry in self.told.values())
        return not has_quota and not any(self.max_memories[tier] for tier in self.tiers)

    def tier(self, source: CaptureFacts) -> TrustTier:
        """Return the tier of a source.

        An assignment to a file takes precedence over one to its folder. Among assignments to
        several names the lowest tier counts; without one, the lower tier of the two settings.
        """
        tiers = [trust.tier for _, trust in self._assigned_to(source)]
        if tiers:
            return lowest(tiers)
        return lowest((self.captured_by[source.captured_by], self.source_type[source.source_type]))

    def quotas(self, source: CaptureFacts) -> list[Quota]:
        """Return the quota of each name of a source, and of each folder that has one."""
        limits: dict[NamedSource, int] = {}
        by_default = self.max_memories[self.tier(source)]
        for name in source.names:
            if by_default:
                limits[name] = by_default
            for source_name in _with_folders(name):
                if source_name in self.told:
                    tier, limit = self.told[source_name]
                    limits[source_name] = (
                        self.max_memories[tier] or _NO_QUOTA if limit is None else limit
                    )
        return sorted(
            Quota(source_name, limit) for source_name, limit in limits.items() if limit != _NO_QUOTA
        )

    def is_told(self, source: CaptureFacts) -> bool:
        """Return True when an operator assigned trust to the source or to a folder above it."""
        return any(True for _ in self._assigned_to(source))

    def words(self, source: CaptureFacts) -> frozenset[tuple[NamedSource, AssignedTrust]]:
        """Return the assignments that decide a source's trust; if empty, the settings decide."""
        return frozenset(self._assigned_to(source))

    def _assigned_to(self, source: CaptureFacts) -> Iterator[tuple[NamedSource, AssignedTrust]]:
        for name in source.names:
            for source_name in _with_folders(name):
                if source_name in self.told:
                    yield source_name, self.told[source_name]
                    break


@dataclass(frozen=True, slots=True)
class TrustFacts:
    """The origin and the trust of a memory.

    Attributes:
        own: where it came from.
        supports: further sources that state it.
        grounds: ids of the memories that it was derived from when it was stored; not those that
            came along when it was said again.
        own_gone: its own source was retracted; other sources still state it.
    """

    own: CaptureFacts
    supports: tuple[CaptureFacts, ...] = ()
    grounds: tuple[str, ...] = ()
    own_gone: bool = False

    @property
    def saying(self) -> tuple[CaptureFacts, ...]:
        """Return the sources that still state it; if none does, its own source."""
        return self.supports if self.own_gone and self.supports else (self.own, *self.supports)


def lowest(tiers: Iterable[TrustTier]) -> TrustTier:
    """Return the lowest of several tiers. Raises ValueError if there are none."""
    return min(tiers, key=lambda tier: tier.level)


def ceiling(facts: TrustFacts, trust: TrustRules) -> TrustTier:
    """Return the tier of the most trusted source that states a memory; it protects it."""
    tiers = [trust.tier(tier) for tier in facts.saying]
    return max(tiers, key=lambda tier: tier.level)


def floors(
    memory_ids: Iterable[str], standings: Mapping[str, TrustFacts], trust: TrustRules
) -> dict[str, TrustTier]:
    """Return, for each memory, the lowest tier among itself and the memories it is derived from.

    It decides what the memory may replace. Evidence missing in ``standings`` counts as the lowest
    tier. Further sources neither lower nor raise it. Cycles are ignored.
    """
    own = {memory_id: trust.tier(facts.own) for memory_id, facts in standings.items()}
    return {memory_id: _floor(memory_id, standings, own) for memory_id in memory_ids}


def _floor(
    memory_id: str, standings: Mapping[str, TrustFacts], own: Mapping[str, TrustTier]
) -> TrustTier:
    floor, visited, waiting = TrustTier.HIGH, {memory_id}, [memory_id]
    while waiting:
        current = waiting.pop()
        if current not in standings:
            return TrustTier.LOW
        floor = lowest((floor, own[current]))
        for ground in standings[current].grounds:
            if ground not in visited:
                visited.add(ground)
                waiting.append(ground)
    return floor


def _with_folders(source: NamedSource) -> Iterator[NamedSource]:
    """Yield a source name and, for a path, every folder above it, nearest first."""
    yield source
    if source.kind is SourceName.PATH:
        path = source.name
        while "/" in path:
            path = path.rpartition("/")[0]
            yield NamedSource(source.kind, path or "/")


# Limit the share of each source in a result, so that no single source fills it.


COMPARABLE: Final = 0.5
"""A memory of another source with this part of the relevance precedes one over its share."""
RIVALS: Final = 2
"""The number of other relevant sources from which on the share also limits a conversation."""
FLOOD: Final = 2 / 3
"""The share of a search's results above which one conversation counts as flooding it. On 179
questions about chats of three to five sessions the maximum was .61; floods reach .69 to 1."""
LOW_TRUST: Final = 0.9
"""The factor for the score of a memory whose source has low trust."""


class PlaceClaim(NamedTuple):
    """A memory that competes for a place in the result.

    Attributes:
        names: the names of its source; empty if no other memory shares it.
        relevance: to the question, 0..1.
        bounded: True if the share limits it. A turn is limited only if its source has low trust,
            or floods the search and is `contested`, since many questions are about one
            conversation.
    """

    names: frozenset[NamedSource]
    relevance: float
    bounded: bool


def most_of(share: float, places: int) -> int:
    """Return the maximum number of places in a result for one source, at least 1."""
    return max(math.ceil(share * places), 1)


def crowding(claims: Iterable[PlaceClaim], limit: int) -> frozenset[NamedSource]:
    """Return the names of sources with more bounded claims than their share."""
    places = Counter(name for claim in claims if claim.bounded for name in claim.names)
    return frozenset(name for name, count in places.items() if count > limit)


def flooding(
    names_of_results: Collection[frozenset[NamedSource]], crowd: Collection[NamedSource]
) -> bool:
    """Return True if one source of a crowd has more than `FLOOD` of the results of a search.

    Args:
        names_of_results: the source names of each result.
    """
    places = Counter(name for names in names_of_results for name in names if name in crowd)
    return max(places.values(), default=0) > FLOOD * len(names_of_results)


def contested(claims: Iterable[PlaceClaim], crowd: Collection[NamedSource]) -> bool:
    """Return True if at least `RIVALS` other sources are nearly as relevant as the crowd's best."""
    claims = list(claims)
    best = max(
        (claim.relevance for claim in claims if not claim.names.isdisjoint(crowd)), default=0.0
    )
    rivals, crowd_names = 0, set(crowd)
    for claim in claims:
        if (
            claim.names
            and crowd_names.isdisjoint(claim.names)
            and claim.relevance >= COMPARABLE * best
        ):
            rivals += 1
            crowd_names |= claim.names
    return rivals >= RIVALS


def shared(claims: Sequence[PlaceClaim], places: int, limit: int) -> list[int]:
    """Reorder claims so that no source has more than its share; return their indices.

    A claim beyond its source's share is moved behind the next comparably relevant claim of
    another source. If there is none it keeps its place, so that no place stays empty.

    Args:
        claims: best first.
        places: the size of the result; claims behind it keep their order.
        limit: the maximum number of places for one source.
    """
    remaining = list(range(len(claims)))
    places_of: Counter[NamedSource] = Counter()
    order: list[int] = []

    def is_over(claim: PlaceClaim) -> bool:
        return claim.bounded and any(places_of[name] >= limit for name in claim.names)

    while remaining and len(order) < places:
        at = 0
        first = claims[remaining[0]]
        if is_over(first):
            enough = COMPARABLE * first.relevance
            others = (
                place
                for place, claim_at in enumerate(remaining)
                if not is_over(claims[claim_at]) and claims[claim_at].relevance >= enough
            )
            at = next(others, 0)
        chosen = remaining.pop(at)
        places_of.update(claims[chosen].names)
        order.append(chosen)
    return [*order, *remaining]
