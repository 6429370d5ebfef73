"""Who says what the memory said, when, and of what it could know."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph import MemoryService, Orchestrator, Scope, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.consolidation.agent_tools import PageTurn
from memgraph.consolidation.echo_filter import EchoFilter, EchoRemainder
from memgraph.operations.life.echoes import echo_filter, forget_old_lines, record_handed_out
from memgraph.rules.similarity import LATE_MS, WINDOW_MS, EchoReason, judged_at

NAME = "orc-1"
DAY = 86_400_000
KNOWN = "Mira moved to Graz in May 2025 with two cats."
OTHER_WORDS = "You moved to Graz in May 2025 with the two cats."


def judge(
    service: MemoryService, text: str, role: str = "assistant", **fields: Any
) -> EchoReason | None:
    with service.opened(NAME) as opened:
        at = service.clock.now_ms()
        found = echo_filter(opened, [PageTurn("ep_1", text, role, at)])
        left = found.without_echo(text, source_role=role, **{"at_ms": at, **fields})
        return left.reasons[0] if left.reasons and not left.text else None


@pytest.fixture
def told(orc: Orchestrator, clock: FixedClock) -> Orchestrator:
    """One fact, recalled a minute ago."""
    orc.remember(KNOWN)
    clock.advance(ms=60_000)
    assert orc.recall("Where does Mira live?").items
    clock.advance(ms=60_000)
    return orc


@pytest.mark.parametrize("role", ["assistant", "user", "Mira"])
def test_an_equal_line_is_an_echo_whoever_says_it(
    service: MemoryService, told: Orchestrator, role: str
) -> None:
    assert judge(service, f"- {KNOWN.upper()}", role) is EchoReason.LINE


def test_other_words_are_an_echo_of_an_agent_alone(
    service: MemoryService, told: Orchestrator
) -> None:
    assert judge(service, OTHER_WORDS) is EchoReason.RECEIPT
    assert judge(service, OTHER_WORDS, "user") is None


def test_a_user_who_says_it_days_later_says_it_anew(
    service: MemoryService, told: Orchestrator, clock: FixedClock
) -> None:
    clock.advance(ms=WINDOW_MS + DAY)
    assert judge(service, KNOWN, "user") is None
    assert judge(service, KNOWN) is EchoReason.LINE


def test_a_turn_that_is_recalled_later_is_no_echo_of_itself(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    said_at = clock.now_ms()
    orc.save_episode(KNOWN, session_id="s", source_role="user")
    orc.recall("Where does Mira live?")
    clock.advance(ms=60_000)
    orc.recall("Where does Mira live?")
    assert judge(service, KNOWN, "user", at_ms=said_at) is None
    assert judge(service, KNOWN, "user") is EchoReason.LINE


def test_without_any_receipt_an_agent_adds_nothing_to_what_is_known(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    orc.remember(KNOWN)
    clock.advance(ms=60_000)
    for text in (KNOWN, OTHER_WORDS, f"As I recall, {KNOWN}"):
        assert judge(service, text) is EchoReason.KNOWN
        assert judge(service, text, "user") is None


def test_what_is_known_is_what_stood_then(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    old = orc.remember(KNOWN)
    clock.advance(ms=60_000)
    before = clock.now_ms()
    clock.advance(ms=60_000)
    orc.correct(old, "Mira moved to Linz in May 2025.", reason="mistaken")
    clock.advance(ms=60_000)
    assert judge(service, OTHER_WORDS, at_ms=before) is EchoReason.KNOWN
    assert judge(service, OTHER_WORDS) is EchoReason.KNOWN
    clock.advance(ms=WINDOW_MS)
    assert judge(service, OTHER_WORDS) is None


def test_what_the_speaker_could_not_see_is_not_known(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    orc.remember(KNOWN, scope=Scope.PROJECT, scope_id="p")
    orc.remember("Ida sold the mill in April.", sensitivity=Sensitivity.RESTRICTED)
    orc.remember("Ada leads the night shift.", agent_id="a")
    clock.advance(ms=60_000)
    assert judge(service, OTHER_WORDS) is None
    assert judge(service, "Ida sold the mill in April.") is None
    assert judge(service, "Ada leads the night shift.") is None
    viewer = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"p"}), agent_id="a")
    assert judge(service, OTHER_WORDS, viewer=viewer) is EchoReason.KNOWN
    assert judge(service, "Ida sold the mill in April.", viewer=viewer) is EchoReason.KNOWN
    assert judge(service, "Ada leads the night shift.", viewer=viewer) is EchoReason.KNOWN


def test_a_recalled_turn_in_other_words(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    orc.save_episode(KNOWN, session_id="s", source_role="user")
    clock.advance(ms=60_000)
    assert judge(service, OTHER_WORDS) is None
    orc.recall("Where does Mira live?")
    clock.advance(ms=60_000)
    assert judge(service, OTHER_WORDS) is EchoReason.RECEIPT
    clock.advance(ms=2 * WINDOW_MS)
    assert judge(service, OTHER_WORDS) is None


def test_two_memories_in_one_sentence(
    service: MemoryService, told: Orchestrator, clock: FixedClock
) -> None:
    told.remember("The rent of the workshop is 640 euros.")
    clock.advance(ms=60_000)
    both = "You moved to Graz in May 2025, and the rent of the workshop is 640 euros."
    assert judge(service, both) is EchoReason.RECEIPT
    assert judge(service, both.replace("640", "690")) is None


@pytest.mark.parametrize(
    "new",
    [
        "Mira moved to Linz in May 2025 with two cats.",
        "Mira moved to Graz in May 2024 with two cats.",
        "Mira never moved to Graz in May 2025.",
        "Mira moved to Graz in May 2025 with three cats.",
        "Mira moved to Graz in May 2025 with two dogs.",
        "Ida moved to Graz in May 2025.",
    ],
)
def test_a_new_value_is_no_echo(service: MemoryService, told: Orchestrator, new: str) -> None:
    assert judge(service, new) is None


def test_what_is_new_remains(service: MemoryService, told: Orchestrator) -> None:
    with service.opened(NAME) as opened:
        found = echo_filter(opened)
        at = service.clock.now_ms()
        text = f"Sure! {KNOWN}\nHer sister Ida keeps bees.\n- {KNOWN} [fact_1] Ida is 41."
        left = found.without_echo(text, source_role="assistant", at_ms=at)
        untouched = found.without_echo("Ida  keeps bees.\n", source_role="user", at_ms=at)
    assert left.text == "Sure!\nHer sister Ida keeps bees.\n[fact_1] Ida is 41."
    assert left.reasons == (EchoReason.LINE, EchoReason.LINE)
    assert untouched == EchoRemainder("Ida  keeps bees.\n")


def test_a_citation_leads_to_what_was_said(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    known = orc.remember(KNOWN)
    clock.advance(ms=60_000)
    assert judge(service, f"Mira moved to Graz [{known}]", "user") is EchoReason.RECEIPT
    assert judge(service, f"Mira moved to Linz [{known}]", "user") is None


def test_what_other_parts_hand_out_counts_too(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    with service.opened(NAME) as opened:
        assert not record_handed_out(opened, ["Goal: " + KNOWN], at_ms=clock.now_ms())
    clock.advance(ms=60_000)
    assert judge(service, KNOWN) is EchoReason.LINE


def test_a_person_s_line_is_left_out_only_where_a_memory_in_force_says_it(
    service: MemoryService, told: Orchestrator, clock: FixedClock
) -> None:
    assert judge(service, KNOWN, "user") is EchoReason.LINE
    with service.opened(NAME) as opened:
        record_handed_out(opened, ["The mill was sold in April."], at_ms=clock.now_ms())
    clock.advance(ms=60_000)
    assert judge(service, "The mill was sold in April.", "user") is None
    [found] = told.memories.list()
    told.correct(found.memory_id, "Mira moved to Linz in May 2025.", reason="mistaken")
    clock.advance(ms=60_000)
    assert judge(service, KNOWN, "user") is None


def test_a_person_s_line_is_kept_where_the_reader_does_not_see_what_says_it(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    there = service.orchestrator(NAME, viewer=Viewer(project_ids=frozenset({"a"})))
    there.remember(KNOWN, scope=Scope.PROJECT, scope_id="a")
    there.remember("The rent is 640 euros now.", valid_until=clock.now_ms() + 90_000)
    clock.advance(ms=60_000)
    assert len(there.recall("Where does Mira live, and what is the rent?").items) == 2
    clock.advance(ms=60_000)
    other = Viewer(project_ids=frozenset({"b"}))
    assert judge(service, KNOWN, "user", viewer=other) is None
    assert judge(service, KNOWN, "user", viewer=there.viewer) is EchoReason.LINE
    assert judge(service, "The rent is 640 euros now.", "user") is None


def test_old_lines_go(service: MemoryService, told: Orchestrator, clock: FixedClock) -> None:
    with service.opened(NAME) as opened:
        opened.receipts.flush()
        assert forget_old_lines(opened, now_ms=clock.now_ms()) == 0
        assert forget_old_lines(opened, now_ms=clock.now_ms() + 366 * DAY) == 1
        assert EchoFilter(opened.database).handed_out(KNOWN) is None


def test_a_turn_is_judged_when_it_was_stored_unless_it_came_late() -> None:
    stored = 1_000 * DAY
    assert judged_at(stored - DAY, stored) == stored
    assert judged_at(stored + DAY, stored) == stored
    assert judged_at(stored - LATE_MS - 1, stored) == stored - LATE_MS - 1
