"""Trust in sources: a lower one replaces nothing of a higher one.

Trust only sinks on its way from a source to what is concluded from it: a memory is trusted no
further than the least trusted of what it stands on. That is the low-water mark of K. J. Biba,
"Integrity Considerations for Secure Computer Systems", MITRE MTR-3153, 1977. A model that repeats
a poisoned file in words of its own thereby gains it nothing.

What protects a memory is the best of its sources, so that nobody lowers it by saying it again.
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
"""Why, by code."""


_NO_QUOTA: Final = -1


class NamedSource(NamedTuple):
    """A source by one of its names. A path names a file, or a folder with all below it."""

    kind: SourceName
    name: str


class AssignedTrust(NamedTuple):
    """The trust that an operator assigned; ``max_memories`` None: the quota of its tier."""

    tier: TrustTier
    max_memories: int | None = None


class CaptureFacts(NamedTuple):
    """The facts of a source, and of a memory from it, that its trust depends on."""

    source_type: SourceType
    captured_by: CapturedBy
    source_path: str | None = None
    conversation_id: str | None = None
    workflow_run_id: str | None = None
    content_sha256: str | None = None
    session_id: str | None = None

    @property
    def names(self) -> frozenset[NamedSource]:
        """All its names; a conversation and the session of a turn are one thing."""
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
        """Return the name that a memory has from its session."""
        return frozenset((NamedSource(SourceName.CONVERSATION, session_id),) if session_id else ())


class Quota(NamedTuple):
    """So many memories may bear this name, those retracted not counted."""

    named: NamedSource
    most: int


@dataclass(frozen=True, slots=True)
class TrustRules:
    """The trust of the sources of one orchestrator.

    Attributes:
        told: what operators said.
    """

    captured_by: Mapping[CapturedBy, TrustTier]
    source_type: Mapping[SourceType, TrustTier]
    max_memories: Mapping[TrustTier, int]
    told: Mapping[NamedSource, AssignedTrust] = field(default_factory=dict)

    @classmethod
    def of(
        cls, settings: TrustSettings, assigned: Mapping[NamedSource, AssignedTrust] | None = None
    ) -> TrustRules:
        """Return the trust by the settings and the operators."""
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
        """The tiers that a source may have."""
        assigned = (trust.tier for trust in self.told.values())
        return frozenset((*self.captured_by.values(), *self.source_type.values(), *assigned))

    @property
    def uniform(self) -> bool:
        """Return True when everything is trusted alike, so that nothing need be looked up."""
        return len(self.tiers) == 1

    @property
    def unlimited(self) -> bool:
        """Return True when nothing is counted: no source of a tier that is in use has a quota."""
        has_quota = any(entry.max_memories is not None for entry in self.told.values())
        return not has_quota and not any(self.max_memories[tier] for tier in self.tiers)

    def tier(self, source: CaptureFacts) -> TrustTier:
        """Return how far a source is trusted.

        Of a path the longest that was told counts: the file before its folder. Of several names
        that were told the lowest tier does; where none was, the lower of the settings' two.
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
        """Return True when an operator said something of it, or of a folder in which it lies."""
        return any(True for _ in self._assigned_to(source))

    def words(self, source: CaptureFacts) -> frozenset[tuple[NamedSource, AssignedTrust]]:
        """Return what operators said that decides how far a source is trusted; empty: the settings
        do.
        """
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
        supports: further sources that say it.
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
        """The sources that say it, where any is left; else where it came from."""
        return self.supports if self.own_gone and self.supports else (self.own, *self.supports)


def lowest(tiers: Iterable[TrustTier]) -> TrustTier:
    """Return the least trusted of several. Raises ValueError: of none."""
    return min(tiers, key=lambda tier: tier.level)


def ceiling(facts: TrustFacts, trust: TrustRules) -> TrustTier:
    """Return the tier of the best source that says a memory: what protects it."""
    tiers = [trust.tier(tier) for tier in facts.saying]
    return max(tiers, key=lambda tier: tier.level)


def floors(
    memory_ids: Iterable[str], standings: Mapping[str, TrustFacts], trust: TrustRules
) -> dict[str, TrustTier]:
    """Return the tier of the least that each of some memories stands on: with which it may replace.

    A ground that is no part of ``standings`` could not be judged and counts as the lowest. Further
    sources count for nothing here: they neither lower what was said before, nor lift what stands
    on a low ground. Nor does a memory count that is among its own grounds.
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
    """Yield a name, and for a path every folder above it, the nearest first."""
    yield source
    if source.kind is SourceName.PATH:
        path = source.name
        while "/" in path:
            path = path.rpartition("/")[0]
            yield NamedSource(source.kind, path or "/")


# A share of an answer's places for each source, so that no single one fills an answer. Pure.


COMPARABLE: Final = 0.5
"""What is at least so relevant, beside a memory whose source has its share, goes before it."""
RIVALS: Final = 2
"""Other sources as relevant as a talk that make the share hold for its turns, too."""
FLOOD: Final = 2 / 3
"""Share of what the words and the vectors of a question find that no talk holds by itself. On 179
questions about chats of three to five sessions one held .61 at most; floods hold .69 to 1."""
LOW_TRUST: Final = 0.9
"""Factor of the score of a memory whose source is of low trust."""


class PlaceClaim(NamedTuple):
    """A memory that could have a place.

    Attributes:
        names: of its source; none: no other memory shares it.
        relevance: 0..1, how much it has to do with the question.
        bounded: whether the share holds for it. For a turn of a talk it does where its source is of
            low trust, or floods the search and is `contested`: one talk is what many questions are
            about.
    """

    names: frozenset[NamedSource]
    relevance: float
    bounded: bool


def most_of(share: float, places: int) -> int:
    """Return how many of an answer's places one source may hold, at least 1."""
    return max(math.ceil(share * places), 1)


def crowding(claims: Iterable[PlaceClaim], limit: int) -> frozenset[NamedSource]:
    """Return the names of sources with more bounded claims than their share."""
    places = Counter(name for claim in claims if claim.bounded for name in claim.names)
    return frozenset(name for name, count in places.items() if count > limit)


def flooding(
    names_of_results: Collection[frozenset[NamedSource]], crowd: Collection[NamedSource]
) -> bool:
    """Return whether one of a crowd holds more than `FLOOD` of what a search found.

    Args:
        names_of_results: the names of the source of each memory.
    """
    places = Counter(name for names in names_of_results for name in names if name in crowd)
    return max(places.values(), default=0) > FLOOD * len(names_of_results)


def contested(claims: Iterable[PlaceClaim], crowd: Collection[NamedSource]) -> bool:
    """Return whether `RIVALS` other sources are comparably relevant to the best of a crowd."""
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
    """Return the order of claims, as indices, in which no source holds more than its share.

    A claim beyond its source's share gives way to the next one of another source that is
    comparably relevant. Where there is none it keeps its place: an answer is not left empty.

    Args:
        claims: best first.
        places: of the answer; what comes behind them keeps its order.
        limit: places of one source.
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
