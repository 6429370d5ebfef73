"""Turns while the memory is killed, held, switched off, damaged, hung or gone."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import numpy as np
import pysqlite3.dbapi2 as driver

from memgraph import MemoryHooks, MemoryKind, MemoryService
from memgraph.model.turns import TurnContext
from memgraph.model.values import Memory
from memgraph.service.memory_service import FEWEST_TURNS

ORC = "orc-1"
CONVERSATION = "channel-1"
SETTINGS = {"memory.storage.synchronous": "NORMAL", "memory.embedding.provider": "none"}
PATIENCE_S = 60.0
DEADLINE_MS = 250
LONG_MS = 30_000
# What a call may take beyond its deadline on a machine that does much else.
SCHEDULING_S = 3.0


@contextmanager
def serving(root: Path, **config: object) -> Iterator[MemoryService]:
    with MemoryService(root, config=SETTINGS | config, environ={}) as service:
        service.orchestrator(ORC, create=True)
        yield service


def episodes(service: MemoryService) -> list[Memory]:
    """All turns, the first one first."""
    orc, found = service.orchestrator(ORC), list[Memory]()
    page = orc.memories.list(kinds=[MemoryKind.EPISODE], limit=1_000)
    while page:
        found += page
        page = orc.memories.list(kinds=[MemoryKind.EPISODE], limit=1_000, before=page[-1].memory_id)
    return sorted(found, key=lambda each: each.sequence or 0)


def in_time(hooks: MemoryHooks, text: str = "Anything?", turn_id: str | None = None) -> TurnContext:
    """A message, answered within the deadline and what a loaded machine adds."""
    begun = time.monotonic()
    turn = hooks.on_message(text, conversation_id=CONVERSATION, turn_id=turn_id)
    assert time.monotonic() - begun < hooks.deadline_ms / 1_000 + SCHEDULING_S
    return turn


def wait_for_episodes(service: MemoryService, count: int) -> list[Memory]:
    until = time.monotonic() + PATIENCE_S
    while len(found := episodes(service)) < count:
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def logged(service: MemoryService, event: str) -> list[dict[str, str]]:
    path = service.paths(ORC).log_file
    lines = path.read_text().splitlines() if path.exists() else []
    return [each for line in lines if (each := json.loads(line))["event"] == event]


def test_a_held_database_delays_messages_and_loses_none(tmp_path: Path) -> None:
    with (
        serving(tmp_path, **{"memory.storage.busy_timeout_ms": 300}) as service,
        MemoryHooks(service, ORC, deadline_ms=LONG_MS) as warm,
    ):
        service.orchestrator(ORC).remember("The oven is hot.", type="Decision")
        assert in_time(warm, "first", turn_id="0").acknowledged
        hooks = MemoryHooks(service, ORC, deadline_ms=DEADLINE_MS)
        path = service.paths(ORC).database
        with closing(driver.connect(str(path), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            turns = [in_time(hooks, f"message {n}", turn_id=str(n)) for n in range(1, 6)]
        assert not any(each.acknowledged for each in turns)
        assert all("capture.unacknowledged" in each.codes for each in turns)
        assert "storage.busy" in turns[-1].codes
        # Reading goes on meanwhile.
        assert "The oven is hot." in turns[-1].bulletin
        found = wait_for_episodes(service, 6)
        assert [each.content for each in found] == ["first", *(f"message {n}" for n in range(1, 6))]
        # Handed over again, each is known.
        again = hooks.on_message(
            "message 3", conversation_id=CONVERSATION, turn_id="3", deadline_ms=LONG_MS
        )
        assert again.episode_id == found[3].memory_id
        assert hooks.close() == 0
        # Told once, and not with every message.
        states = [
            each["code"] for each in logged(service, "turn.degraded") if each["part"] == "capture"
        ]
        assert states == ["storage.busy"]
        assert [each["part"] for each in logged(service, "turn.recovered")].count("capture") == 1


def test_a_root_that_is_removed_blocks_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with serving(root) as service, MemoryHooks(service, ORC, deadline_ms=LONG_MS) as hooks:
        service.orchestrator(ORC).remember("The oven is hot.", type="Decision")
        good = in_time(hooks)
        shutil.rmtree(root)
        service.forget(ORC)
        turn = in_time(hooks)
        assert not turn.acknowledged
        assert turn.bulletin == good.bulletin
        assert turn.context is None
        assert "capture.refused" in turn.codes
        assert not root.exists()
    # Nor does closing bring anything back.
    assert not root.exists()


@contextmanager
def silent_server() -> Iterator[int]:
    """Takes connections and never answers; gives its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield server.getsockname()[1]


