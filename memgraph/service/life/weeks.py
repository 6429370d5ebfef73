"""Reading a week: what a reflection on one scope is made of, in one short transaction."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from memgraph.consolidation.centrality import derivation_ties, edge_ties, entity_ties
from memgraph.consolidation.digest import Week
from memgraph.model.enums import MemoryKind, Scope, Sensitivity
from memgraph.model.values import Memory
from memgraph.policy.reflection import CLEARANCE, Period
from memgraph.policy.scope import Viewer
from memgraph.storage import memories
from memgraph.storage import reflection_queries as queries
from memgraph.storage.visibility import View

MAX_PROJECTS = 50
MAX_PAIRS, MAX_TASKS = 50, 500


@dataclass(frozen=True, slots=True)
class Place:
    """The scope that a reflection is on: global, or one project. What it reads, it may be shown to.

    A conversation has no reflection: what it holds alone is not to leave it.
    """

    scope: Scope = Scope.GLOBAL
    scope_id: str | None = None

    @property
    def view(self) -> View:
        granted = frozenset() if self.scope_id is None else frozenset({self.scope_id})
        return View(Viewer(CLEARANCE, project_ids=granted, scopes=frozenset({self.scope})))


def places(connection: sa.Connection, during: Period, min_facts: int) -> list[Place]:
    """Global, and every project with so many new facts, the busiest ones."""
    open_ones = [each.value for each in Sensitivity if each.level <= CLEARANCE.level]
    found = queries.projects(connection, during, open_ones, min_facts, MAX_PROJECTS)
    return [Place(), *(Place(Scope.PROJECT, each) for each in found)]


def read_week(
    connection: sa.Connection, place: Place, during: Period, now_ms: int, limit: int
) -> Week:
    """The last ``limit`` memories of a period, what joins them, and what came of them."""
    view = place.view
    found = queries.of_period(connection, view, during, limit)
    ids = [each.memory_id for each in found]
    ties = [
        *edge_ties(queries.edges_among(connection, ids)),
        *derivation_ties(queries.derivations_among(connection, ids)),
        *entity_ties(queries.entities_of(connection, ids)),
    ]
    return Week(
        during=during,
        now_ms=now_ms,
        memories=found,
        ties=ties,
        contradictions=_pairs(
            connection, queries.contradictions(connection, view, during, MAX_PAIRS)
        ),
        replaced=_pairs(connection, queries.replacements(connection, view, during, MAX_PAIRS)),
        tasks=queries.tasks(connection, view, MAX_TASKS),
        total=queries.count_facts(connection, view, during),
    )


def is_enough(week: Week, min_facts: int) -> bool:
    """Whether there are facts enough to reflect on."""
    return sum(each.kind is MemoryKind.FACT for each in week.memories) >= min_facts


def _pairs(connection: sa.Connection, found: list[tuple[str, str]]) -> list[tuple[Memory, Memory]]:
    ids = sorted({one for pair in found for one in pair})
    by_id = {each.memory_id: each for each in memories.get_many(connection, ids)}
    return [(by_id[one], by_id[other]) for one, other in found]
