"""The library and its clients: the same methods, values and errors."""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from serving_worlds import Served

from memgraph import Orchestrator
from memgraph.audit.findings import VerifyReport
from memgraph.client import AsyncClient, Client
from memgraph.client.operations import is_remote
from memgraph.clock import parse_time
from memgraph.errors import (
    AccessDenied,
    ConfirmationMissing,
    Conflict,
    IngestRejected,
    InvalidInput,
    NotFound,
)
from memgraph.model.context import BuiltBulletin, ContextBlock, ContextPackage
from memgraph.model.enums import MemoryType
from memgraph.model.operation import GroupAttribute, methods_of
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.receipts import Receipt
from memgraph.model.remote import IngestPage, TierPage
from memgraph.model.values import Memory, MemoryInput, Outcome
from memgraph.operations.handle import Handle


def test_what_is_remembered_is_got_and_recalled(way: Any) -> None:
    memory_id = way.remember("The bakery closes at nine.", tags=["hours"], importance=70)
    assert way.remember("The bakery closes at nine.", tags=["hours"]) == memory_id
    memory = way.get(memory_id)
    assert type(memory) is Memory
    assert (memory.content, memory.tags, memory.importance) == (
        "The bakery closes at nine.",
        ("hours",),
        70,
    )
    bundle = way.recall("when does the bakery close?")
    assert type(bundle) is Bundle
    assert bundle.ids == (memory_id,)
    assert bundle.items[0].memory == memory
    assert way.recall(RecallRequest(tags=("hours",))).ids == (memory_id,)
    receipt = way.receipts.get(bundle.receipt_id)
    assert type(receipt) is Receipt
    assert [each.memory_id for each in receipt.items] == [memory_id]
    bulletin = way.bulletin()
    assert type(bulletin) is BuiltBulletin
    assert memory_id in bulletin.bulletin.memory_ids
    assert way.memories.latest_reflection() is None
    assert way.memories.counts()["type"] == {"Fact": 1}


def test_an_awaited_client_has_the_same_methods(served: Served, name: str, secret: str) -> None:
    async def story() -> None:
        async with AsyncClient(served.url, key=secret) as client:
            orc = client.orchestrator(name)
            memory_id = await orc.remember("The bakery closes at nine.")
            assert (await orc.get(memory_id)).content == "The bakery closes at nine."
            bundle = await orc.recall("when does the bakery close?")
            assert bundle.ids == (memory_id,)
            assert [each.memory_id for each in await orc.memories.list()] == [memory_id]
            assert type(await orc.contexts.tier("global")) is TierPage
            [outcome] = await orc.remember_many([{"content": "The oven is old."}])
            assert outcome.outcome == "stored"
            with pytest.raises(NotFound):
                await orc.get("fact_none")

    asyncio.run(story())


def test_what_is_not_there_is_not_found(way: Any) -> None:
    for memory_id in ("fact_none", "", ".", "..", "a/b", "a b", "ä?#", "%2e%2e", "\ud800", "\x00"):
        with pytest.raises(NotFound):
            way.get(memory_id)


def test_an_error_names_the_parameter_of_the_library(way: Any) -> None:
    with pytest.raises(InvalidInput, match="no other kind") as caught:
        way.memories.list(kinds=["preference", "fact"])
    assert caught.value.details["field"] == "kinds"


def test_many_are_stored_in_order_with_an_outcome_each(way: Any) -> None:
    at = datetime(2026, 1, 31, 8, 30, tzinfo=UTC)
    given = [
        {"content": "The oven is old.", "event_time": at, "key": "oven"},
        {"content": ""},
        MemoryInput(content="The oven is slow.", derived_from=("#oven",), type=MemoryType.GOAL),
        {"content": "The oven is old.", "event_time": at},
        {"content": "The oven is hot.", "nonsense": object()},
        "no item",
    ]
    outcomes = way.remember_many(iter(given))
    assert [type(each) for each in outcomes] == [Outcome] * 6
    assert [each.outcome for each in outcomes] == [
        *("stored", "rejected", "stored", "duplicate", "rejected", "rejected")
    ]
    assert {each.code for each in outcomes if each.outcome == "rejected"} == {InvalidInput.code}
    assert outcomes[3].memory_id == outcomes[0].memory_id
    assert way.get(outcomes[0].memory_id).event_time == parse_time(at)
    assert way.get(outcomes[2].memory_id).type == "Goal"
    assert way.remember_many([]) == []


def test_contexts_blocks_and_tiers(way: Any) -> None:
    task = {"scope": "session", "scope_id": "t1"}
    step = way.remember("The login page is blue.", **task)
    package = way.contexts.build({"task_id": "t1", "project_id": "web"}, query="login page")
    assert type(package) is ContextPackage
    assert package.memory_ids == (step,)
    block = way.context("What colour has the login page?", format="list", budget_tokens=60)
    assert type(block) is ContextBlock
    assert "The login page is blue." not in block.text or step in block.memory_ids
    page = way.contexts.tier("task", "t1")
    assert type(page) is TierPage
    assert [each.memory_id for each in page.items] == [step]
    with pytest.raises(AccessDenied):
        way.contexts.tier("project", "other")
    with pytest.raises(AccessDenied):
        way.contexts.build("t2")
    with pytest.raises(InvalidInput):
        way.contexts.build(nonsense=1)


