"""Bulk loads: what they store is what single writes store, and a kill loses nothing told of."""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import Process, wait_until
from working import NAME, SEES_ALL, working

from memgraph import MemoryService
from memgraph.errors import ProviderRejected
from memgraph.operations.orchestrator import Orchestrator
from memgraph.operations.write import bulk_load as loading
from memgraph.providers.local import LocalEmbedding
from memgraph.service.open_orchestrator import OpenOrchestrator

WORDS = ("harbour", "Lisbon", "lantern", "Ada", "quiet", "tram", "Kenji", "東京都", "paper", "nine")
CHUNK = 1_200


def load(root: Path, told: Path) -> None:
    """Load chunk after chunk, and note the ids of each that was acknowledged."""
    with (
        MemoryService(root, environ={}, background=False) as service,
        told.open("ab", buffering=0) as file,
    ):
        orc = service.orchestrator("orc-1")
        for first in itertools.count(0, CHUNK):
            outcomes = orc.remember_many(
                {"content": f"Turn {n} of Ada.", "kind": "episode", "session_id": f"s{n % 7}"}
                for n in range(first, first + CHUNK)
            )
            file.write(" ".join(str(each.memory_id) for each in outcomes).encode() + b"\n")


def items(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    chance = random.Random(seed)
    for number in range(count):
        turn = chance.random() < 0.5
        yield {
            "content": " ".join(chance.choices(WORDS, k=chance.randint(1, 4))),
            "kind": "episode" if turn else "fact",
            "session_id": f"s{number % 3}" if turn else None,
            "source_role": chance.choice(["ana", "ben"]) if turn else None,
            "tags": ["one", "two"][: chance.randint(0, 2)],
            "scope": "project" if number % 5 == 0 else "global",
            "scope_id": "p" if number % 5 == 0 else None,
            "source": {"conversation_id": f"c{number % 4}"},
        } | ({"importance": 500} if number % 41 == 0 else {})


def stored(opened: OpenOrchestrator) -> dict[str, list[Any]]:
    """Everything but the ids and hashes that are made anew for each database."""
    statements = {
        "memories": "SELECT pk, kind, type, content, summary, scope, scope_id, session_id,"
        " sequence, source_role, tags, content_hash, token_cost, source_id, search_terms"
        " FROM memories ORDER BY pk",
        "statuses": "SELECT status, since, until, actor FROM memory_status ORDER BY status_id",
        "embeddings": "SELECT * FROM memory_embeddings ORDER BY memory_pk",
        "entities": "SELECT pk, canonical_name, name_key, type, mention_count FROM entities",
        "links": "SELECT * FROM memory_entities ORDER BY entity_pk, memory_pk",
        "sessions": "SELECT session_id, next_sequence FROM sessions ORDER BY session_id",
        "sources": "SELECT * FROM memory_sources ORDER BY source_id",
        "journal": "SELECT seq, actor, action FROM audit_log ORDER BY seq",
        "metadata": "SELECT * FROM memory_metadata WHERE key LIKE 'embedding%' ORDER BY key",
    }
    with opened.database.read() as connection:
        found: dict[str, list[Any]] = {
            name: [tuple(row) for row in connection.exec_driver_sql(statement)]
            for name, statement in statements.items()
        }
    return found


def test_a_bulk_load_stores_what_single_writes_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "TRANSACTION_SIZE", 110)
    found = []
    for name in ("bulk", "single"):
        with working(tmp_path / name, embedding=LocalEmbedding()) as service:
            service.create(NAME)
            orc = service.orchestrator(NAME, viewer=SEES_ALL)
            if name == "bulk":
                outcomes = orc.remember_many(items(240))
                # What is left of the last transaction is too little to load the model for.
                assert orc.maintenance.embeddings_status().states["pending"] <= 100
            else:
                outcomes = [orc.remember_many([each])[0] for each in items(240)]
            orc.settle()
            assert orc.verify().findings == []
            with service.opened(NAME) as opened:
                found.append(stored(opened))
                with opened.database.write() as connection:
                    assert connection.engine.phrases.check(connection)
            found[-1]["outcomes"] = [(each.outcome, each.code) for each in outcomes]
    bulk, single = found
    for name, rows in bulk.items():
        assert rows == single[name], name
    assert {each for each, _ in bulk["outcomes"]} == {"stored", "duplicate", "rejected"}


