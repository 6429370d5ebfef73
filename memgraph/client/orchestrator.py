"""The handle of one orchestrator on a server: the library's methods, blocking and async."""

from __future__ import annotations

from memgraph.client.asking import AskingWords, AuditingWords, FollowingWords, ReceiptWords
from memgraph.client.operating import OperatingWords
from memgraph.client.remembering import (
    ComparingWords,
    DecidingWords,
    FeedingWords,
    RememberingWords,
)
from memgraph.client.sourcing import ErasingWords, SourcingWords
from memgraph.client.talking import PreparingWords, TalkingWords
from memgraph.client.words import AsyncSender, Awaiting, Blocking, Sender
from memgraph.model.access import Narrowing


class OrchestratorWords(
    RememberingWords,
    AskingWords,
    TalkingWords,
    PreparingWords,
    FeedingWords,
    OperatingWords,
    AuditingWords,
    ErasingWords,
    FollowingWords,
    ReceiptWords,
    DecidingWords,
    ComparingWords,
    SourcingWords,
):
    """All remote methods of an orchestrator."""

    def __repr__(self) -> str:
        return f"<memgraph {type(self).__name__} {self.name}>"


class RemoteOrchestrator(OrchestratorWords, Blocking):
    """The memory of one orchestrator, on a server. Made by ``Client.orchestrator``.

    Attributes:
        name: of the orchestrator.
        narrowing: the narrowing of this handle's view, within what the key grants.
    """

    def __init__(self, sender: Sender, name: str, narrowing: Narrowing) -> None:
        super().__init__(sender)
        self._set_place(name, narrowing)


class AsyncRemoteOrchestrator(OrchestratorWords, Awaiting):
    """The same, asynchronous. Made by ``AsyncClient.orchestrator``."""

    def __init__(self, sender: AsyncSender, name: str, narrowing: Narrowing) -> None:
        super().__init__(sender)
        self._set_place(name, narrowing)
