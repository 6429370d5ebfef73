"""Whose word it is decides what a statement can do: strengthen, supersede, or be a fact at all."""

from __future__ import annotations

from typing import Any

import pytest
from lines_extractor import Lines, fact

from memgraph import MemoryService, Orchestrator
from memgraph.clock import MS_PER_DAY, FixedClock
from memgraph.consolidation.ports import Extractor, PageProposal, TurnPage
from memgraph.model.conversation import AgentTurn, UserTurn
from memgraph.model.enums import MemoryKind
from memgraph.model.values import Memory
from memgraph.operations.life.consolidation import Consolidator

TEA = "Ann drinks green tea in the morning."
BUILD = "The nightly build takes 10 minutes."


def say(orc: Orchestrator, session: str, text: str, role: str, told_as: str = "") -> str:
    """A turn, three days after the one before."""
    assert isinstance(orc._service.clock, FixedClock)
    orc._service.clock.advance(ms=3 * MS_PER_DAY)
    return say_now(orc, session, text, role, told_as)


def say_now(orc: Orchestrator, session: str, text: str, role: str, told_as: str = "") -> str:
    given = {"content": text, "session_id": session, "source_role": role}
    if told_as:
        return orc.events.publish(UserTurn(**given) if told_as == "person" else AgentTurn(**given))
    return orc.save_episode(**given)


def run(orc: Orchestrator, session: str, extractor: Extractor | None = None, **options: Any) -> Any:
    with orc._service.opened(orc.name) as opened:
        run = Consolidator(opened, extractor=extractor or Lines(), **options)
        return run.session(session)


def held(orc: Orchestrator) -> dict[str, Memory]:
    return {each.content: each for each in orc.memories.list(kinds=[MemoryKind.FACT], limit=99)}


@pytest.mark.parametrize(
    ("role", "told_as", "counts"),
    [
        ("Mira", "person", True),
        ("assistant", "person", True),
        ("Mira", "agent", False),
        ("assistant", "", False),
    ],
)
def test_only_who_is_a_person_strengthens(
    orc: Orchestrator, role: str, told_as: str, counts: bool
) -> None:
    say(orc, "s-1", TEA, "user")
    run(orc, "s-1")
    before = held(orc)[TEA]
    # In other words too: a model may give them the words of what is known.
    for session, text in (("s-2", TEA), ("s-3", "In the morning it is tea for Ann, green one.")):
        say(orc, session, text, role, told_as)
        run(orc, session, Lines(content=TEA))
    assert set(held(orc)) == {TEA}
    after, traced = held(orc)[TEA], orc.trace(before.memory_id)
    assert (after.confidence > before.confidence) is counts
    assert bool(traced.supports) is counts
    assert traced.independent_sources == (2 if counts else 1)


def test_what_an_agent_of_any_name_says_is_believed_half(orc: Orchestrator) -> None:
    for number, (role, told_as) in enumerate((("Robin", "agent"), ("assistant", ""))):
        text = f"Cupboard {number} stands in hall {number * 7 + 1}."
        say(orc, f"s-{number}", text, role, told_as)
        report = run(orc, f"s-{number}", Lines(confidence=0.9))
        assert report.rejected == []
        assert held(orc)[text].confidence == 0.5


def test_what_a_tool_says_is_no_fact(orc: Orchestrator) -> None:
    for role in ("tool", "system", "Function"):
        say(orc, role, BUILD, role)
        assert [each.code for each in run(orc, role).rejected] == ["fact.silent"]
    assert held(orc) == {}


class Quoting:
    """One fact on all turns of the page, quoted from the last one."""

    name = "quoting"

    def propose(self, page: TurnPage) -> PageProposal:
        evidence = tuple(turn.memory_id for turn in page.turns)
        return PageProposal((fact(page.turns[-1], evidence=evidence, content=TEA),))


@pytest.mark.parametrize(("last", "counts"), [("assistant", False), ("user", True)])
def test_only_who_is_quoted_decides(orc: Orchestrator, last: str, counts: bool) -> None:
    say(orc, "s-1", TEA, "Mira", "person")
    run(orc, "s-1")
    before = held(orc)[TEA].confidence
    first = "user" if last == "assistant" else "assistant"
    say(orc, "s-2", "And which tea is it that she has?", first)
    say(orc, "s-2", "That is the green one, of a morning.", last)
    run(orc, "s-2", Quoting())
    assert (held(orc)[TEA].confidence > before) is counts


def test_one_person_cannot_pump_by_many_sessions(orc: Orchestrator) -> None:
    say(orc, "s", TEA, "user")
    run(orc, "s")
    base = held(orc)[TEA].confidence
    for number in range(6):
        say(orc, f"later-{number}", TEA, "user")
        run(orc, f"later-{number}")
    often = held(orc)[TEA]
    assert often.confidence == base
    assert orc.trace(often.memory_id).independent_sources == 1
    say(orc, "mira", "Green tea Ann drinks in the morning.", "Mira", "person")
    run(orc, "mira", Lines(content=TEA))
    assert held(orc)[TEA].confidence > often.confidence
    assert orc.trace(often.memory_id).independent_sources == 2


def test_a_copied_turn_is_no_source(service: MemoryService, orc: Orchestrator) -> None:
    say(orc, "s", TEA, "Mira", "person")
    run(orc, "s")
    before = held(orc)[TEA]
    for number in range(4):
        say_now(orc, f"copy-{number}", TEA, f"Mira {number}", "person")
        run(orc, f"copy-{number}")
    after = held(orc)[TEA]
    assert after.confidence == before.confidence
    assert len(orc.trace(after.memory_id).supports) == 4
    assert orc.trace(after.memory_id).independent_sources == 1
