"""A memory in every place that there is, each with a word that stands nowhere else."""

from __future__ import annotations

import re
from collections.abc import ItemsView, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle, product
from string import ascii_lowercase
from typing import Any

from pydantic import BaseModel

from memgraph import MemoryService, Orchestrator, Scope, Sensitivity, Viewer
from memgraph.rules.scope import ScopeFacts, visible

TASKS = ("Kxtaska", "Kxtaskb")
PROJECTS = ("Kxproja", "Kxprojb")
AGENTS = (None, "Kxagena", "Kxagenb")
EVERYTHING = Viewer(
    clearance=Sensitivity.RESTRICTED,
    session_ids=frozenset(TASKS),
    project_ids=frozenset(PROJECTS),
)
QUERY = "Who keeps the launch plan?"

_WORD = re.compile(r"Kx[a-z]{5}")
_MARK = re.compile(rf"{_WORD.pattern}|(?:ep|fact|ref)_[0-9A-Z]{{26}}")
_PLACES = [
    (Scope.GLOBAL, None),
    *((Scope.SESSION, one) for one in TASKS),
    *((Scope.PROJECT, one) for one in PROJECTS),
]
_EDGES = ("RelatedTo", "Contradicts", "CausedBy", "PartOf", "RelatedTo", "Updates")


@dataclass(frozen=True)
class Canary:
    """A memory, the word that its text begins with and all that stand in it, and where it is."""

    memory_id: str
    word: str
    words: frozenset[str]
    facts: ScopeFacts

    def hidden_from(self, viewer: Viewer) -> bool:
        return not visible(viewer, self.facts).allowed


@dataclass
class World:
    """All of them, and what joins them."""

    canaries: list[Canary] = field(default_factory=list)
    edges: list[tuple[str, str, str]] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    at: int = 0

    def seen(self, viewer: Viewer) -> list[Canary]:
        return [each for each in self.canaries if not each.hidden_from(viewer)]

    def hidden(self, viewer: Viewer) -> list[Canary]:
        return [each for each in self.canaries if each.hidden_from(viewer)]

    def forbidden(self, viewer: Viewer) -> frozenset[str]:
        """Words and ids that nothing that this reader is handed may hold."""
        shown = {word for each in self.seen(viewer) for word in each.words}
        shown |= viewer.session_ids | viewer.project_ids | {viewer.agent_id or ""}
        hidden = self.hidden(viewer)
        words = {word for each in hidden for word in each.words}
        return frozenset(words - shown) | {each.memory_id for each in hidden}


def built(service: MemoryService, name: str, prefix: str = "a") -> World:
    """An orchestrator with every canary in it; ``prefix``: a letter that its words begin with."""
    orc = service.orchestrator(name, create=True, viewer=EVERYTHING)
    world = World()
    kinds = cycle(["fact", "episode", "fact", "reflection"])
    for number, ((scope, scope_id), sensitivity, agent_id) in enumerate(
        product(_PLACES, Sensitivity, AGENTS)
    ):
        words = [_word(prefix, 4 * number + each) for each in range(4)]
        kind = next(kinds)
        fields: dict[str, Any] = {
            "kind": kind,
            "type": ["Fact", "Goal", "Todo", "Decision", "Preference"][number % 5],
            "scope": scope,
            "scope_id": scope_id,
            "sensitivity": sensitivity,
            "agent_id": agent_id,
            "importance": 40 + number % 50,
            "tags": ["launch", words[1]] + (["weekly"] if kind == "reflection" else []),
            "attributes": {"note": words[2]},
            "source": {"conversation_id": words[3]},
        }
        if kind == "episode":
            fields |= {"session_id": f"talk-{words[0]}", "source_role": "user"}
            world.sessions.append(f"talk-{words[0]}")
        if number % 3 == 2:
            fields["derived_from"] = [world.canaries[-1].memory_id]
        if kind == "fact":
            fields["decay_rate"] = 0.1
        if number % 6 == 3 and kind == "fact":
            fields["confidence"] = 0.4
        memory_id = orc.remember(f"{words[0]} keeps the launch plan and tells nobody.", **fields)
        facts = ScopeFacts(scope, scope_id, sensitivity, agent_id)
        marked = {*words, *([scope_id] if scope_id else []), *([agent_id] if agent_id else [])}
        world.canaries.append(Canary(memory_id, words[0], frozenset(marked), facts))
    _join(orc, world)
    world.at = service.clock.now_ms()
    return world


def leaks(told: Iterable[str], forbidden: frozenset[str]) -> frozenset[str]:
    """What of the forbidden stands in texts."""
    text = "\n".join(told)
    others = {each for each in forbidden if not _MARK.fullmatch(each) and each in text}
    return forbidden.intersection(_MARK.findall(text)) | others


def words_in(told: Iterable[str]) -> set[str]:
    """Every canary's word that stands in texts."""
    return {word for text in told for word in _WORD.findall(text)}


def texts(value: Any) -> Iterator[str]:
    """All that a value says to whoever prints it, or hands it on as JSON."""
    if isinstance(value, dict):
        value = value.items()
    if isinstance(value, list | tuple | set | frozenset | ItemsView | Iterator):
        for each in value:
            yield from texts(each)
        return
    yield repr(value)
    if isinstance(value, BaseModel):
        yield value.model_dump_json()
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from texts(getattr(value, name))


def _word(prefix: str, number: int) -> str:
    letters = [prefix]
    for _ in range(4):
        number, letter = divmod(number, 26)
        letters.append(ascii_lowercase[letter])
    return "Kx" + "".join(letters)


def _join(orc: Orchestrator, world: World) -> None:
    """Edges of every type between neighbours, who are mostly of different places."""
    ids, edge_types = [each.memory_id for each in world.canaries], cycle(_EDGES)
    for step in (1, 7, 25):
        for one, other in zip(ids[step:], ids, strict=False):
            edge_type = next(edge_types)
            partial = edge_type == "Updates"
            edge = orc.relate(one, edge_type, other, reason="canary", partial=partial)
            world.edges.append((edge, one, other))
            if edge_type == "Contradicts" and len(world.edges) % 4 == 0:
                orc.contradictions.resolve(edge, winner=one, reason="looked at")
