"""What a dry run shows of an erasure: how the texts begin, and names like the one that is meant."""

from __future__ import annotations

from itertools import islice
from typing import Final

import sqlalchemy as sa

from memgraph.model.erasing import Erasable, ErasurePreview
from memgraph.service.erasing.plan import Plan
from memgraph.storage import erasing_queries as queries

SHOWN: Final = 200
"""Memories that go, and as many of those that stay, whose texts are shown."""
_BEGINNING: Final = 80
_SIMILAR: Final = 20
_SHORTEST_WORD: Final = 3


def preview(connection: sa.Connection, plan: Plan) -> ErasurePreview:
    """What a plan would take, in words; reads alone. The files that wait are not in it."""
    kept = [each["memory_id"] for each in plan.kept[:SHOWN]]
    begins = queries.beginnings(connection, [*plan.memory_ids[:SHOWN], *kept], _BEGINNING)
    derived = set(plan.derived_pks)
    ids = zip(plan.pks, plan.memory_ids, strict=True)
    return ErasurePreview(
        begins=begins,
        derived_ids=tuple(memory_id for pk, memory_id in ids if pk in derived),
        similar=_similar(connection, plan) if plan.kind is Erasable.ENTITY else (),
    )


def _similar(connection: sa.Connection, plan: Plan) -> tuple[str, ...]:
    """Names of other entities with a word of the one that is named, as a short name has."""
    meant = [name for each in queries.entity(connection, plan.target) for name in each.names]
    own = {word for name in meant for word in _words(name)}
    known = {name.casefold() for name in meant}
    others = queries.entity_names(connection)
    found = (each for each in others if each.casefold() not in known and own & set(_words(each)))
    return tuple(islice(found, _SIMILAR))


def _words(name: str) -> list[str]:
    return [each for each in name.casefold().split() if len(each) >= _SHORTEST_WORD]
