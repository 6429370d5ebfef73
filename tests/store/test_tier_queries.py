"""What a task, a project and everybody hold, as it is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from working import working

from memgraph import MemoryService
from memgraph.model.enums import Scope
from memgraph.model.recall import RecallRequest
from memgraph.retrieval.request import narrowed
from memgraph.rules.scope import Viewer
from memgraph.store import tiers

TASK = Viewer(session_ids=frozenset({"t1"}))
AT = 1_790_000_000_000


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with working(tmp_path) as created:
        created.create("orc")
        yield created


def store(service: MemoryService, numbers: list[int], **fields: object) -> None:
    handle = service.orchestrator("orc", viewer=TASK)
    for number in numbers:
        handle.remember(f"Item {number}", event_time=AT + number, importance=number, **fields)


def texts(service: MemoryService, *values: object, ends: bool = False) -> list[str]:
    narrowing = narrowed(RecallRequest(query="items"), TASK, AT + 1_000)
    read = tiers.first_and_last if ends else tiers.most_important
    with service.opened("orc") as opened, opened.database.read() as connection:
        return [item.content for item in read(connection, narrowing, *values)]  # type: ignore[arg-type]


def test_of_a_long_task_the_ends_are_read_in_time_order(service: MemoryService) -> None:
    store(service, [4, 1, 5, 0, 2], scope="session", scope_id="t1")
    store(service, [9], scope="global")
    for limit, remaining in ((6, [0, 1, 2, 4, 5]), (5, [0, 1, 2, 4, 5]), (4, [0, 1, 4, 5])):
        result = texts(service, Scope.SESSION, "t1", limit, ends=True)
        assert result == [f"Item {number}" for number in remaining]


def test_of_everybodys_the_most_important_of_all_types_are_read(service: MemoryService) -> None:
    for number, type_ in enumerate(["Fact", "Decision", "Todo", "Preference", "Event"]):
        store(service, [number, 10 + number], scope="global", type=type_)
    store(service, [50], scope="session", scope_id="t1")
    result = texts(service, Scope.GLOBAL, None, 4)
    assert result == ["Item 14", "Item 13", "Item 12", "Item 11"]
