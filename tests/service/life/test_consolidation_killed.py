"""Runs that are killed at random points and resumed produce the facts of an undisturbed run."""

from __future__ import annotations

import itertools
import random
import re
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

from page_models import add
from processes import Process, wait_until
from sampling import often

from memgraph import MemoryService
from memgraph.model.conversation import UserTurn
from memgraph.operations.life import consolidation
from memgraph.operations.life.consolidation import Consolidator
from memgraph.operations.life.models import LanguageModel
from memgraph.store.engine import Database

KILLS = often(24)
CONFIG = {"memory.storage.synchronous": "NORMAL", "memory.embedding.provider": "none"}
IN_PAGES = {"PAGE_TURNS": 4, "IDLE_MS": 0}
NAME = "orc-1"

CITIES = ("Berlin", "Munich")
PEOPLE = ("Ann", "Bob", "Carla", "Dmitri", "Esra", "Farid")
TALK = (
    "Fact: the depot is in {city}.",
    "Preference: green tea in the morning.",
    "I keep two cats and a very old parrot at home.",
    "TODO: air room {number} of the depot.",
    "Decision: we use Postgres for the billing service.",
    "TODO: renew the certificate of the mail server by 3 May 2026.",
    "Ok, thanks!",
    "Fact: the sister of the owner works in the hospital of Leipzig.",
    "Event: the orchestra of Dresden plays on Friday.",
    "Goal: learn to sail before the next summer.",
    "What do you think?",
)


def fill(root: Path) -> None:
    """Store sessions that repeat each other, and differ in one line."""
    with MemoryService(root, environ={}, background=False, config=CONFIG) as service:
        orc = service.orchestrator(NAME, create=True)
        for session in range(6):
            turns = [
                UserTurn(
                    content=line.format(city=CITIES[session % 2], number=session),
                    session_id=f"s-{session}",
                    source_role=PEOPLE[(session // 2 + place) % len(PEOPLE)],
                    event_time=1_750_000_000_000 + session * 86_400_000 + place * 60_000,
                )
                for place, line in enumerate(TALK)
            ]
            orc.save_episodes(turns)


def facts(database: Database) -> dict[str, list[Any]]:
    """Return everything that a consolidation stored, without ids and times."""
    with database.read() as connection:

        def rows(statement: str) -> list[Any]:
            return sorted(tuple(row) for row in connection.exec_driver_sql(statement))

        return {
            "facts": rows(
                "SELECT content, type, scope, session_id, event_time, round(confidence, 6),"
                " importance, status, attributes FROM memories WHERE kind = 'fact'"
            ),
            "grounds": rows(
                "SELECT f.content, e.session_id, e.sequence FROM memory_derivations d"
                " JOIN memories f ON f.memory_id = d.memory_id"
                " JOIN memories e ON e.memory_id = d.derived_from_id"
            ),
            "edges": rows(
                "SELECT a.content, e.edge_type, b.content, e.reason FROM memory_edges e"
                " JOIN memories a ON a.memory_id = e.from_memory_id"
                " JOIN memories b ON b.memory_id = e.to_memory_id"
            ),
            "supports": rows(
                "SELECT f.content, s.conversation_id FROM memory_supports p"
                " JOIN memories f ON f.memory_id = p.memory_id"
                " JOIN memory_sources s ON s.source_id = p.source_id"
            ),
            "sessions": rows(
                "SELECT s.session_id, m.sequence, s.consolidated_at IS NOT NULL FROM sessions s"
                " LEFT JOIN memories m ON m.memory_id = s.consolidated_through"
            ),
        }


def consolidate(root: Path) -> None:
    with (
        patch.multiple(consolidation, **IN_PAGES),
        MemoryService(root, environ={}, background=False, config=CONFIG) as service,
        service.opened(NAME) as opened,
    ):
        Consolidator(opened).pending()


def test_killed_runs_come_to_the_same_facts(tmp_path: Path) -> None:
    seed, folder = tmp_path / "seed", tmp_path / "runs"
    fill(seed)
    undisturbed = folder / "undisturbed"
    shutil.copytree(seed, undisturbed)
    # The first process waits until there is one to fork from.
    assert Process(int).wait() == 0
    begun = time.monotonic()
    assert Process(consolidate, undisturbed).wait() == 0
    usual = time.monotonic() - begun
    chance = random.Random()
    killed = 0
    for number in itertools.count():
        root = folder / f"killed-{number}"
        shutil.copytree(seed, root)
        run = Process(consolidate, root)
        # Kill it in one of the next pages, or while it opens the database.
        while killed < KILLS and not run.ends_within(chance.random() * usual / 2):
            code = run.kill()
            # The process may already have ended.
            assert code in (-signal.SIGKILL, 0)
            killed += code != 0
            run = Process(consolidate, root)
        assert run.wait() == 0
        if killed == KILLS:
            break
    found: dict[str, dict[str, list[Any]]] = {}
    for root in sorted(folder.iterdir()):
        with MemoryService(root, environ={}, background=False, config=CONFIG) as service:
            with service.opened(NAME) as opened:
                found[root.name] = facts(opened.database)
            assert service.orchestrator(NAME).verify().ok
    expected = found.pop("undisturbed")
    assert len(expected["facts"]) > 10
    assert expected["supports"]
    assert found
    for left in found.values():
        assert left == expected


class Model:
    """Proposes a fact of a page's first turn; a file is there when it is asked to check it."""

    name: ClassVar[str] = "fake"

    def __init__(self, asked: Path) -> None:
        self._asked = asked

    def complete_json(self, _system: str, user: str, _schema: Mapping[str, Any]) -> Any:
        if "statement 1 (" in user:
            self._asked.touch()
            return {"verdicts": [{"statement": 1, "differs": "", "says": "yes"}]}
        boat = re.findall(r"^1 \[.*\] Ann: I own (boat \d)\.$", user, re.MULTILINE)[0]
        return {"add": [add(f"Ann owns {boat}.", [1], f"I own {boat}")]}


def by_model(root: Path, asked: Path) -> None:
    with (
        patch.multiple(consolidation, **IN_PAGES),
        MemoryService(
            root, environ={}, background=False, config=CONFIG, llm=LanguageModel(Model(asked))
        ) as service,
        service.opened(NAME) as opened,
    ):
        Consolidator(opened).pending()


def test_a_page_that_was_killed_is_read_again_and_nothing_is_doubled(tmp_path: Path) -> None:
    root, asked = tmp_path / "root", tmp_path / "asked"
    with MemoryService(root, environ={}, background=False, config=CONFIG) as service:
        orc = service.orchestrator(NAME, create=True)
        for number in range(8):
            orc.save_episode(f"I own boat {number}.", session_id="s", source_role="Ann")
    for wait in (0.0, 0.01, 0.03):
        asked.unlink(missing_ok=True)
        run = Process(by_model, root, asked)
        assert wait_until(asked.exists)
        time.sleep(wait)
        run.kill()
    assert Process(by_model, root, asked).wait() == 0
    with MemoryService(root, environ={}, background=False, config=CONFIG) as service:
        orc = service.orchestrator(NAME)
        found = sorted(each.content for each in orc.memories.list(kinds=["fact"]))
        assert found == ["Ann owns boat 0.", "Ann owns boat 4."]
        assert all(orc.trace(each.memory_id).grounds for each in orc.memories.list(kinds=["fact"]))
        assert orc.verify().ok
