"""An erasure that was stopped behind its first commit: nobody reads what has its tombstone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from erasing_worlds import LINE

from memgraph import Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import Conflict, NotFound
from memgraph.model.enums import STORED_STATUSES
from memgraph.operations.erasure import erase

WHY = "asked for"


class Stopped(Exception):
    """As a kill, but that the process goes on."""


def stop(*_args: Any) -> None:
    raise Stopped


@dataclass(frozen=True)
class World:
    """What is half erased: ``secret``, and ``alone`` with it; of the others two are joined to it.

    ``before``: when it was there; ``receipt``: of who was given it.
    """

    orc: Orchestrator
    secret: str
    alone: str
    shared: str
    rival: str
    before: int
    receipt: str


@pytest.fixture
def world(orc: Orchestrator, clock: FixedClock) -> World:
    secret = orc.remember(LINE, type="Fact")
    alone = orc.remember("So the zwieback is in the attic", derived_from=[secret])
    rival = orc.remember("There is no attic at all", type="Fact")
    shared = orc.remember("An attic was talked about", derived_from=[secret, rival])
    orc.relate(rival, "Contradicts", secret, reason=f"against: {LINE}")
    given = orc.recall("zwieback in the attic")
    assert secret in given.ids
    orc.bulletin()
    before = clock.now_ms()
    clock.advance(days=1)
    with patch.object(erase, "_blank", stop), pytest.raises(Stopped):
        orc.erasure.erase(memory_id=secret, reason=WHY, dry_run=False)
    return World(orc, secret, alone, shared, rival, before, given.receipt_id)


ASKED: tuple[Callable[[World], object], ...] = (
    lambda w: w.orc.get(w.secret),
    lambda w: w.orc.get(w.secret, as_of=w.before),
    lambda w: w.orc.trace(w.alone),
    lambda w: w.orc.trace(w.secret, as_of=w.before),
    lambda w: w.orc.history.get(w.secret),
    lambda w: w.orc.sources.lines(w.secret),
    lambda w: w.orc.graph.grounds(w.alone),
    lambda w: w.orc.graph.impact(w.secret),
    lambda w: w.orc.receipts.get(w.receipt),
    lambda w: w.orc.restore(w.secret, reason="was right"),
    lambda w: w.orc.confirm(w.secret),
    lambda w: w.orc.correct(w.secret, "Nothing at all", reason="was wrong"),
    lambda w: w.orc.relate(w.rival, "RelatedTo", w.secret),
    lambda w: w.orc.remember("So it is", derived_from=[w.secret]),
)
SHOWN: tuple[Callable[[World], object], ...] = (
    lambda w: w.orc.memories.list(statuses=STORED_STATUSES),
    lambda w: w.orc.memories.list(statuses=STORED_STATUSES, as_of=w.before),
    lambda w: w.orc.recall("attic"),
    lambda w: w.orc.recall("attic", as_of=w.before),
    lambda w: w.orc.bulletin(),
    lambda w: w.orc.bulletin(as_of=w.before),
    lambda w: w.orc.graph.subgraph([w.rival, w.shared], hops=2, retracted=True),
    lambda w: w.orc.trace(w.shared),
    lambda w: w.orc.graph.grounds(w.shared, lines=9),
    lambda w: w.orc.contradictions.list(),
    lambda w: w.orc.history.diff(w.before - 1),
)


def test_whoever_asks_for_it_is_told_that_there_is_none(world: World) -> None:
    for ask in ASKED:
        with pytest.raises(NotFound):
            ask(world)


def test_what_is_shown_of_others_says_nothing_of_it(world: World) -> None:
    told = [repr(show(world)) for show in SHOWN]
    assert [each for each in told if "zwieback" in each] == []
    assert world.rival in told[0]
    assert world.rival in told[1]


def test_it_is_exported_when_it_is_erased(world: World, tmp_path: Path) -> None:
    with pytest.raises(Conflict, match="unfinished"):
        world.orc.exchange.export(tmp_path / "early.jsonl")
    assert world.orc.verify().totals == {}
    report = world.orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
    assert report.unfinished == ()
    world.orc.exchange.export(tmp_path / "late.jsonl")
    assert "zwieback" not in (tmp_path / "late.jsonl").read_text(encoding="utf-8")
    assert world.orc.get(world.secret).content == ""
    with pytest.raises(Conflict, match="erased"):
        world.orc.restore(world.secret, reason="was right")
