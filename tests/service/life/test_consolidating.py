"""From turns to facts: what is stored, strengthens, is refused, and what changes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import sqlalchemy as sa

from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.clock import MS_PER_DAY, FixedClock
from memgraph.consolidation.ports import Extractor, FactCandidate, PageProposal, PageTurn, TurnPage
from memgraph.errors import NotFound, ProviderUnavailable
from memgraph.model.conversation import AgentTurn, UserTurn
from memgraph.model.enums import JobState, MemoryKind, MemoryType, Sensitivity
from memgraph.model.values import Memory
from memgraph.operations.life import consolidation
from memgraph.operations.life.consolidation import Consolidator, SessionReport
from memgraph.operations.life.pages import StoreChanged
from memgraph.providers.usage import TOKENS_PER_RUN, report_tokens
from memgraph.store import sessions as queries, tables


def fact(turn: PageTurn, **changes: Any) -> FactCandidate:
    values = {
        "content": turn.content,
        "type": MemoryType.FACT,
        "importance": 50,
        "confidence": 0.6,
        "event_time": None,
        "evidence": (turn.memory_id,),
        "quote": turn.content,
    }
    return FactCandidate(**(values | changes))


class Lines:
    """Proposes every line. ``on_page`` is called with each page before it answers."""

    name = "lines"

    def __init__(
        self,
        on_page: Callable[[TurnPage], None] = lambda _page: None,
        **changes: Any,
    ) -> None:
        self.pages: list[TurnPage] = []
        self._on_page = on_page
        self._changes = changes

    def propose(self, page: TurnPage) -> PageProposal:
        self.pages.append(page)
        self._on_page(page)
        facts = [
            fact(turn, **self._changes) for turn in page.turns if not turn.content.endswith("?")
        ]
        return PageProposal(tuple(facts))


TEA = "Ann drinks green tea in the morning."
DAY_MS = 86_400_000
BERLIN = "Ann lives in Berlin."
BUILD = "The nightly build takes 10 minutes."
SLOWER = "The nightly build takes 25 minutes now."


def say(orc: Orchestrator, session: str, *lines: str, **fields: Any) -> list[str]:
    given = {"source_role": "user"} | fields
    return [orc.save_episode(line, session_id=session, **given) for line in lines]


def run(orc: Orchestrator, session: str, **options: Any) -> SessionReport:
    [report] = orc.jobs.consolidate(session, **({"extractor": Lines()} | options))
    return report


def facts(orc: Orchestrator) -> dict[str, Memory]:
    found = orc.memories.list(kinds=[MemoryKind.FACT], limit=1000)
    return {each.content: each for each in found}


def told(orc: Orchestrator, *actions: str) -> list[Any]:
    with orc._service.opened(orc.name) as opened, opened.database.read() as connection:
        found = list(
            connection.execute(sa.select(tables.audit_log).order_by(tables.audit_log.c.seq))
        )
    return [each for each in found if each.action in actions or not actions]


def test_facts_rest_on_their_turns(orc: Orchestrator) -> None:
    # Of nearly the same words about another person it is another fact.
    other = BERLIN.replace("Ann", "Bob")
    turns = say(orc, "s-1", TEA, "How are you?", BERLIN, TEA, other)
    report = run(orc, "s-1")
    assert (report.state, report.turns, report.pages) == ("consolidated", 5, 1)
    evidence = {each.content: each.evidence for each in report.facts}
    assert evidence == {TEA: (turns[0], turns[3]), BERLIN: (turns[2],), other: (turns[4],)}
    found = facts(orc)
    assert set(found) == {*evidence}
    [item] = orc.recall("green tea", kinds=[MemoryKind.FACT]).items
    assert (item.source.conversation_id, item.source.captured_by) == ("s-1", "extractor")
    assert found[TEA].session_id == "s-1"
    assert found[TEA].event_time == orc.get(turns[0]).created_at
    assert orc.verify().ok


def test_a_name_that_the_host_gives_with_one_turn_is_of_all_turns_of_the_speaker(
    orc: Orchestrator,
) -> None:
    turns = [
        *say(orc, "s-1", "Good morning."),
        *say(orc, "s-1", "Hi, I'm Vitaly.", attributes={"speaker_name": "Vitaly"}),
        *say(orc, "s-1", "I play the oboe."),
    ]
    say(orc, "s-1", "Hello!", source_role="assistant")
    say(orc, "s-2", "Who is there?")

    def of_vitaly() -> set[str]:
        return {each.memory_id for each in orc.entities.get("Vitaly").memories}

    assert of_vitaly() == {turns[1]}
    orc.jobs.consolidate()
    assert of_vitaly() == {*turns}
    orc.maintenance.rebuild(["entities"])
    assert of_vitaly() == {*turns}
    assert orc.verify().ok


class Wordy(Lines):
    """Proposes three facts for each turn."""

    def propose(self, page: TurnPage) -> PageProposal:
        found = super().propose(page).facts
        return PageProposal(
            tuple(
                replace(each, content=f"{each.content[:-1]}, row {n}.")
                for each in found
                for n in range(3)
            )
        )


def test_pages_have_30_turns_and_60_facts_at_most(orc: Orchestrator) -> None:
    say(orc, "s-1", *(f"Server number {n} stands in hall {n * 7}." for n in range(35)))
    extractor = Wordy()
    report = run(orc, "s-1", extractor=extractor)
    assert [len(page.turns) for page in extractor.pages] == [30, 5]
    # The bound of a short page is the same.
    assert (report.pages, len(report.facts)) == (2, 60 + 15)
    # What was left out is told.
    assert {each.code for each in report.rejected} == {"fact.too_many"}
    assert sum(each.count for each in report.rejected) == 30


def test_another_conversation_adds_its_turns_but_no_source(
    orc: Orchestrator, clock: FixedClock
) -> None:
    say(orc, "s-1", TEA)
    run(orc, "s-1")
    first = facts(orc)[TEA]
    clock.advance(ms=DAY_MS)
    turns = say(orc, "s-2", TEA, f"{TEA[:-1]}!")
    report = run(orc, "s-2")
    assert [each.outcome for each in report.facts] == ["strengthened", "strengthened"]
    again = facts(orc)[TEA]
    assert again.memory_id == first.memory_id
    assert again.confidence == first.confidence
    with orc._service.opened(orc.name) as opened, opened.database.read() as connection:
        assert queries.derived_from(connection, again.memory_id) >= set(turns)
    assert [each.subject for each in told(orc, "strengthen")] == [again.memory_id] * 2
    assert orc.verify().ok


def test_nothing_crosses_a_scope_an_agent_or_a_sensitivity(orc: Orchestrator) -> None:
    everything = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"p"}))
    seer = orc._service.orchestrator(orc.name, viewer=everything)
    say(seer, "s-1", TEA)
    say(seer, "s-1", TEA, scope="project", scope_id="p")
    say(seer, "s-1", TEA, sensitivity="Confidential")
    say(seer, "s-1", TEA, agent_id="planner")
    extractor = Lines()
    report = run(seer, "s-1", extractor=extractor)
    assert [each.outcome for each in report.facts] == ["stored"] * 4
    assert len(extractor.pages) == 4
    found = seer.memories.list(kinds=[MemoryKind.FACT], limit=10)
    places = {(each.scope, each.scope_id, each.agent_id, each.sensitivity) for each in found}
    assert len(places) == 4


def test_a_conversation_that_may_not_be_seen_is_not_there(orc: Orchestrator) -> None:
    everything = Viewer(clearance=Sensitivity.RESTRICTED)
    seer = orc._service.orchestrator(orc.name, viewer=everything)
    say(seer, "s-1", TEA, sensitivity="Restricted")
    with pytest.raises(NotFound):
        run(orc, "s-1")
    say(seer, "s-1", BERLIN)
    report = run(orc, "s-1")
    assert [each.content for each in report.facts] == [BERLIN]
    assert {each.content for each in seer.memories.list(kinds=["fact"])} == {TEA, BERLIN}


def test_what_a_text_may_not_claim_is_rejected(orc: Orchestrator) -> None:
    claims: list[tuple[dict[str, Any], str]] = [
        ({"type": MemoryType.IDENTITY}, "fact.identity"),
        ({"confidence": 1.0}, "fact.confidence"),
        ({"importance": 100}, "fact.importance"),
        ({"evidence": ()}, "fact.no_evidence"),
        ({"evidence": ("ep_of_somebody_else",)}, "fact.foreign_evidence"),
        ({"quote": "nobody said this"}, "fact.quote"),
        ({"content": "   "}, "fact.content"),
        ({"content": "a" * 1_001}, "fact.content"),
        ({"attributes": {"supersedes": ["fact_1"]}}, "input.invalid"),
        ({"content": "Ann\ud800"}, "input.invalid"),
    ]
    for number, (changes, code) in enumerate(claims):
        say(orc, f"s-{number}", TEA)
        report = run(orc, f"s-{number}", extractor=Lines(**changes))
        assert [each.code for each in report.rejected] == [code], changes
        assert report.state == "consolidated"
    assert facts(orc) == {}


def test_a_fact_told_meanwhile_is_not_doubled(orc: Orchestrator) -> None:
    say(orc, "s-1", TEA, BERLIN)
    told_by_user: list[str] = []

    def tell(_page: TurnPage) -> None:
        told_by_user.append(orc.remember(TEA, type="Preference"))

    report = run(orc, "s-1", extractor=Lines(tell))
    assert [each.memory_id for each in report.facts if each.content == TEA] == told_by_user
    assert len(orc.memories.list(kinds=["fact"])) == 2


def test_a_turn_retracted_meanwhile_leaves_no_fact(orc: Orchestrator) -> None:
    turns = say(orc, "s-1", TEA, BERLIN)

    def retract(_page: TurnPage) -> None:
        if orc.get(turns[0]).status == "active":
            orc.retract(turns[0], reason="said in error")

    report = run(orc, "s-1", extractor=Lines(retract))
    assert set(facts(orc)) == {BERLIN}
    assert report.state == "consolidated"


def test_a_target_retracted_between_matching_and_writing_is_matched_anew(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(orc, "s-0", TEA)
    run(orc, "s-0")
    old = facts(orc)[TEA].memory_id
    say(orc, "s-1", TEA)
    write = consolidation.write_page

    def retracted_first(*given: Any, **more: Any) -> Any:
        if orc.get(old).status == "active":
            orc.retract(old, reason="taken back")
        return write(*given, **more)

    monkeypatch.setattr(consolidation, "write_page", retracted_first)
    report = run(orc, "s-1")
    [one] = report.facts
    assert (one.outcome, one.content) == ("stored", TEA)
    assert one.memory_id != old


def test_a_repetition_stored_between_matching_and_writing_is_matched_anew(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(orc, "s-0", "Ann drinks some green tea in the morning.")
    say(orc, "s-1", TEA)
    write = consolidation.write_page
    runs: list[SessionReport] = []

    def other_first(*given: Any, **more: Any) -> Any:
        if not runs:
            monkeypatch.setattr(consolidation, "write_page", write)
            runs.append(run(orc, "s-0"))
        return write(*given, **more)

    monkeypatch.setattr(consolidation, "write_page", other_first)
    [one] = run(orc, "s-1").facts
    [other] = runs[0].facts
    assert (one.outcome, one.memory_id) == ("strengthened", other.memory_id)
    assert len(facts(orc)) == 1


def test_a_page_that_another_process_wrote_is_not_written_again(orc: Orchestrator) -> None:
    say(orc, "s-1", TEA, BERLIN)
    outer = Lines(lambda _page: inner())

    def inner() -> None:
        run(orc, "s-1", extractor=Lines())

    report = run(orc, "s-1", extractor=outer)
    assert report.facts == []
    assert set(facts(orc)) == {TEA, BERLIN}
    assert len(told(orc, "consolidate")) == 1


def test_two_runs_at_once_come_to_the_facts_of_one(orc: Orchestrator, tmp_path: Path) -> None:
    lines = [f"Cupboard {n} of the archive stands in hall {n * 7 + 1}." for n in range(10)]
    for number in range(4):
        say(orc, f"s-{number}", *lines[number : number + 6])

    def work(_: int) -> None:
        with (
            MemoryService(tmp_path / "root", environ={}, background=False) as service,
            service.opened(orc.name) as opened,
        ):
            Consolidator(opened, extractor=Lines()).pending()

    with (
        patch.multiple(consolidation, PAGE_TURNS=2, IDLE_MS=0),
        ThreadPoolExecutor(2) as pool,
    ):
        list(pool.map(work, range(2)))
    found = orc.memories.list(kinds=[MemoryKind.FACT], limit=100)
    assert sorted(each.content for each in found) == sorted(lines[:9])
    assert len(told(orc, "consolidate")) == 4 * 3
    with orc._service.opened(orc.name) as opened, opened.database.read() as connection:
        assert queries.ended_sessions(connection, 2**42) == []
    assert orc.verify().ok


def test_a_session_that_a_model_fails_at_holds_up_no_other(
    orc: Orchestrator, service: MemoryService
) -> None:
    say(orc, "s-1", TEA)
    say(orc, "s-2", BERLIN)

    def propose(page: TurnPage) -> PageProposal:
        if page.session_id == "s-1":
            raise ProviderUnavailable("too long for me")
        return Lines().propose(page)

    with service.opened(orc.name) as opened:
        report = Consolidator(opened, extractor=Lines(propose), now_ms=2**42).pending()
    assert (report.state, report.error_code) == (JobState.FAILED, "provider.unavailable")
    assert report.counts["sessions"] == 1
    assert set(facts(orc)) == {BERLIN}
    [waiting] = orc.sessions.list(pending=True)
    assert waiting.session_id == "s-1"


def test_only_sessions_that_are_over_or_silent(
    orc: Orchestrator, service: MemoryService, clock: FixedClock
) -> None:
    say(orc, "s-1", TEA)
    clock.advance(ms=40 * 60_000)
    say(orc, "s-2", BERLIN)
    with service.opened(orc.name) as opened:
        report = Consolidator(opened, extractor=Lines()).pending()
    assert report.counts["sessions"] == 1
    assert set(facts(orc)) == {TEA}


def test_the_bounds_of_a_run_hold_within_a_page(orc: Orchestrator) -> None:
    for agent in ("a", "b", "c"):
        say(orc, "s-1", TEA, agent_id=agent)
    extractor = Lines(lambda _page: report_tokens(TOKENS_PER_RUN // 2, 0))
    report = run(orc, "s-1", extractor=extractor)
    assert (report.state, report.reason, report.pages) == ("pending", "budget", 0)
    assert (len(extractor.pages), report.tokens) == (2, TOKENS_PER_RUN)
    extractor = Lines()
    report = run(orc, "s-1", extractor=extractor, stop=lambda: len(extractor.pages) == 2)
    assert (report.state, report.reason, len(extractor.pages)) == ("pending", "stopped", 2)
    assert facts(orc) == {}
    assert len(run(orc, "s-1").facts) == 3


def test_without_a_model_a_turn_stays_a_turn(orc: Orchestrator) -> None:
    say(orc, "s-1", "I live in Berlin with my two cats.", "We decided to use SQLite.")
    [report] = orc.jobs.consolidate("s-1")
    assert (report.extractor, report.state, report.facts) == ("labels", "consolidated", [])
    [again] = orc.jobs.consolidate("s-1")
    assert again.state == "unchanged"


def test_what_its_writer_labelled_is_a_typed_memory(orc: Orchestrator) -> None:
    said = {
        "Thanks! TODO: call the notary. See you.": ("Todo", "call the notary."),
        "Notes\n- **Decision:** We use SQLite.": ("Decision", "We use SQLite."),
        "goal: finish the catalogue by June": ("Goal", "finish the catalogue by June"),
        "Action item: order two lamps": ("Todo", "order two lamps"),
    }
    turns = say(orc, "s-1", *said)
    say(orc, "s-1", "Identity: I am the owner.", "TODO:", "He said: TODO is a word.", "Re: lamps")
    [report] = orc.jobs.consolidate("s-1")
    assert [(each.type, each.content) for each in report.facts] == [*said.values()]
    assert [each.evidence for each in report.facts] == [(turn,) for turn in turns]
    assert [orc.get(turn).content for turn in turns] == [*said]


def test_an_expired_twin_swallows_no_new_statement(orc: Orchestrator, clock: FixedClock) -> None:
    old = orc.remember(TEA, valid_until=clock.now_ms() + DAY_MS)
    clock.advance(ms=10 * DAY_MS)
    say(orc, "s-1", TEA)
    [fact] = run(orc, "s-1").facts
    assert fact.outcome == "stored"
    assert fact.memory_id != old
    # Nor for whoever tells it: what is said again is valid again.
    other = orc.remember(BUILD, valid_until=clock.now_ms() + DAY_MS)
    assert orc.remember(BUILD) == other
    clock.advance(ms=10 * DAY_MS)
    assert orc.remember(BUILD) != other
    assert orc.verify().ok


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ({"sensitivity": "Restricted"}, {}),
        ({"agent_id": "planner"}, {"agent_id": "writer"}),
    ],
)
def test_nobody_reads_a_turn_before_that_is_closed_to_the_page(
    orc: Orchestrator, hidden: dict[str, str], shown: dict[str, str]
) -> None:
    seer = orc._service.orchestrator(orc.name, viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    say(seer, "s-1", TEA, **hidden)
    run(seer, "s-1")
    say(seer, "s-1", BUILD, **shown)
    extractor = Lines()
    run(seer, "s-1", extractor=extractor)
    [page] = extractor.pages
    assert page.before == ()
    say(seer, "s-1", SLOWER, **hidden)
    run(seer, "s-1", extractor=extractor)
    assert TEA in {turn.content for turn in extractor.pages[-1].before}


def test_a_session_that_is_written_to_all_the_time_is_told(
    orc: Orchestrator, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(*_given: Any, **_more: Any) -> None:
        raise StoreChanged

    say(orc, "s-1", TEA)
    monkeypatch.setattr(consolidation, "write_page", moved)
    with service.opened(orc.name) as opened:
        report = Consolidator(opened, extractor=Lines(), now_ms=2**42).pending()
    assert (report.state, report.reason) == (JobState.DONE, "contended")
    assert (report.counts["contended"], report.counts["sessions"]) == (1, 0)


def test_what_was_confirmed_gains_its_source_and_keeps_its_confidence(orc: Orchestrator) -> None:
    fixed = orc.remember(TEA, confidence=0.6)
    orc.confirm(fixed)
    other = orc.remember(BUILD, confidence=0.6)
    say(orc, "s-1", TEA, BUILD)
    run(orc, "s-1")
    assert orc.get(fixed).confidence == 1.0
    assert orc.get(other).confidence > 0.6
    assert len(orc.trace(fixed).supports) == 1


def tell(orc: Orchestrator, session: str, text: str, role: str, told_as: str = "") -> str:
    """A turn, three days after the one before."""
    assert isinstance(orc._service.clock, FixedClock)
    orc._service.clock.advance(ms=3 * MS_PER_DAY)
    return tell_now(orc, session, text, role, told_as)


def tell_now(orc: Orchestrator, session: str, text: str, role: str, told_as: str = "") -> str:
    given = {"content": text, "session_id": session, "source_role": role}
    if told_as:
        return orc.events.publish(UserTurn(**given) if told_as == "person" else AgentTurn(**given))
    return orc.save_episode(**given)


def read(
    orc: Orchestrator, session: str, extractor: Extractor | None = None, **options: Any
) -> Any:
    with orc._service.opened(orc.name) as opened:
        read = Consolidator(opened, extractor=extractor or Lines(), **options)
        return read.session(session)


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
    tell(orc, "s-1", TEA, "user")
    read(orc, "s-1")
    before = held(orc)[TEA]
    # In other words too: a model may give them the words of what is known.
    for session, text in (("s-2", TEA), ("s-3", "In the morning it is tea for Ann, green one.")):
        tell(orc, session, text, role, told_as)
        read(orc, session, Lines(content=TEA))
    assert set(held(orc)) == {TEA}
    after, traced = held(orc)[TEA], orc.trace(before.memory_id)
    assert (after.confidence > before.confidence) is counts
    assert bool(traced.supports) is counts
    assert traced.independent_sources == (2 if counts else 1)


def test_what_an_agent_of_any_name_says_is_believed_half_and_a_tool_says_no_fact(
    orc: Orchestrator,
) -> None:
    for role in ("tool", "system", "Function"):
        tell(orc, role, BUILD, role)
        assert [each.code for each in read(orc, role).rejected] == ["fact.silent"]
    assert held(orc) == {}
    for number, (role, told_as) in enumerate((("Robin", "agent"), ("assistant", ""))):
        text = f"Cupboard {number} stands in hall {number * 7 + 1}."
        tell(orc, f"s-{number}", text, role, told_as)
        report = read(orc, f"s-{number}", Lines(confidence=0.9))
        assert report.rejected == []
        assert held(orc)[text].confidence == 0.5


class Quoting:
    """One fact on all turns of the page, quoted from the last one."""

    name = "quoting"

    def propose(self, page: TurnPage) -> PageProposal:
        evidence = tuple(turn.memory_id for turn in page.turns)
        return PageProposal((fact(page.turns[-1], evidence=evidence, content=TEA),))


@pytest.mark.parametrize(("last", "counts"), [("assistant", False), ("user", True)])
def test_only_who_is_quoted_decides(orc: Orchestrator, last: str, counts: bool) -> None:
    tell(orc, "s-1", TEA, "Mira", "person")
    read(orc, "s-1")
    before = held(orc)[TEA].confidence
    first = "user" if last == "assistant" else "assistant"
    tell(orc, "s-2", "And which tea is it that she has?", first)
    tell(orc, "s-2", "That is the green one, of a morning.", last)
    read(orc, "s-2", Quoting())
    assert (held(orc)[TEA].confidence > before) is counts


def test_one_person_cannot_pump_by_many_sessions(orc: Orchestrator) -> None:
    tell(orc, "s", TEA, "user")
    read(orc, "s")
    base = held(orc)[TEA].confidence
    for number in range(6):
        tell(orc, f"later-{number}", TEA, "user")
        read(orc, f"later-{number}")
    often = held(orc)[TEA]
    assert often.confidence == base
    assert orc.trace(often.memory_id).independent_sources == 1
    tell(orc, "mira", "Green tea Ann drinks in the morning.", "Mira", "person")
    read(orc, "mira", Lines(content=TEA))
    assert held(orc)[TEA].confidence > often.confidence
    assert orc.trace(often.memory_id).independent_sources == 2


def test_a_copied_turn_is_no_source(service: MemoryService, orc: Orchestrator) -> None:
    tell(orc, "s", TEA, "Mira", "person")
    read(orc, "s")
    before = held(orc)[TEA]
    for number in range(4):
        tell_now(orc, f"copy-{number}", TEA, f"Mira {number}", "person")
        read(orc, f"copy-{number}")
    after = held(orc)[TEA]
    assert after.confidence == before.confidence
    assert len(orc.trace(after.memory_id).supports) == 4
    assert orc.trace(after.memory_id).independent_sources == 1
