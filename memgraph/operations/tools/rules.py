"""Rules for what a language model writes: where it is stored, and what it may replace.

A ``turn`` is the turn at hand if it is a person's, the word that a model acts on; see
``persons_turn``. A memory that does not exist, or is hidden, is NotFound everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.conversation import TOLD_AS, SpeakerRole, voice_of
from memgraph.model.enums import CapturedBy, MemoryKind, MemoryType, Scope, Sensitivity, SourceType
from memgraph.model.values import Memory, one_of
from memgraph.rules.scope import Viewer
from memgraph.store import edges, evidence, graph, memories
from memgraph.store.graph import Direction
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import ACTIVE, View
from memgraph.text.sentences import split_sentences

_MOST_LINKED: Final = 100


class FactPlace(NamedTuple):
    """The scope, scope id and agent under which a fact is written."""

    scope: Scope
    scope_id: str | None
    agent_id: str | None


def place_of(viewer: Viewer, scope: Scope | str | None, scope_id: str | None) -> FactPlace:
    """Return the place where a model's facts are stored. The host chooses it, the model cannot.

    Without an id it is the only project or session that the viewer sees, of the chosen scope if
    there is one; by default the global scope if it sees this and none of those.

    Raises:
        InvalidInput: the viewer does not see exactly one, or the scope is unknown.
        AccessDenied: the viewer does not see the chosen place.
    """
    chosen = None if scope is None else one_of(Scope, scope, "scope")
    places: list[tuple[Scope, str | None]] = [
        (each, visible_id)
        for each in (Scope.PROJECT, Scope.SESSION)
        if each in viewer.scopes
        for visible_id in sorted(viewer.scope_ids(each))
    ]
    if scope_id is None and chosen is not Scope.GLOBAL:
        options = [place for place in places if chosen in (None, place[0])]
        if chosen is None and not options and Scope.GLOBAL in viewer.scopes:
            options = [(Scope.GLOBAL, None)]
        if len(options) != 1:
            raise InvalidInput(
                "no place or several are possible: the host has to name one project or session",
                field="scope",
            )
        return FactPlace(*options[0], viewer.agent_id)
    if Scope.GLOBAL in viewer.scopes:
        places.append((Scope.GLOBAL, None))
    if chosen is None or (chosen, scope_id) not in places:
        raise AccessDenied("this handle does not see this scope", field="scope")
    return FactPlace(chosen, scope_id, viewer.agent_id)


def require_no_wider(place: FactPlace, repeated: Iterable[Memory]) -> None:
    """Check that repeated text does not become visible to more readers.

    Raises:
        AccessDenied: some of it belongs to another project, session or agent.
    """
    for memory in repeated:
        elsewhere = memory.scope != Scope.GLOBAL and (memory.scope, memory.scope_id) != place[:2]
        if elsewhere or memory.agent_id not in (None, place.agent_id):
            raise AccessDenied(
                "the text repeats a memory with fewer readers: state only what is new",
                memory_id=memory.memory_id,
            )


def sensitivity_of(floor: Sensitivity, repeated: Iterable[Memory]) -> Sensitivity:
    """Return the highest of ``floor`` and the sensitivities of the repeated texts."""
    levels = [floor, *(item.sensitivity for item in repeated)]
    return max(levels, key=lambda level: level.level)


def persons_turn(snapshot: Snapshot, session_id: str | None, view: View) -> Memory | None:
    """Return the last turn of a conversation if a person said it."""
    if session_id is None:
        return None
    turns = memories.MemoryFilter(kinds=(MemoryKind.EPISODE,), session_id=session_id)
    for turn in memories.select(snapshot, replace(view, statuses=ACTIVE), turns, limit=1):
        if voice_of(turn.source_role, turn.attributes.get(TOLD_AS)) is SpeakerRole.PERSON:
            return turn
    return None


def require_correctable(
    snapshot: Snapshot, memory_id: str, view: View, turn: Memory | None = None
) -> Memory:
    """Return a fact, after checking that a model may replace it.

    On the word of who stated it a model may correct even what was confirmed.

    Raises:
        InvalidInput: the memory is not a fact.
        AccessDenied: the fact is an Identity, or a person confirmed it.
    """
    memory = _fact(snapshot, memory_id, view)
    if turn is not None and _stated(snapshot, memory_id, turn):
        return memory
    if memory.type is MemoryType.IDENTITY or edges.was_confirmed(snapshot, memory_id):
        raise AccessDenied(
            "a person confirmed this fact, so only a person can correct it; remember the new"
            " statement instead",
            memory_id=memory_id,
        )
    return memory


def _stated(snapshot: Snapshot, memory_id: str, turn: Memory) -> bool:
    """Return True if the speaker of a turn stated a fact in a turn that it was derived from.

    A name is the same speaker in every conversation; a role such as ``user`` only in its own.
    """
    is_name = voice_of(turn.source_role) is SpeakerRole.NAMED
    return any(
        speaker.role == turn.source_role and (is_name or speaker.session_id == turn.session_id)
        for speaker in evidence.speakers(snapshot, memory_id)
    )


def fact_meant(snapshot: Snapshot, memory_id: str, view: View) -> str:
    """Return the id of a fact, or of the only fact that was derived from a turn.

    Raises:
        InvalidInput: it is a turn from which no fact, or several, were derived.
    """
    if memories.get(snapshot, memory_id, view).kind is not MemoryKind.EPISODE:
        return memory_id
    facts = _linked(snapshot, memory_id, view, Direction.IN, MemoryKind.FACT)
    if len(facts) != 1:
        raise InvalidInput(
            "this line is a turn and not one fact: remember the statement with remember_fact",
            field="memory_id",
        )
    return facts[0].memory_id


def forgettable(
    snapshot: Snapshot, memory_id: str, view: View, turn: Memory | None = None
) -> list[str]:
    """Return what a model may retract for a memory: a turn and its facts, or a fact and its turns.

    A turn of several sentences, or with other facts, outlives the fact.

    Raises:
        InvalidInput: it is a reflection.
        AccessDenied: one of the facts may not be corrected by a model; see ``require_correctable``.
    """
    memory = memories.get(snapshot, memory_id, view)
    if memory.kind is MemoryKind.EPISODE:
        facts = _linked(snapshot, memory_id, view, Direction.IN, MemoryKind.FACT)
        for fact in facts:
            require_correctable(snapshot, fact.memory_id, view, turn)
        return [memory_id, *(fact.memory_id for fact in facts)]
    require_correctable(snapshot, memory_id, view, turn)
    turns = _linked(snapshot, memory_id, view, Direction.OUT, MemoryKind.EPISODE)
    alone = [
        turn.memory_id
        for turn in turns
        if len(split_sentences(turn.content)) == 1
        and len(_linked(snapshot, turn.memory_id, view, Direction.IN, MemoryKind.FACT)) <= 1
    ]
    return [memory_id, *alone]


def _linked(
    snapshot: Snapshot, memory_id: str, view: View, direction: Direction, kind: MemoryKind
) -> list[Memory]:
    """Return the active memories that a memory was derived from (OUT), or derived from it (IN)."""
    active = replace(view, statuses=ACTIVE)
    steps = graph.linked(
        snapshot, [memory_id], active, (), direction, _MOST_LINKED, derivations=True
    )
    others = memories.get_many(snapshot, [step.memory_id for step in steps])
    return [other for other in others if other.kind is kind]


def require_confirmable(
    snapshot: Snapshot, memory_id: str, view: View, turn: Memory | None = None
) -> None:
    """Check that a fact does not come only from machines, or that a person speaks.

    Raises:
        InvalidInput: the memory is not a fact.
        AccessDenied: a model stored it, or only agents' turns state it.
    """
    memory = _fact(snapshot, memory_id, view)
    [source] = graph.sources_of(snapshot, [memory])
    by_a_model = (source.captured_by, source.source_type) == (
        CapturedBy.EXTRACTOR,
        SourceType.MANUAL,
    )
    speakers = evidence.speakers(snapshot, memory_id)
    by_agents = all(voice_of(speaker.role) is not SpeakerRole.PERSON for speaker in speakers)
    if turn is None and (by_a_model or (speakers and by_agents)):
        raise AccessDenied(
            "only a model or an agent stated this fact; a person must confirm it",
            memory_id=memory_id,
        )


def _fact(snapshot: Snapshot, memory_id: str, view: View) -> Memory:
    memory = memories.get(snapshot, memory_id, view)
    if memory.kind is not MemoryKind.FACT:
        raise InvalidInput(
            "only a fact can be corrected, confirmed or forgotten", field="memory_id"
        )
    return memory
