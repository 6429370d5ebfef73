"""What the memory said itself comes back as conversation, and makes nothing firmer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.model.conversation import AgentTurn
from memgraph.model.jobs import SessionReport
from memgraph.model.values import MAX_CONTENT_CHARS
from memgraph.operations.life.consolidation import consolidate_session
from memgraph.operations.read.receipts import ReceiptBook

NAME = "orc-1"
ROUNDS = 50
# Answers are turns too, and are recalled: they must not double from round to round.
LONGEST = 1_000
MINUTE, DAY = 60_000, 86_400_000
SEED = (
    ("user", "I moved to Graz in May 2025."),
    ("assistant", "Noted, thanks for telling me!"),
    ("user", "My sister Ida keeps two beehives behind the chapel."),
    ("user", "I am allergic to walnuts."),
    ("user", "We decided to rent the blue workshop for 640 euros a month."),
)
Say = Callable[[list[str], str, str], tuple[str, str]]


def later(service: MemoryService, ms: int) -> None:
    assert isinstance(service.clock, FixedClock)
    service.clock.advance(ms=ms)


def say(orc: Orchestrator, session_id: str, *turns: tuple[str, str], published: str = "") -> None:
    """``published``: the role whose turns are handed over as an agent's."""
    for role, content in turns:
        later(orc._service, MINUTE)
        given = {"content": content[:MAX_CONTENT_CHARS], "session_id": session_id}
        if role == published:
            orc.events.publish(AgentTurn(**given, source_role=role))
        else:
            orc.save_episode(**given, source_role=role)


def consolidate(service: MemoryService, session_id: str) -> SessionReport:
    later(service, DAY // 4)
    with service.opened(NAME) as opened:
        return consolidate_session(opened, session_id)


def beliefs(service: MemoryService) -> list[tuple[Any, ...]]:
    """Every fact with its confidence and what supports it."""
    with service.opened(NAME) as opened, opened.database.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT m.memory_id, m.content, m.confidence, m.status,"
            " (SELECT count(*) FROM memory_supports p WHERE p.memory_id = m.memory_id),"
            " (SELECT count(*) FROM memory_derivations d WHERE d.memory_id = m.memory_id)"
            " FROM memories m WHERE m.kind <> 'episode' ORDER BY m.memory_id"
        )
        return [tuple(row) for row in rows]


@pytest.fixture
def seeded(service: MemoryService, orc: Orchestrator) -> Orchestrator:
    say(orc, "seed", *SEED)
    report = consolidate(service, "seed")
    assert sum(each.outcome == "stored" for each in report.facts) >= 3
    orc.maintenance.embed_pending()
    return orc


def verbatim(texts: list[str], bulletin: str, dump: str) -> tuple[str, str]:
    return "assistant", " ".join(texts)


def listed(texts: list[str], bulletin: str, dump: str) -> tuple[str, str]:
    return "assistant", "\n".join(f"- **{text}**" for text in texts)


def recalled(texts: list[str], bulletin: str, dump: str) -> tuple[str, str]:
    return "assistant", " ".join(f"As I recall, {text}" for text in texts)


def joined(texts: list[str], bulletin: str, dump: str) -> tuple[str, str]:
    return "assistant", "; ".join(text.rstrip(".”") for text in texts)


def loud(texts: list[str], bulletin: str, dump: str) -> tuple[str, str]:
    return "assistant", "\n".join(text.upper() for text in texts)


def cited(texts: list[str], bulletin: str, dump: str) -> tuple[str, str]:
    lines = [line for line in bulletin.splitlines() if line.startswith("- ")]
    return "assistant", "\n".join(lines)


def pasted_bulletin(texts: list[str], bulletin: str, dump: str) -> tuple[str, str]:
    return "user", bulletin


def pasted_dump(texts: list[str], bulletin: str, dump: str) -> tuple[str, str]:
    return "user", dump


