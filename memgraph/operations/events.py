"""Events: turns of a host's event bus, and callbacks for sessions."""

from __future__ import annotations

from memgraph.errors import InvalidInput
from memgraph.model.conversation import AgentTurn, SessionCallback, UserTurn
from memgraph.model.operation import F, local
from memgraph.operations.handle import WritingHandle


class Events(WritingHandle[F], group="events"):
    """Connects the memory to a host's event bus: ``orc.events``."""

    @local
    def publish(self, turn: UserTurn | AgentTurn) -> str:
        """Store a turn from the host's event bus; return its id.

        Like ``save_episode``, but the class of the turn decides whether a person or an agent spoke,
        not the name of the role.

        Raises:
            InvalidInput, NotFound, AccessDenied: see ``Orchestrator.remember``.
        """
        if not isinstance(turn, UserTurn | AgentTurn):
            raise InvalidInput("only a UserTurn or an AgentTurn can be published")
        return self._remember(turn, live=True).memory_id or ""

    @local
    def subscribe(self, callback: SessionCallback) -> None:
        """Call ``callback`` whenever this process has completed a session.

        It gets a ``SessionCompleted`` after the change is committed, in a thread of its own, or in
        the thread that wrote if the service has no background. What it raises is logged. Events are
        not stored: one that could not be delivered before the process ended is lost, and the
        session itself still waits for consolidation (``sessions.list(pending=True)``). Callbacks
        belong to the host: they get the events of every session, whatever this handle's viewer may
        see.
        """
        self._service.session_callbacks(self.name).add(callback)

    @local
    def unsubscribe(self, callback: SessionCallback) -> bool:
        """Remove a callback; return True if this process had it."""
        return self._service.session_callbacks(self.name).remove(callback)
