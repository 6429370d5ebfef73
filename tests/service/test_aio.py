"""The asynchronous face of the library: the same methods, run in threads and awaited."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import pytest
from working import members_of

from memgraph import AsyncOrchestrator, MemoryService, Orchestrator, Viewer
from memgraph.errors import Conflict, NotFound
from memgraph.model.operation import operations_of

NOT_AWAITED = {
    # Stores, handles and a generator.
    *("stores.task", "stores.project", "stores.global_tier"),
    *("ingestion.on_behalf", "exchange.export_lines"),
    # What a pipeline or a tool calls for each file or text.
    *(f"ingestion.{name}" for name in ("store", "under_way", "give_up", "reject", "stored")),
    *(f"ingestion.{name}" for name in ("log_event", "propose")),
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with MemoryService(tmp_path / "root", background=False) as made:
        yield made


@pytest.fixture
def orc(service: MemoryService) -> Orchestrator:
    return service.orchestrator("orc-1", create=True, viewer=Viewer(project_ids=["web"]))


def test_every_operation_is_awaited_with_its_signature(orc: Orchestrator) -> None:
    public = {
        path: each for path, each in members_of(Orchestrator).items() if inspect.isfunction(each)
    }
    assert operations_of(Orchestrator).keys() <= public.keys() - NOT_AWAITED
    assert public.keys() >= NOT_AWAITED
    aio = orc.aio
    for path, method in public.items():
        awaited = attrgetter(path)(aio)
        assert inspect.iscoroutinefunction(awaited) == (path not in NOT_AWAITED), path
        assert (
            inspect.signature(awaited).parameters
            == inspect.signature(attrgetter(path)(orc)).parameters
        )
        assert awaited.__doc__ == method.__doc__


def test_the_same_values_and_errors_come_from_a_thread(orc: Orchestrator) -> None:
    async def work(aio: AsyncOrchestrator) -> None:
        assert (aio.name, aio.viewer, aio.actor) == (orc.name, orc.viewer, orc.actor)
        first = await aio.remember("The oven is hot.", tags=["kitchen"])
        assert await aio.get(first) == orc.get(first)
        outcomes = await aio.remember_many([{"content": "The pan is big."}, {"content": ""}])
        assert [each.outcome for each in outcomes] == ["stored", "rejected"]
        second = await aio.correct(first, "The oven is cold.", reason="it was turned off")
        assert (await aio.recall("Is the oven cold?")).ids == (second,)
        turns = (
            aio.save_episode(f"Turn {n}.", session_id=f"s-{n % 3}", source_role="user")
            for n in range(12)
        )
        assert len(set(await asyncio.gather(*turns))) == 12
        assert {each.turns for each in await aio.sessions.list()} == {4}
        with pytest.raises(NotFound):
            await aio.get("fact_none")
        with pytest.raises(Conflict):
            await aio.correct(second, "The oven is cold.", reason="again")
        with pytest.raises(TypeError):
            await aio.retract(second)  # type: ignore[call-arg]
        assert (await aio.verify()).ok

    asyncio.run(work(orc.aio))


def test_a_cancelled_call_frees_the_loop_and_ends_in_its_thread(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()
    retract = Orchestrator.retract

    def slow(handle: Orchestrator, memory_id: str, *, reason: str) -> None:
        begun.set()
        assert go.wait(10)
        retract(handle, memory_id, reason=reason)
        ended.set()

    stored = orc.remember("The bell rings at noon.")
    monkeypatch.setattr(Orchestrator, "retract", slow)

    async def work(aio: AsyncOrchestrator) -> None:
        call = asyncio.create_task(aio.retract(stored, reason="it is broken"))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        # The thread still works; others are served meanwhile.
        assert (await aio.get(stored)).status == "active"
        go.set()
        assert await asyncio.to_thread(ended.wait, 10)
        assert (await aio.get(stored)).status == "retracted"

    asyncio.run(work(orc.aio))
