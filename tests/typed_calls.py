"""Calls that mypy alone reads (`make types`): it reports an ignored error that is none.

Every ``type: ignore`` below is a typo that has to be an error, in the library, its clients and its
asynchronous forms.
"""

from __future__ import annotations

from memgraph import AsyncOrchestrator, Orchestrator
from memgraph.client import AsyncRemoteOrchestrator, RemoteOrchestrator


def library(orc: Orchestrator) -> None:
    orc.remember("Tea.", tags=["drinks"], importance=60, event_time="2026-01-01")
    orc.remember("Tea.", importence=60)  # type: ignore[call-arg]
    orc.recall("tea", top_n="5")  # type: ignore[arg-type]


def client(orc: RemoteOrchestrator) -> None:
    orc.correct("fact_1", "Green tea.", reason="asked", tags=("drinks",))
    orc.save_episode("Tea.", session="monday", session_id="monday", source_role="user")  # type: ignore[call-arg]


async def awaited(orc: AsyncRemoteOrchestrator, aio: AsyncOrchestrator) -> None:
    await orc.memories.list(limit=5)
    await orc.memories.list(limits=5)  # type: ignore[call-arg]
    await aio.get("fact_1", as_of=0)
    (await aio.memories.store("Tea.")).memory_ids  # type: ignore[attr-defined]  # noqa: B018