class Broken(LocalEmbedding):
    def embed(self, texts: Any) -> Any:
        raise ProviderRejected("damaged")


class Mute(LocalEmbedding):
    def embed(self, texts: Any) -> Any:
        return np.zeros((len(texts), self.dimensions), np.float32)


@pytest.mark.parametrize("embedding", [Broken(), Mute()])
def test_what_cannot_be_embedded_waits_in_the_outbox(
    tmp_path: Path, embedding: LocalEmbedding
) -> None:
    with working(tmp_path, embedding=embedding) as service:
        orc = service.orchestrator(NAME, create=True)
        orc.remember_many({"content": f"text {n}"} for n in range(loading.BULK))
        states = orc.maintenance.embeddings_status().states
        assert states == {"pending": loading.BULK, "ready": 0, "failed": 0}


def test_turns_of_a_batch_are_saved_without_the_model(tmp_path: Path) -> None:
    with working(tmp_path, embedding=LocalEmbedding()) as service:
        orc = service.orchestrator(NAME, create=True)
        turn = {"session_id": "s", "source_role": "user"}
        outcomes = orc.save_episodes({"content": f"text {n}", **turn} for n in range(200))
        assert {each.outcome for each in outcomes} == {"stored"}
        assert orc.maintenance.embeddings_status().states["pending"] == 200


def test_a_source_of_items_that_fails_leaves_what_came_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "TRANSACTION_SIZE", 10)

    def failing() -> Iterator[dict[str, Any]]:
        for number in range(25):
            yield {"content": f"text {number}"}
        raise OSError("the file ends")

    with working(tmp_path) as service:
        orc = service.orchestrator(NAME, create=True)
        with pytest.raises(OSError, match="the file ends"):
            orc.remember_many(failing())
        assert len(orc.memories.list(limit=100)) == 20
        assert orc.verify().ok


def test_a_killed_bulk_load_lost_nothing_that_was_told(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        service.create(NAME)
    chance = random.Random(7)
    for _ in range(2):
        told = _killed(root, tmp_path / "told", chance.uniform(0.0, 0.4))
        with MemoryService(root, environ={}, background=False) as service:
            orc = service.orchestrator(NAME)
            assert orc.verify().findings == []
            _check(orc, service, told)


def _killed(root: Path, told: Path, after_s: float) -> list[str]:
    """Ids that loading processes told of until one was killed, a moment after its first chunk."""
    told.touch()
    before = told.read_bytes().count(b"\n")
    process = Process(load, root, told)
    assert wait_until(lambda: told.read_bytes().count(b"\n") > before)
    time.sleep(after_s)
    assert process.kill() == -signal.SIGKILL
    lines = told.read_text().splitlines(keepends=True)
    return [one for line in lines if line.endswith("\n") for one in line.split()]


def _check(orc: Orchestrator, service: MemoryService, told: list[str]) -> None:
    with service.opened(NAME) as opened, opened.database.read() as connection:
        ids = set(connection.exec_driver_sql("SELECT memory_id FROM memories").scalars())
        places = list(
            connection.exec_driver_sql(
                "SELECT session_id, sequence FROM memories ORDER BY session_id, sequence"
            )
        )
    assert set(told) <= ids
    # Transactions are whole, and a turn's place in its session is its own.
    assert len(ids) % 100 == 0
    assert len(set(map(tuple, places))) == len(places)
    states = orc.maintenance.embeddings_status().states
    assert sum(states.values()) == len(ids)
    assert states["ready"] >= len(told)
