"""The plans of the graph's queries: along indexes, whatever the size of the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from filling import NOW, Filling, flushed, fresh_database

from memgraph.model.enums import EdgeType, Scope
from memgraph.model.recall import RecallRequest
from memgraph.model.values import Edge
from memgraph.retrieval.request import narrowed
from memgraph.rules.scope import Viewer
from memgraph.store import bulletins, edges, graph, tables
from memgraph.store.edges import ContradictionFilter
from memgraph.store.engine import Database, DeadlinePassed
from memgraph.store.graph import Direction
from memgraph.store.recall import CandidateReader
from memgraph.store.snapshot import Snapshot
from memgraph.store.sqlite.engine import ENGINE
from memgraph.store.statements import CompiledStatement
from memgraph.store.visibility import STANDING, View

MEMORIES = tables.memories.alias("m")
EDGE = Edge.model_construct(edge_id="edge_1", from_id="x", to_id="y")

VIEWS = {
    "plain": View(Viewer()),
    "narrow": View(
        Viewer(project_ids=frozenset("p"), session_ids=frozenset("s"), agent_id="a"),
        statuses=STANDING,
    ),
    "as of": View(Viewer(scopes=frozenset({Scope.GLOBAL})), as_of=NOW, statuses=STANDING),
    "nothing": View(Viewer(scopes=frozenset())),
}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database whose plans are read."""
    with fresh_database(tmp_path_factory.mktemp("empty")) as opened:
        yield opened


QUERIES: dict[str, Callable[[Snapshot, View], Any]] = {
    "strongest_neighbours": lambda c, v: graph.strongest_neighbours(c, ["x"], v, None, 5),
    "edges_among": lambda c, v: graph.edges_among(c, ["x"], v, list(EdgeType), 5),
    "edges_around": lambda c, v: graph.edges_around(c, ["x"], v, 5, 5),
    "linked": lambda c, v: graph.linked(
        c, ["x"], v, [EdgeType.PART_OF], Direction.IN, 5, derivations=True
    ),
    "visible_memories": lambda c, v: graph.visible_memories(c, ["x"], v),
    "open contradictions": lambda c, v: edges.contradictions(c, v, resolved=False, limit=5),
    "resolved contradictions": lambda c, v: edges.contradictions(
        c, v, resolved=True, limit=5, after=(NOW, "edge_x")
    ),
    "a memory's contradictions": lambda c, v: edges.contradictions(
        c,
        v,
        resolved=False,
        limit=5,
        criteria=ContradictionFilter(memory_id="x", oldest_first=True),
    ),
    "status_history": lambda c, v: graph.status_history(c, "x"),
    "journal_about": lambda c, v: graph.journal_about(c, [], 5, memory_id="x"),
    "journal of edges": lambda c, v: graph.journal_about(c, [EDGE], 5),
    "knowledge": lambda c, v: bulletins.KNOWLEDGE.read(c, v, NOW, 0.5),
    "goals": lambda c, v: bulletins.GOALS.read(c, v, NOW, 0.5),
    "open_todos": lambda c, v: bulletins.OPEN_TODOS.read(c, v, NOW, 0.5),
    "decisions": lambda c, v: bulletins.decisions(c, v, NOW, 0.5),
    "preferences": lambda c, v: bulletins.PREFERENCES.read(c, v, NOW, 0.5),
    "uncertain": lambda c, v: bulletins.UNCERTAIN.read(c, v, NOW, 0.0),
    "total knowledge": lambda c, v: bulletins.KNOWLEDGE.total(c, v, NOW),
    "total goals": lambda c, v: bulletins.GOALS.total(c, v, NOW),
    "total decisions": lambda c, v: bulletins.DECISIONS.total(c, v, NOW),
    "open_conflicts": lambda c, v: bulletins.open_conflicts(c, v),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_no_query_scans_a_table_or_sorts_what_an_index_orders(
    empty: Database, query: Callable[[Snapshot, View], Any], view: View
) -> None:
    steps = _plan(empty, lambda connection: query(connection, view))
    assert steps
    created = {step.removeprefix("CO-ROUTINE ") for step in steps if step.startswith("CO-ROUTINE ")}
    scans = [step for step in steps if re.match(r"SCAN (?!.*VIRTUAL TABLE)", step)]
    scans = [step for step in scans if step.removeprefix("SCAN ") not in created]
    # One partial index holds nothing but what is wanted, in the order that is wanted.
    assert all("USING INDEX ix_memor" in step or "USING COVERING" in step for step in scans), steps
    bounded = ("edges_among", "linked", "resolved contradictions", "journal of edges")
    name = next(name for name, step in QUERIES.items() if step is query)
    if name not in bounded and view.as_of is None:
        assert not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.parametrize("criteria", [ContradictionFilter(), ContradictionFilter(words=("oven",))])
def test_whether_facts_decided_a_mark_is_looked_up_from_its_own_turns(
    empty: Database, criteria: ContradictionFilter
) -> None:
    steps = _plan(
        empty,
        lambda snapshot: edges.contradictions(
            snapshot, VIEWS["plain"], resolved=False, limit=5, criteria=criteria
        ),
    )
    order = [step.split()[1] for step in steps if step.startswith("SEARCH")]
    facts, replacements = order.index("new"), order.index("u")
    assert facts < replacements
    assert "derived_from_id" in next(step for step in steps if step.startswith("SEARCH new"))


def _plan(database: Database, work: Callable[[Snapshot], Any]) -> list[str]:
    """What SQLite says it would do for every statement that ``work`` runs."""
    queries: list[str] = []
    with database.read() as connection:
        driver: Any = connection.driver
        driver.set_trace_callback(queries.append)
        work(connection)
        driver.set_trace_callback(None)
        return [
            row[3]
            for statement in queries
            for row in driver.execute("EXPLAIN QUERY PLAN " + statement).fetchall()
        ]


def test_a_condition_binds_ids_and_never_writes_them_out() -> None:
    evil = "x' OR 1=1 --"
    view = View(Viewer(project_ids=frozenset({evil}), agent_id=evil))
    assert evil not in CompiledStatement(view.where(MEMORIES)).text(ENGINE)
    assert any(evil in str(value) for value in view.params.values())
    other = View(Viewer(project_ids=frozenset({"p"}), agent_id="a"))
    assert CompiledStatement(view.where(MEMORIES)).text(ENGINE) == CompiledStatement(
        other.where(MEMORIES)
    ).text(ENGINE)


def test_a_view_of_nothing_shows_nothing(filling: Filling) -> None:
    memory_id = filling.memory()
    with flushed(filling).read() as connection:
        for view in (View(Viewer(scopes=frozenset())), View(Viewer(), statuses=frozenset())):
            assert graph.visible_memories(connection, [memory_id], view) == {}


def test_candidates_whose_reading_was_stopped_are_read_for_the_next_leg(filling: Filling) -> None:
    for _ in range(3_000):
        filling.memory()
    database = flushed(filling)
    with database.read() as snapshot, database.engine.deadlines(snapshot) as deadline:
        narrowing = narrowed(RecallRequest(query="x"), Viewer(), NOW)
        reader, keys = CandidateReader(snapshot, narrowing), range(1, 3_001)
        with pytest.raises(DeadlinePassed), deadline(0):
            reader.read(keys)
        with deadline(10_000):
            assert [found.pk for found in reader.read(keys)] == [*keys]
