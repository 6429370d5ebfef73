"""A file that was replaced or is damaged: noticed by who is at work on it, told once, and over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from memgraph import MemoryService
from memgraph.errors import DatabaseBusy, DatabaseCorrupt, DatabaseEmpty
from memgraph.operations.maintenance.maintenance import restore
from memgraph.service.open_orchestrator import Housekeeping, OpenOrchestrator
from memgraph.service.readiness import Readiness

NAME = "orc-1"


@pytest.fixture
def backed_up(service: MemoryService, tmp_path: Path) -> Path:
    service.create(NAME)
    handle = service.orchestrator(NAME)
    handle.remember("The lamp is green.")
    target = tmp_path / "one.db"
    handle.exchange.backup(target)
    handle.remember("The lamp is red.")
    return target


def put_back(service: MemoryService, file: Path) -> None:
    """As another process would: this service is not told."""
    restore(service.paths(NAME), file, clock=service.clock, actor="test", reason="test")


def contents(service: MemoryService) -> list[str]:
    return [each.content for each in service.orchestrator(NAME).memories.list()]


def lines(service: MemoryService) -> list[dict[str, Any]]:
    file = service.paths(NAME).log_file
    found = file.read_text().splitlines() if file.exists() else []
    return [each for each in map(json.loads, found) if each["event"] == "database.unusable"]


def meet_damage(service: MemoryService) -> None:
    with pytest.raises(DatabaseCorrupt), service.opened(NAME):
        raise DatabaseCorrupt("a page is damaged")


@pytest.mark.parametrize("damaged", [False, True])
def test_the_first_call_after_a_restore_by_another_process_works(
    service: MemoryService, backed_up: Path, damaged: bool
) -> None:
    if damaged:
        meet_damage(service)
    put_back(service, backed_up)
    assert contents(service) == ["The lamp is green."]
    put_back(service, backed_up)
    service.orchestrator(NAME).remember("The door is blue.")
    assert set(contents(service)) == {"The lamp is green.", "The door is blue."}
    assert service.health(NAME)["status"] == "ready"


def test_who_is_at_work_on_the_old_file_ends_with_it_and_others_get_the_new_one(
    service: MemoryService, backed_up: Path
) -> None:
    with service.opened(NAME) as old:
        put_back(service, backed_up)
        with service.opened(NAME) as new:
            assert new is not old
        with old.database.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM memories").scalar() == 2


def test_damage_is_logged_once_and_told_at_once_until_a_restore(
    service: MemoryService, backed_up: Path
) -> None:
    readiness = Readiness(service)

    def status() -> str:
        (standing,) = readiness.look().orchestrators
        return standing.status

    contents(service)
    assert status() == "ready"
    meet_damage(service)
    meet_damage(service)
    # Within the rest after a look, and though no file has changed.
    assert status() == "disabled"
    assert [(each["level"], each["code"]) for each in lines(service)] == [
        ("error", "storage.corrupt")
    ]
    put_back(service, backed_up)
    contents(service)
    assert status() == "ready"


@pytest.mark.parametrize("while_opening", [False, True])
def test_damage_that_background_work_meets_is_told_at_once(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch, while_opening: bool
) -> None:
    service.create(NAME)
    readiness = Readiness(service)
    assert [each.status for each in readiness.look().orchestrators] == ["ready"]
    if while_opening:
        service.forget(NAME)
        open_one = service.pool._open_one

        def opened(name: str) -> OpenOrchestrator:
            made = open_one(name)
            made.background.once(lambda: False)
            return made

        monkeypatch.setattr(service.pool, "_open_one", opened)
    damage = DatabaseCorrupt("a page is damaged")
    monkeypatch.setattr(Housekeeping, "run", Mock(side_effect=damage))
    with service.opened(NAME) as current:
        if not while_opening:
            current.background.once(lambda: False)
    # Within the rest after a look, and though no file has changed.
    assert [each.status for each in readiness.look().orchestrators] == ["disabled"]
    assert [each["code"] for each in lines(service)] == ["storage.corrupt"]


def test_a_file_that_cannot_be_opened_is_logged_once(service: MemoryService) -> None:
    service.create(NAME)
    service.paths(NAME).database.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(DatabaseEmpty):
            contents(service)
    assert [each["code"] for each in lines(service)] == ["storage.empty"]
    assert isinstance(service.pool.failure(NAME), DatabaseEmpty)


def test_what_passes_by_itself_is_no_trouble(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.create(NAME)
    monkeypatch.setattr(service.pool, "_open_one", Mock(side_effect=DatabaseBusy("try again")))
    with pytest.raises(DatabaseBusy):
        contents(service)
    assert service.pool.failure(NAME) is None
    assert lines(service) == []
