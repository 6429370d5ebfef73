"""Limit the share of each source in a result, so that no single source fills it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from memgraph.model.sources import NamedSource

COMPARABLE: Final = 0.5
"""A memory of another source with this part of the relevance precedes one over its share."""
COMPARABLE_TURN: Final = 0.9
"""The same for turns, whose relevance depends half on the best of the search."""
RIVALS: Final = 4
"""The number of other comparable sources from which on the share also limits turns. With fewer, a
question may well be about one conversation."""
FLOOD: Final = 2 / 3
"""The share of a search's results above which one conversation floods it. On 179 questions about
chats of three to five sessions the maximum was .61; floods reach .69 to 1."""
RIVALS_OF_FLOOD: Final = 2
"""The number of rivals that suffices for a flood."""


class PlaceClaim(NamedTuple):
    """A memory that competes for a place in the result.

    Attributes:
        names: the names of its source; empty if no other memory shares it.
        relevance: to the question, 0..1.
        is_turn: True for a turn of a conversation that does not flood the search.
    """

    names: frozenset[NamedSource]
    relevance: float
    is_turn: bool = False

    @property
    def enough(self) -> float:
        """The relevance of another source's memory that may precede this one."""
        return (COMPARABLE_TURN if self.is_turn else COMPARABLE) * self.relevance


def most_of(share: float, places: int) -> int:
    """Return the maximum number of places in a result for one source, at least 2.

    With one, a short answer would leave out the other side of a change.
    """
    return max(math.ceil(share * places), 2)


def crowding(
    names_of_results: Iterable[frozenset[NamedSource]], limit: int
) -> frozenset[NamedSource]:
    """Return the names of sources with more results than their share."""
    places = Counter(name for names in names_of_results for name in names)
    return frozenset(name for name, count in places.items() if count > limit)


def flooding(
    names_of_results: Collection[frozenset[NamedSource]], crowd: Collection[NamedSource]
) -> bool:
    """Return True if one source of a crowd has more than `FLOOD` of the results of a search."""
    places = Counter(name for names in names_of_results for name in names if name in crowd)
    return max(places.values(), default=0) > FLOOD * len(names_of_results)


def rivals(claims: Iterable[PlaceClaim], crowd: frozenset[NamedSource]) -> int:
    """Return the number of other sources that are comparable to the best of a crowd."""
    claims = list(claims)
    enough = max((claim.enough for claim in claims if claim.names & crowd), default=0.0)
    count, counted = 0, set(crowd)
    for claim in claims:
        if claim.names and counted.isdisjoint(claim.names) and claim.relevance >= enough:
            count += 1
            counted |= claim.names
    return count


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
    full: set[NamedSource] = set()
    order: list[int] = []
    while remaining and len(order) < places:
        at = 0
        first = claims[remaining[0]]
        if not full.isdisjoint(first.names):
            enough = first.enough
            others = (
                place
                for place, claim_at in enumerate(remaining)
                if full.isdisjoint(claims[claim_at].names) and claims[claim_at].relevance >= enough
            )
            at = next(others, 0)
        chosen = remaining.pop(at)
        places_of.update(claims[chosen].names)
        full.update(name for name in claims[chosen].names if places_of[name] >= limit)
        order.append(chosen)
    return [*order, *remaining]