def pasted_lines(texts: list[str], bulletin: str, dump: str) -> tuple[str, str]:
    return "user", "\n".join(f"> {text}" for text in texts)


FORMS: tuple[Say, ...] = (
    verbatim,
    listed,
    recalled,
    joined,
    loud,
    cited,
    pasted_bulletin,
    pasted_dump,
    pasted_lines,
)
QUESTIONS = ("Where do I live?", "What does Ida keep?", "What may I not eat?", "the workshop rent")


@pytest.mark.parametrize(
    ("agent", "published"), [("assistant", ""), ("Robin", ""), ("Robin", "Robin")]
)
def test_fifty_rounds_of_echo_add_nothing(
    service: MemoryService, seeded: Orchestrator, agent: str, published: str
) -> None:
    before = beliefs(service)
    for number in range(ROUNDS):
        later(service, DAY)
        session = f"round-{number}"
        asked = QUESTIONS[number % len(QUESTIONS)]
        bundle = seeded.recall(asked, kinds=["fact"] if number % 2 else [])
        texts = [i.memory.content for i in bundle.items if len(i.memory.content) < LONGEST]
        assert texts
        role, answer = FORMS[number % len(FORMS)](
            texts,
            seeded.bulletin().bulletin.text,
            json.dumps(bundle.model_dump(mode="json"), indent=2),
        )
        who = agent if role == "assistant" else role
        say(seeded, session, ("user", asked), (who, answer), published=published)
        report = consolidate(service, session)
        assert report.facts == (), (number, answer)
        assert report.echoes >= 1
        assert beliefs(service) == before


def test_an_agent_adds_nothing_though_every_receipt_is_lost(
    service: MemoryService, seeded: Orchestrator
) -> None:
    before = beliefs(service)
    for number, form in enumerate((verbatim, listed, recalled, joined, cited) * 2):
        later(service, DAY)
        bundle = seeded.recall(QUESTIONS[number % len(QUESTIONS)], kinds=["fact"])
        texts = [item.memory.content for item in bundle.items]
        answer = form(texts, seeded.bulletin().bulletin.text, "")
        with service.opened(NAME) as opened:
            # As a process that is killed takes with it what it did not write yet.
            opened.receipts = ReceiptBook(opened.database, opened.recalls)
        say(seeded, f"lost-{number}", answer)
        assert consolidate(service, f"lost-{number}").facts == ()
    assert beliefs(service) == before
    with service.opened(NAME) as opened, opened.database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM echo_lines").scalar() == 0


def test_a_restatement_of_a_user_strengthens(service: MemoryService, seeded: Orchestrator) -> None:
    before = {row[0]: row for row in beliefs(service)}
    later(service, DAY)
    seeded.recall("Where do I live?")
    say(seeded, "own words", ("user", "By the way, back in May 2025 I moved to Graz."))
    report = consolidate(service, "own words")
    assert report.echoes == 0
    assert report.facts
    later(service, 3 * DAY)
    say(seeded, "days later", ("user", "I moved to Graz in May 2025."))
    report = consolidate(service, "days later")
    assert (report.echoes, [each.outcome for each in report.facts]) == (0, ["strengthened"])
    after = {row[0]: row for row in beliefs(service)}
    stronger = str(report.facts[0].memory_id)
    assert after[stronger][2] > before[stronger][2]
    assert after[stronger][4] == before[stronger][4] + 1


def test_what_an_agent_adds_is_not_lost(service: MemoryService, seeded: Orchestrator) -> None:
    later(service, DAY)
    [known] = [i.memory.content for i in seeded.recall("beehives", kinds=["fact"], top_n=1).items]
    say(
        seeded,
        "new",
        ("assistant", f"{known} I ordered three goats near the mill on 2 May 2026."),
    )
    report = consolidate(service, "new")
    assert report.echoes == 1
    assert [each.outcome for each in report.facts] == ["stored"]
    assert "three goats" in report.facts[0].content
