"""Plays a scripted history through the public interface, with a clock that is moved along."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.histories import Action, Event, History
from memgraph.clock import MS_PER_DAY, FixedClock
from memgraph.model.enums import EdgeType
from memgraph.operations.orchestrator import Orchestrator

_BEGIN_MS = 1_767_225_600_000
_DAYS_AFTERWARDS = 3.0


def moment(day: float) -> int:
    """The day of a script as milliseconds since 1970."""
    return _BEGIN_MS + round(day * MS_PER_DAY)


def by_day(scripts: Sequence[History]) -> Iterator[tuple[History, Event]]:
    """All events of some histories in the order in which they happen."""
    events = (
        (event.day, at, number, history, event)
        for at, history in enumerate(scripts)
        for number, event in enumerate((*history.events, *history.distractors))
    )
    for *_, history, event in sorted(events, key=lambda each: each[:3]):
        yield history, event


@dataclass(slots=True)
class World:
    """An orchestrator into which histories are played."""

    memory: Orchestrator
    clock: FixedClock
    ids: dict[tuple[str, str], str] = field(default_factory=dict)
    edges: dict[tuple[str, str], str] = field(default_factory=dict)

    def play(self, scripts: Sequence[History]) -> None:
        """All events of some histories in the order of their days."""
        for history, event in by_day(scripts):
            self.move_to(event.day)
            _DO[event.action](self, history.name, event)
        self.move_to(event.day + _DAYS_AFTERWARDS)
        self.memory.settle()

    def id(self, history: str, key: str) -> str:
        return self.ids[history, key]

    def edge(self, history: str, event: Event) -> str:
        """The contradiction between two memories of a history, whichever is named first."""
        one, other = event.key, event.other
        return self.edges.get((history, f"{one}|{other}")) or self.edges[history, f"{other}|{one}"]

    def store(self, history: str, event: Event) -> str:
        # One's own later word would replace the earlier one: a dispute is between two.
        author = "another" if event.action is Action.DISPUTE else None
        stored = self.memory.remember(
            event.text, type=event.type, importance=event.importance, agent_id=author
        )
        self.ids[history, event.key] = stored
        return stored

    def join(
        self, history: str, event: Event, edge_type: EdgeType, *, partial: bool = False
    ) -> None:
        """Store a memory and join it to the older one."""
        new = self.store(history, event)
        old = self.id(history, event.other)
        edge = self.memory.relate(new, edge_type, old, partial=partial)
        self.edges[history, f"{event.key}|{event.other}"] = edge

    def move_to(self, day: float) -> None:
        """Set the clock to a day of the script."""
        self.clock.advance(ms=moment(day) - self.clock.now_ms())


def _correct(world: World, history: str, event: Event) -> None:
    old = world.id(history, event.other)
    world.ids[history, event.key] = world.memory.correct(old, event.text, reason="it was wrong")


_DO: Mapping[Action, Callable[[World, str, Event], object]] = {
    Action.STATE: World.store,
    Action.REPLACE: lambda world, name, event: world.join(name, event, EdgeType.UPDATES),
    Action.AMEND: lambda world, name, event: world.join(
        name, event, EdgeType.UPDATES, partial=True
    ),
    Action.DISPUTE: lambda world, name, event: world.join(name, event, EdgeType.CONTRADICTS),
    Action.CORRECT: _correct,
    Action.RESOLVE: lambda world, name, event: world.memory.contradictions.resolve(
        world.edge(name, event), winner=world.id(name, event.key), reason="it was looked up"
    ),
    Action.REOPEN: lambda world, name, event: world.memory.contradictions.reopen(
        world.edge(name, event), reason="there is doubt again"
    ),
    Action.WITHDRAW: lambda world, name, event: world.memory.retract(
        world.id(name, event.key), reason="it was never so"
    ),
}
