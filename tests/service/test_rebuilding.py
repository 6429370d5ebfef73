"""Indexes are made anew from what they are derived from; a changed model is mended online."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from processes import Process, wait_until
from working import NAME, filled, tampering, working

from memgraph import MemoryService
from memgraph.errors import InvalidInput, MemoryDisabled, ProviderUnavailable
from memgraph.model.enums import IndexPart
from memgraph.operations.maintenance import maintenance, rebuild as rebuilding
from memgraph.operations.write import embedding
from memgraph.providers.fake import FakeEmbedding
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import embeddings
from memgraph.store.entities import EntityName
from memgraph.store.sqlite import engine


@pytest.fixture
def alive(tmp_path: Path) -> Iterator[tuple[MemoryService, OpenOrchestrator, dict[str, str]]]:
    with filled(tmp_path) as found:
        yield found


def rows(opened: OpenOrchestrator, statement: str) -> list[tuple[Any, ...]]:
    with engine.inspected(opened.paths.database) as connection:
        return list(connection.driver.execute(statement))


ENTITY_LINKS = (
    "SELECT e.name_key, m.memory_id, e.mention_count FROM entities e"
    " JOIN memory_entities l ON l.entity_pk = e.pk JOIN memories m ON m.pk = l.memory_pk"
    " ORDER BY 1, 2"
)


@pytest.mark.parametrize(
    ("part", "damage"),
    [
        ("fts", "INSERT INTO memory_fts (memory_fts) VALUES ('delete-all')"),
        ("fts", "UPDATE memories SET search_terms = 'x' WHERE pk < 3"),
        ("vectors", "UPDATE memory_embeddings SET visibility = 1 WHERE memory_pk = 1"),
        ("vectors", "UPDATE memory_embeddings SET vector = x'00000000' WHERE memory_pk = 2"),
        ("vectors", "DELETE FROM memory_embeddings WHERE memory_pk = 2"),
        ("entities", "UPDATE entities SET mention_count = 40"),
    ],
)
def test_a_rebuild_mends_what_the_audit_finds(
    alive: tuple[MemoryService, OpenOrchestrator, dict[str, str]], part: str, damage: str
) -> None:
    service, opened, _ = alive
    with tampering(opened.paths.database) as connection:
        connection.execute(damage)
    before = maintenance.verify(opened)
    assert not before.ok
    assert before.rebuildable
    told = rebuilding.rebuild(opened, [part], actor="operator")
    assert part in told
    service.orchestrator(NAME).settle()
    assert maintenance.verify(opened).findings == []
    ((actor, details),) = rows(
        opened, "SELECT actor, details FROM audit_log WHERE action = 'rebuild'"
    )
    assert (actor, json.loads(details)["part"]) == ("operator", part)
    states = rebuilding.embeddings_status(opened).states
    assert states == {"pending": 0, "ready": 7, "failed": 0}


def test_rebuilding_everything_leaves_a_sound_database_as_it_was(
    alive: tuple[MemoryService, OpenOrchestrator, dict[str, str]],
) -> None:
    _, opened, _ = alive
    before = rows(opened, ENTITY_LINKS)
    stages: list[tuple[str, int, int]] = []
    told = rebuilding.rebuild(opened, actor="a", progress=lambda *stage: stages.append(stage))
    entities = len({row[0] for row in before})
    assert told.pop("indexes") > 20
    assert told == {"fts": 7, "vectors": 7, "requeued": 0, "entities": entities}
    assert rows(opened, ENTITY_LINKS) == before
    assert maintenance.verify(opened).ok
    assert {stage for stage, _, _ in stages} == {"indexes", "fts", "vectors", "entities"}
    for parts in ([], ["everything"], ["fts", "nodes"]):
        with pytest.raises(InvalidInput):
            rebuilding.rebuild(opened, parts, actor="a")


def test_entities_follow_the_rules_that_find_them_now(
    alive: tuple[MemoryService, OpenOrchestrator, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, opened, ids = alive
    monkeypatch.setattr(rebuilding, "BATCH", 2)
    with opened.database.write() as connection:
        connection.exec_driver_sql("UPDATE entities SET protected = 1 WHERE name_key = 'paris'")

    def office(text: str) -> list[EntityName]:
        return [EntityName("office", "office", "other")] if "office" in text else []  # type: ignore[arg-type]  # any name does

    monkeypatch.setattr(opened, "find_names", office)
    rebuilding.rebuild(opened, [IndexPart.ENTITIES], actor="a")
    # What somebody marked is still known, and found; what older rules found is not.
    assert rows(opened, ENTITY_LINKS) == [
        *sorted(("office", ids[name], 2) for name in ("berlin", "paris")),
        ("paris", ids["paris"], 1),
    ]
    left = rows(opened, "SELECT name_key, mention_count FROM entities ORDER BY 1")
    assert left == [("office", 2), ("paris", 1)]
    assert maintenance.verify(opened).ok


def test_a_changed_model_is_mended(tmp_path: Path) -> None:
    with filled(tmp_path):
        pass
    provider = FakeEmbedding(40)
    with working(tmp_path, embedding=provider) as service, service.opened(NAME) as opened:
        assert opened.other_model is not None
        status = rebuilding.embeddings_status(opened)
        assert status.mismatch is not None
        assert status.states["ready"] == 7
        service.orchestrator(NAME).remember("Stored in between")
        seen: list[tuple[int, int]] = []
        drained = rebuilding.embeddings_rebuild(
            opened, actor="a", progress=lambda _part, done, total: seen.append((done, total))
        )
        assert (drained.ready, drained.error_code) == (8, None)
        assert seen[0] == (0, 8)
        assert seen[-1] == (8, 8)
        assert opened.other_model is None
        told = rebuilding.embeddings_status(opened)
        assert told.model_dump() == {
            "states": {"pending": 0, "ready": 8, "failed": 0},
            "model": provider.model,
            "dimensions": provider.dimensions,
            "provider_model": provider.model,
            "provider_dimensions": provider.dimensions,
            "mismatch": None,
            "oldest_pending": None,
            "errors": {},
        }
        assert maintenance.verify(opened).ok
        entries = rows(
            opened, "SELECT details FROM audit_log WHERE action = 'rebuild' ORDER BY seq"
        )
        assert [sorted(json.loads(details)) for (details,) in entries] == [
            ["from", "part", "to"],
            ["failed", "part", "ready"],
        ]
        # Nothing is left to do, and nothing is done or journalled.
        assert rebuilding.embeddings_rebuild(opened, actor="a").ready == 0
        assert len(rows(opened, "SELECT 1 FROM audit_log WHERE action = 'rebuild'")) == 2


def test_a_failing_provider_leaves_the_rest_in_the_outbox(tmp_path: Path) -> None:
    with filled(tmp_path):
        pass
    provider = FakeEmbedding(40, fail_with=ProviderUnavailable("down"))
    with working(tmp_path, embedding=provider) as service, service.opened(NAME) as opened:
        drained = rebuilding.embeddings_rebuild(opened, actor="a")
        assert drained.error_code == "provider.unavailable"
        status = rebuilding.embeddings_status(opened)
        assert status.states == {"pending": 7, "ready": 0, "failed": 0}
        assert status.errors == {"provider.unavailable": 7}
        assert status.oldest_pending is not None
        provider.fail_with = None
        retry = service.orchestrator(NAME).maintenance.retry_embeddings
        assert (retry(), retry()) == (7, 0)
        assert rebuilding.embeddings_rebuild(opened, actor="a").ready == 7
        assert maintenance.verify(opened).ok


def test_a_worker_of_the_old_model_cannot_write_into_the_new_index(tmp_path: Path) -> None:
    """Its batch is embedded when the rebuild begins, and written back afterwards."""

    class Slow(FakeEmbedding):
        def embed(self, texts: Any) -> Any:
            found = super().embed(texts)
            with (
                working(tmp_path, embedding=FakeEmbedding(40)) as service,
                service.opened(NAME) as opened,
            ):
                rebuilding.embeddings_rebuild(opened, actor="a")
            return found

    with filled(tmp_path) as (service, _, _):
        service.orchestrator(NAME).remember("Not embedded yet")
    with working(tmp_path, embedding=Slow(16)) as service:
        drained = service.orchestrator(NAME).settle().embedded
        assert (drained.ready, drained.error_code) == (0, "embedding.model_changed")
        with service.opened(NAME) as opened:
            assert maintenance.verify(opened).ok
            assert rebuilding.embeddings_status(opened).model == FakeEmbedding(40).model


def test_without_a_provider_there_is_nothing_to_rebuild_with(tmp_path: Path) -> None:
    config = {"memory.embedding.provider": "none"}
    with (
        working(tmp_path, embedding=None, config=config) as service,
        service.orchestrator(NAME, create=True)._service.opened(NAME) as opened,
    ):
        with pytest.raises(MemoryDisabled):
            rebuilding.embeddings_rebuild(opened, actor="a")
        assert rebuilding.embeddings_status(opened).provider_model is None


def rebuild_slowly(root: Path, stages: Path) -> None:
    """Rebuild in small batches, and note each before it is begun."""

    def begin(stage: str) -> None:
        with stages.open("a") as file:
            file.write(f"{stage}\n")
        time.sleep(0.05)

    class Slow(FakeEmbedding):
        def embed(self, texts: Sequence[str]) -> Any:
            begin("embedding")
            return super().embed(texts)

    forget = rebuilding._forget_some_foreign

    def forget_slowly(*given: Any) -> Any:
        begin("forgetting")
        return forget(*given)

    with (
        patch.object(rebuilding, "BATCH", 5),
        patch.object(embedding, "BATCH", 5),
        patch.object(rebuilding, "_forget_some_foreign", forget_slowly),
        working(root, embedding=Slow(40)) as service,
        service.opened(NAME) as opened,
    ):
        rebuilding.embeddings_rebuild(opened, actor="a")


def test_a_killed_rebuild_is_finished_by_the_next_one(tmp_path: Path) -> None:
    with working(tmp_path) as service:
        orchestrator = service.orchestrator(NAME, create=True)
        orchestrator.remember_many([{"content": f"memory number {n}"} for n in range(40)])
        orchestrator.settle()
    # The first dies while old vectors are forgotten, the second while new ones are made.
    for stage, lines in (("forgetting", 3), ("embedding", 3)):
        stages = tmp_path / f"killed-{stage}"
        process = Process(rebuild_slowly, tmp_path, stages)
        assert wait_until(
            lambda stages=stages, line=f"{stage}\n", lines=lines: (
                stages.exists() and stages.read_text().count(line) >= lines
            )
        )
        assert process.kill() == -signal.SIGKILL
    with working(tmp_path, embedding=FakeEmbedding(40)) as service, service.opened(NAME) as opened:
        before = rebuilding.embeddings_status(opened)
        assert 0 < before.states["ready"] < 40
        # Whoever opens it meanwhile is told by text alone, or by what is embedded already.
        drained = rebuilding.embeddings_rebuild(opened, actor="a")
        assert drained.ready == 40 - before.states["ready"]
        assert maintenance.verify(opened).ok
        with opened.database.read() as connection:
            assert embeddings.state_counts(connection)["ready"] == 40