class Hanging:
    """An embedding model that hangs on a server which never answers."""

    name, model, dimensions, max_batch = "fake", "hanging", 16, 64
    remote = True

    def __init__(self, port: int) -> None:
        self._port = port

    def embed(self, _texts: object) -> object:
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            connection.recv(1)
        raise AssertionError("the server answered")


def test_a_model_that_hangs_costs_the_context_alone(tmp_path: Path) -> None:
    with silent_server() as port:
        service = MemoryService(
            tmp_path,
            config={"memory.storage.synchronous": "NORMAL"},
            environ={},
            embedding=Hanging(port),  # type: ignore[arg-type]  # only embed is ever reached
            background=False,
        )
        service.orchestrator(ORC, create=True).remember("The oven is hot.", type="Decision")
        hooks = MemoryHooks(service, ORC, deadline_ms=DEADLINE_MS)
        before = threading.active_count()
        turns = [in_time(hooks, f"message {n}") for n in range(12)]
        assert all(each.context is None for each in turns)
        assert "memory.slow" in turns[0].codes
        # When every thread hangs that may, nobody waits for one.
        assert "memory.full" in turns[-1].codes
        assert threading.active_count() - before <= 6
        settled = wait_for_episodes(service, 12)
        assert [each.content for each in settled] == [f"message {n}" for n in range(12)]
        last = hooks.on_message("last", conversation_id=CONVERSATION, deadline_ms=LONG_MS)
        assert last.acknowledged
        assert "The oven is hot." in last.bulletin
        begun = time.monotonic()
        assert hooks.close(0.2) == 0
        assert time.monotonic() - begun < SCHEDULING_S
        closed = in_time(hooks)
        assert "memory.closed" in closed.codes


def test_a_turn_of_recalls_that_nobody_gives_back_costs_the_context_alone(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        service.orchestrator(ORC).remember("The oven is hot.", type="Decision")
        hooks = MemoryHooks(service, ORC, deadline_ms=DEADLINE_MS)
        with service.opened(ORC) as opened, ExitStack() as held:
            for _ in range(max(os.cpu_count() or 1, FEWEST_TURNS)):
                held.enter_context(opened.turns)
            late = in_time(hooks, "Is the oven hot?")
        assert late.context is None
        assert "memory.slow" in late.codes
        found = hooks.on_message("And now?", conversation_id=CONVERSATION, deadline_ms=LONG_MS)
        assert found.context is not None
        hooks.close()


def test_those_who_wait_for_a_model_elsewhere_do_not_wait_for_one_another(tmp_path: Path) -> None:
    at_once = 4

    class Meeting(Hanging):
        """Answers when so many ask at the same time."""

        def __init__(self) -> None:
            self._met = threading.Barrier(at_once, timeout=PATIENCE_S)

        def embed(self, texts: object) -> object:
            self._met.wait()
            return np.ones((len(texts), self.dimensions), dtype=np.float32)  # type: ignore[arg-type]

    service = MemoryService(
        tmp_path,
        config={"memory.storage.synchronous": "NORMAL"},
        environ={},
        embedding=Meeting(),  # type: ignore[arg-type]  # only embed is ever reached
        background=False,
    )
    names = [f"orc-{number}" for number in range(at_once)]
    with service, ThreadPoolExecutor(at_once) as pool:
        for name in names:
            service.orchestrator(name, create=True).remember("The oven is hot.")
        hooks = [MemoryHooks(service, name, deadline_ms=LONG_MS) for name in names]
        turns = list(pool.map(in_time, hooks))
        assert all(each.context is not None for each in turns)
        assert [each.close() for each in hooks] == [0] * at_once
