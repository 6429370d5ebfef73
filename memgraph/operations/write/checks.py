"""Register the sessions of stored turns, and check source paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memgraph.errors import AccessDenied
from memgraph.model.conversation import TOLD_AS, AgentTurn, SessionCompleted, UserTurn, voice_of
from memgraph.model.values import EpisodeInput, MemoryInput
from memgraph.paths import OrchestratorPaths, canonical_source
from memgraph.rules.conversations import follow, taken_over
from memgraph.store import sessions
from memgraph.store.sessions import RegisteredSession
from memgraph.store.snapshot import JournalledTransaction
from memgraph.store.visibility import View


def attributes_of(memory: MemoryInput) -> dict[str, Any]:
    """Return the attributes to store with a memory.

    The kind of a ``UserTurn`` or ``AgentTurn`` is stored if its role alone would imply another
    kind.
    """
    if not isinstance(memory, EpisodeInput):
        return memory.attributes
    kept_fields = {name: value for name, value in memory.attributes.items() if name != TOLD_AS}
    if isinstance(memory, UserTurn | AgentTurn):
        role = memory.source_role
        if voice_of(role) is not voice_of(role, memory.told_as):
            kept_fields[TOLD_AS] = memory.told_as
    return kept_fields


def note(
    transaction: JournalledTransaction,
    turns: Sequence[str],
    following: Mapping[str, int],
    sessions_by_id: Mapping[str, RegisteredSession],
    *,
    live: bool,
    view: View | None = None,
) -> None:
    """Register the sessions of stored turns, and announce the completed ones.

    Args:
        turns: the session of each stored turn, in order.
        following: the next position in each session of ``turns``.
        sessions_by_id: the sessions that were registered before.
        live: True for turns said just now: the first turn of a new session completes the open
            ones. False for whole sessions from a file or another store.
        view: what the writer sees; a confined writer completes only sessions with a turn it sees.
    """
    if not turns:
        return
    if live:
        ending = view if view is not None and view.viewer.confined else None
        has_new_session = any(session_id not in sessions_by_id for session_id in following)
        open_now = sessions.open_ids(transaction, ending) if has_new_session else ()
        transition = follow(turns, sessions_by_id, open_now)
        sessions.complete(transaction, transition.done - following.keys())
        ends = dict.fromkeys(following, transaction.at) | dict.fromkeys(transition.open)
        completed = [session_id for ended in transition.completes for session_id in ended]
    else:
        states = {name: session.state for name, session in sessions_by_id.items()}
        completed = taken_over(turns, states)
        ends = {name: session.completed_at for name, session in sessions_by_id.items()}
        ends |= dict.fromkeys(completed, transaction.at)
    sessions.note_turns(transaction, following, ends)
    transaction.session_events += [SessionCompleted(session_id=name) for name in completed]


def with_canonical_source(
    memory: MemoryInput, paths: OrchestratorPaths, allowed_roots: Sequence[str]
) -> MemoryInput:
    """Return the memory with its source's path made absolute and free of links.

    Raises:
        AccessDenied: the path lies outside the drop zone and ``memory.ingest.allowed_roots``, or in
            another orchestrator's folder; the caller journals it.
    """
    path = memory.source.source_path
    if path is None:
        return memory
    try:
        real = canonical_source(path, paths, allowed_roots)
    except AccessDenied as error:
        error.asked = path
        raise
    source = memory.source.model_copy(update={"source_path": str(real)})
    return memory.model_copy(update={"source": source})