def test_promotion_asks_whoever_waits(way: Any) -> None:
    step = way.remember("Use tabs.", type="Preference", scope="session", scope_id="t1")
    wider = way.contexts.promote(step, "project", "web", reason="all of us")
    assert way.contexts.promote(step, "project", "web") == wider
    with pytest.raises(ConfirmationMissing):
        way.contexts.promote(wider, "global")
    asked: list[str] = []
    assert (
        way.contexts.promote(wider, "global", None, lambda each: bool(asked.append(each))) is None
    )
    assert asked == ["Promote to global preference: 'Use tabs.' (from project 'web')?"]
    with pytest.raises(ConfirmationMissing):
        way.contexts.promote(wider, "global", None, lambda _: 1)
    widest = way.contexts.promote(wider, "global", confirmation_callback=lambda _: True)
    assert way.get(widest).scope == "global"


def test_the_audit_and_the_copies(way: Any, tmp_path: Path) -> None:
    way.remember("The cellar is dry.")
    report = way.verify()
    assert type(report) is VerifyReport
    assert (report.ok, report.checked["memories"], report.findings) == (True, 1, [])
    done = way.exchange.export(tmp_path / "export.jsonl")
    assert sha256((tmp_path / "export.jsonl").read_bytes()).hexdigest() == done.sha256
    made = way.exchange.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").stat().st_size == made.bytes
    for write in (way.exchange.export, way.exchange.backup):
        with pytest.raises(Conflict):
            write(tmp_path / "copy.db")
    assert way.exchange.export(tmp_path / "copy.db", force=True).path == tmp_path / "copy.db"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["copy.db", "export.jsonl"]


def test_a_view_of_no_project_is_not_that_of_all(served: Served, name: str) -> None:
    granted = {"project_ids": ("web", "shop"), "session_ids": ("t1",)}
    web = {"scope": "project", "scope_id": "web"}
    with Client(served.url, key=served.key(**granted)) as client:
        every = client.orchestrator(name)
        inside = every.remember("The web team meets on Monday.", **web)
        step = every.remember("The login page is blue.", scope="session", scope_id="t1")
        for narrowing, seen in (
            ({}, {inside, step}),
            ({"project_ids": ()}, {step}),
            ({"session_ids": ()}, {inside}),
        ):
            found = client.orchestrator(name, **narrowing).memories.list()
            assert {each.memory_id for each in found} == seen, narrowing


def remote_methods(orc: Handle, path: str = "") -> dict[str, Any]:
    """Return the methods of a handle and of its groups; None for one that asks no server."""
    found: dict[str, Any] = {}
    for name, member in methods_of(type(orc)).items():
        if isinstance(member, GroupAttribute):
            found |= remote_methods(getattr(orc, name), f"{name}.")
        elif is_remote(member):
            found[path + name] = member
        elif callable(member):
            found[path + name] = None
    return found


def test_the_methods_are_the_librarys_with_its_names_for_arguments() -> None:
    orc = Client("http://127.0.0.1:1").orchestrator("orc-1")
    methods = remote_methods(orc)
    assert len(methods) > 40
    every = {name for name, each in methods.items() if each is None}
    assert not every, "they are of the library alone"
    for name in methods.keys() - {"ingestion.upload"}:
        library = dict(inspect.signature(attrgetter(name)(Orchestrator)).parameters)
        remote = dict(inspect.signature(methods[name]).parameters)
        for parameters in (library, remote):
            del parameters[next(iter(parameters))]
        assert list(remote) == [each for each in library if each in remote], name
        for each in remote.keys() - {"progress"}:
            assert remote[each].default == library[each].default, (name, each)
        left_out = library.keys() - remote.keys()
        assert left_out <= {"progress", "stop", "extractor", "budget", "accept_findings"}, name
        assert methods[name].__doc__, name


def test_a_file_is_sent_once_and_looked_after(served: Served, name: str, secret: str) -> None:
    text = b"# Notes\n\nWe decided to bake on Mondays.\n"
    digest = sha256(text).hexdigest()
    with Client(served.url, key=secret) as client:
        orc = client.orchestrator(name, project_ids=(), clearance="Restricted")
        sent = orc.ingestion.upload("notes.md", text)
        assert (sent.sha256, sent.known) == (digest, None)
        assert orc.ingestion.upload("other.md", text).known is not None
        assert orc.ingestion.get(digest).sha256 == digest
        assert type(orc.ingestion.list(limit=5)) is IngestPage
        for wrong in ("a/b.md", "", "\ud800.md"):
            with pytest.raises(NotFound):
                orc.ingestion.upload(wrong, text)
        for wrong in ("notes.exe", "..", ".hidden.md"):
            with pytest.raises((InvalidInput, IngestRejected)):
                orc.ingestion.upload(wrong, text)
        with pytest.raises(InvalidInput):
            orc.ingestion.upload("notes.md", "text")  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            orc.ingestion.get("0" * 64)
