"""Random small graphs with hidden, replaced and late memories, and who looks at them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from filling import NOW, Filling, flushed, fresh_database
from hypothesis import strategies as st

from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, Scope, Sensitivity
from memgraph.rules.scope import DEFAULT_VIEWER, ScopeFacts, Viewer, visible
from memgraph.store.engine import Database
from memgraph.store.visibility import View

T = TypeVar("T")
SCOPE_IDS = ["a", "b"]
SECRET = "TOPSECRET"

id_sets = st.frozensets(st.sampled_from(SCOPE_IDS))
viewers = st.builds(
    Viewer,
    clearance=st.sampled_from(Sensitivity),
    project_ids=id_sets,
    session_ids=id_sets,
    scopes=st.frozensets(st.sampled_from(Scope), min_size=1),
    agent_id=st.none() | st.sampled_from(SCOPE_IDS),
)


@st.composite
def _memories(draw: st.DrawFn) -> dict[str, Any]:
    scope = draw(st.sampled_from([Scope.GLOBAL, *Scope]))
    created = NOW + draw(st.integers(0, 5))
    changed = draw(st.none() | st.integers(created, NOW + 8))
    status = "active" if changed is None else draw(st.sampled_from(["superseded", "retracted"]))
    history = [("active", created, changed)]
    if changed is not None:
        history.append((status, changed, None))
    return {
        "kind": draw(st.sampled_from(MemoryKind)).value,
        "type": draw(st.sampled_from(MemoryType)).value,
        "importance": draw(st.integers(0, 100)),
        "confidence": draw(st.sampled_from([0.2, 0.4, 0.9])),
        "sensitivity": draw(st.sampled_from(Sensitivity)).value,
        "scope": scope.value,
        "scope_id": None if scope is Scope.GLOBAL else draw(st.sampled_from(SCOPE_IDS)),
        "agent_id": draw(st.none() | st.sampled_from(SCOPE_IDS)),
        "created_at": created,
        "status": status,
        "history": history,
    }


_edges = st.fixed_dictionaries(
    {
        "ends": st.tuples(st.integers(0, 7), st.integers(0, 7)),
        "edge_type": st.sampled_from(EdgeType).map(str),
        "weight": st.sampled_from([0.0, 0.5, 1.0]),
        "created_at": st.integers(NOW, NOW + 8),
        "resolved_after": st.none() | st.integers(0, 4),
    }
)


@dataclass
class World:
    """What was stored: rows by memory id, edges, and pairs (memory, what it was derived from)."""

    memories: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: list[dict[str, Any]] = field(default_factory=list)
    derivations: set[tuple[str, str]] = field(default_factory=set)

    def seen(self, viewer: Viewer) -> set[str]:
        """Ids that the rule itself lets the viewer see."""
        return {one for one, row in self.memories.items() if _allowed(viewer, row)}

    def leaks(self, told: str, viewer: Viewer) -> list[str]:
        """Hidden memories of which the id or the text is found in ``told``."""
        hidden = self.memories.keys() - self.seen(viewer)
        return [one for one in hidden if one in told or self.memories[one]["content"] in told]


def upwards(world: World, *edge_types: str) -> set[tuple[str, str]]:
    """The ends of edges; an Updates edge of a weight below 1 is a mark, and replaces nothing."""
    return {
        (e["from"], e["to"])
        for e in world.edges
        if e["type"] in edge_types and (e["type"] != "Updates" or e["weight"] == 1.0)
    }


def stands_on(world: World) -> set[tuple[str, str]]:
    """Pairs of a memory and its evidence."""
    return upwards(world, "CausedBy", "PartOf") | world.derivations


def successors(world: World, ground: str) -> set[str]:
    """What took the place of a memory: it replaced it, or won a contradiction with it."""
    lost = {e["from"] for e in world.edges if e["to"] == ground and e["resolved_at"] is not None}
    return lost | {one for one, old in upwards(world, "Updates") if old == ground}


def reached(pairs: set[tuple[str, str]], starts: set[str], within: set[str]) -> dict[str, int]:
    """Distances from ``starts`` along pairs, through memories of ``within`` alone."""
    found = dict.fromkeys(starts, 0)
    frontier = starts
    while frontier:
        frontier = {to for one, to in pairs if one in frontier and to in within and to not in found}
        found |= dict.fromkeys(frontier, max(found.values()) + 1)
    return {one: distance for one, distance in found.items() if one not in starts}


def reverse(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(to, one) for one, to in pairs}


def _allowed(viewer: Viewer, row: dict[str, Any]) -> bool:
    facts = ScopeFacts(row["scope"], row["scope_id"], row["sensitivity"], row["agent_id"])
    return visible(viewer, facts).allowed


plans = st.tuples(
    st.lists(_memories(), min_size=1, max_size=8),
    st.lists(_edges, max_size=16),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=6),
)


@contextmanager
def stored(plan: tuple[Any, ...]) -> Iterator[tuple[Database, World]]:
    """A database of its own with what ``plans`` drew."""
    memories, edges, derivations = plan
    with (
        tempfile.TemporaryDirectory() as folder,
        fresh_database(Path(folder)) as database,
    ):
        filling, world = Filling(database), World()
        for number, row in enumerate(memories):
            text = f"{SECRET}-{number}-text"
            source = filling.source(f"src_{text}")
            full = row | {"content": text, "summary": text, "source_id": source}
            world.memories[filling.memory(**full)] = full
        ids = list(world.memories)
        known, replaced = set(), set()
        for edge in edges:
            ends = tuple(ids[end % len(ids)] for end in edge["ends"])
            key = (*ends, edge["edge_type"])
            if ends[0] == ends[1] or key in known:
                continue
            known.add(key)
            values = {name: edge[name] for name in ("weight", "created_at")}
            # One memory at most replaces another; further edges are marks.
            if edge["edge_type"] == "Updates" and edge["weight"] == 1.0 and ends[1] in replaced:
                values["weight"] = 0.5
            elif edge["edge_type"] == "Updates" and edge["weight"] == 1.0:
                replaced.add(ends[1])
            if edge["edge_type"] == "Contradicts" and edge["resolved_after"] is not None:
                values["resolved_at"] = edge["created_at"] + edge["resolved_after"]
                values["resolution"] = {"winner_id": ends[0], "loser_id": ends[1]}
            edge_id = filling.edge(*ends, edge["edge_type"], **values)
            world.edges.append(
                {"edge_id": edge_id, "from": ends[0], "to": ends[1], "type": edge["edge_type"]}
                | {"resolved_at": None}
                | values
            )
        for pair in derivations:
            one, ground = (ids[end % len(ids)] for end in pair)
            if one != ground and (one, ground) not in world.derivations:
                world.derivations.add((one, ground))
                filling.derived(one, ground)
        filling.flush()
        for edge in world.edges:
            filling.journal("relate", edge["from"], to=edge["to"], of=[edge["from"], edge["to"]])
        yield database, world


def reading(
    function: Callable[..., T], statuses: frozenset[MemoryStatus] | None = None
) -> Callable[..., T]:
    """Return a function of a snapshot and a view as one of a database, a viewer and a time.

    A ``Filling`` is a database too, once it is written.
    """

    def read(
        database: Database | Filling,
        *given: Any,
        viewer: Viewer = DEFAULT_VIEWER,
        as_of: int | None = None,
        statuses: frozenset[MemoryStatus] | None = statuses,
        **named: Any,
    ) -> T:
        with flushed(database).read() as snapshot:
            return function(snapshot, View(viewer, as_of, statuses), *given, **named)

    return read
