"""What a page of turns does to known memories, when a language model reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_models import NAME, PageModel, add, settings

from ingest.pipeline import IngestPipeline
from memgraph import MemoryService, Orchestrator
from memgraph.clock import MS_PER_DAY, FixedClock, parse_time
from memgraph.ids import CountingIds
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType
from memgraph.operations.life.consolidation import SessionReport

pytestmark = pytest.mark.usefixtures("asks_once")

BERLIN = "Nora lives in Berlin, at Park Row 7."
HAMBURG = "Nora lives in Hamburg."


@pytest.fixture
def orc(
    tmp_path: Path, clock: FixedClock, model: PageModel, storage_url: str
) -> Iterator[Orchestrator]:
    with MemoryService(
        tmp_path / "root",
        config=settings(model.server, **{"memory.storage.url": storage_url}),
        clock=clock,
        ids=CountingIds(),
        environ={"KEY": "k"},
        background=False,
    ) as service:
        yield service.orchestrator("ann", create=True)


def say(orc: Orchestrator, session: str, *lines: tuple[str, str], **fields: Any) -> list[str]:
    return [
        orc.save_episode(text, session_id=session, source_role=role, **fields)
        for role, text in lines
    ]


def read(orc: Orchestrator, session: str) -> SessionReport:
    [report] = orc.jobs.consolidate(session)
    return report


def facts(orc: Orchestrator) -> dict[str, str]:
    found = orc.memories.list(kinds=[MemoryKind.FACT], limit=100)
    return {each.content: each.memory_id for each in found}


def learned(orc: Orchestrator, model: PageModel, text: str, role: str = "user") -> str:
    """Let the model add a fact from a session of its own; return its id."""
    say(orc, "first", (role, text))
    model.then({"add": [add(text, [1], text)]})
    report = read(orc, "first")
    assert report.rejected == []
    orc._service.clock.advance(ms=2 * MS_PER_DAY)  # type: ignore[attr-defined]
    return facts(orc)[text]


def behind(orc: Orchestrator, memory_id: str) -> list[str]:
    return [each.memory_id for each in orc.trace(memory_id).grounds]


def change(text: str, quote: str, **more: Any) -> dict[str, Any]:
    return {"change": [{"known": "k1", "text": text, "turns": [1], "quote": quote} | more]}


def test_a_change_is_in_force_with_the_model_as_its_actor_and_marks_the_turns_behind(
    orc: Orchestrator, model: PageModel
) -> None:
    old = learned(orc, model, BERLIN)
    [turn] = say(orc, "second", ("user", "We moved to Hamburg in May!"))
    model.then(change(HAMBURG, "moved to Hamburg", happened="2026-05"))
    report = read(orc, "second")
    assert report.replaced == [old]
    assert f"known, said 2026-01-01 by user:\nk1 {BERLIN}" in model.pages[-1]
    new = facts(orc)[HAMBURG]
    before = orc.get(old)
    assert before.status is MemoryStatus.SUPERSEDED
    assert before.valid_until is not None
    [edge] = [each for each in orc.trace(old).edges_in if each.to_id == old]
    assert (edge.edge_type, edge.from_id, edge.weight) == (EdgeType.UPDATES, new, 1.0)
    assert edge.reason == f"by {NAME}: user said: “moved to Hamburg”"
    assert f"user:{NAME}" in {each.actor for each in orc.history.get(old).periods}
    [evidence] = behind(orc, old)
    [mark] = orc.trace(evidence).edges_in
    assert (mark.edge_type, mark.from_id, mark.weight) == (EdgeType.UPDATES, turn, 0.99)
    assert orc.get(evidence).status is MemoryStatus.ACTIVE
    assert orc.contradictions.list().items == ()
    assert orc.verify().ok
    # It can be undone, and then the turns are to be decided again.
    orc.retract(new, reason="misread")
    orc.restore(old, reason="misread")
    assert orc.get(old).status is MemoryStatus.ACTIVE
    assert orc.get(old).valid_until is None
    [case] = orc.contradictions.list().items
    assert case.edge.edge_id == mark.edge_id


@pytest.mark.parametrize(
    ("stated", "is_now"),
    [
        ({"type": "?", "importance": "high"}, (MemoryType.TODO, 75)),
        ({"type": "Event", "importance": 25}, (MemoryType.EVENT, 25)),
    ],
)
def test_a_changed_memory_has_the_type_and_importance_that_it_had_unless_others_are_stated(
    orc: Orchestrator, model: PageModel, stated: dict[str, Any], is_now: tuple[MemoryType, int]
) -> None:
    plan, done = "Nora wants to see the dentist.", "Nora saw the dentist."
    say(orc, "first", ("user", plan))
    model.then({"add": [add(plan, [1], plan, type="Todo", importance=75)]})
    read(orc, "first")
    say(orc, "second", ("user", done))
    model.then(change(done, done, **stated))
    read(orc, "second")
    assert f"k1 (Todo) {plan}" in model.pages[-1]
    changed = orc.get(facts(orc)[done])
    assert (changed.type, changed.importance) == is_now


@pytest.mark.engines
@pytest.mark.parametrize("known", [1, "[k1]", "nora has a subscription to the opera."])
def test_an_end_needs_no_successor_and_can_be_undone(
    orc: Orchestrator, model: PageModel, known: Any
) -> None:
    old = learned(orc, model, "Nora has a subscription to the opera.")
    [turn] = say(orc, "second", ("user", "I cancelled the opera, for good."))
    said = orc.get(turn).created_at
    orc._service.clock.advance(days=3)  # type: ignore[attr-defined]
    model.then({"end": [{"known": known, "turns": [1], "quote": "I cancelled the opera"}]})
    assert read(orc, "second").replaced == [old]
    assert "does not hold any more: “Nora has a subscription" in model.checks[-1]
    ended = orc.get(old)
    assert (ended.status, ended.valid_until) == (MemoryStatus.SUPERSEDED, said)
    [evidence] = behind(orc, old)
    assert [each.from_id for each in orc.trace(evidence).edges_in] == [turn]
    assert orc.verify().ok
    orc.restore(old, reason="she kept it")
    kept = orc.get(old)
    assert (kept.status, kept.valid_until) == (MemoryStatus.ACTIVE, None)
    assert orc.verify().ok


def test_facts_of_a_talk_are_dated_when_it_was_retracted_and_is_dropped_with_its_date(
    orc: Orchestrator, model: PageModel
) -> None:
    text = "Nora has a subscription to the opera."

    def fact_of(head: str) -> tuple[str, int | None]:
        talk = f"{head}User: {text}\nAssistant: I see.\n"
        (orc.paths.ingest / "talk.txt").write_text(talk)
        IngestPipeline(orc).run()
        model.then({"add": [add(text, [1], text)]})
        orc.jobs.consolidate()
        [fact] = orc.memories.list(kinds=[MemoryKind.FACT])
        return fact.memory_id, fact.event_time

    undated, time = fact_of("")
    assert time is None
    orc.sources.retract(path="talk.txt", reason="no date", dry_run=False)
    assert orc.get(undated).status is MemoryStatus.RETRACTED
    assert fact_of("8 May 2023\n")[1] == parse_time("2023-05-08")


@pytest.mark.engines
def test_a_turn_of_a_file_without_a_date_ends_a_memory_at_an_unknown_time(
    orc: Orchestrator, model: PageModel
) -> None:
    text, cancelled = "Nora has a subscription to the opera.", "Nora cancelled the opera."
    talk = f"# Session 1\n\nAnn: {text}\nBob: I see.\n\n# Session 2\n\nAnn: {cancelled}\nBob: Oh.\n"
    (orc.paths.ingest / "talk.txt").write_text(talk)
    IngestPipeline(orc).run()
    orc._service.clock.advance(days=9)  # type: ignore[attr-defined]
    model.then({"add": [add(text, [1], text)]})
    read(orc, "talk#1")
    [old] = facts(orc).values()
    model.then({"end": [{"known": "k1", "turns": [1], "quote": cancelled}]})
    assert read(orc, "talk#2").replaced == [old]
    assert orc.get(old).status is MemoryStatus.SUPERSEDED
    assert orc.get(old).valid_until is None


@pytest.mark.parametrize(
    ("first", "second", "in_force"),
    [
        ("Nora", "user", True),
        ("Carl", "Nora", True),
        ("Nora", "Carl", False),
        ("user", "assistant", False),
        ("assistant", "assistant", True),
    ],
)
def test_who_may_change_what_is_known(
    orc: Orchestrator, model: PageModel, first: str, second: str, in_force: bool
) -> None:
    old = learned(orc, model, BERLIN, role=first)
    say(orc, "second", (second, "It is Hamburg where Nora lives now."))
    model.then(change(HAMBURG, "It is Hamburg"))
    report = read(orc, "second")
    new = facts(orc)[HAMBURG]
    [edge] = [each for each in orc.trace(new).edges_out if each.to_id == old]
    status = MemoryStatus.SUPERSEDED if in_force else MemoryStatus.ACTIVE
    assert orc.get(old).status is status
    assert edge.edge_type is (EdgeType.UPDATES if in_force else EdgeType.CONTRADICTS)
    assert [each.code for each in report.rejected] == ([] if in_force else ["change.contradicted"])
    assert len(orc.contradictions.list(changes=False).items) == (not in_force) * 2


@pytest.mark.parametrize("how", ["confirmed", "entity"])
def test_what_is_protected_is_contradicted_and_never_replaced(
    orc: Orchestrator, model: PageModel, how: str
) -> None:
    old = learned(orc, model, BERLIN)
    if how == "confirmed":
        orc.confirm(old)
    else:
        orc.entities.protect("Berlin", reason="checked")
    say(orc, "second", ("user", "We moved to Hamburg."))
    model.then(change(HAMBURG, "moved to Hamburg"))
    assert read(orc, "second").replaced == []
    assert orc.get(old).status is MemoryStatus.ACTIVE
    pairs = {
        (each.first.memory_id, each.second.memory_id) for each in orc.contradictions.list().items
    }
    assert (old, facts(orc)[HAMBURG]) in pairs or (facts(orc)[HAMBURG], old) in pairs


def test_what_was_said_later_holds_whenever_it_happened(
    orc: Orchestrator, model: PageModel
) -> None:
    say(orc, "first", ("user", "I was in Berlin on 10 May."), event_time="2025-05-12")
    model.then({"add": [add("The user was in Berlin.", [1], "in Berlin", happened="2025-05-10")]})
    read(orc, "first")
    berlin = facts(orc)["The user was in Berlin."]
    say(orc, "second", ("user", "No, it was Bonn, on the 3rd."), event_time="2025-05-14")
    bonn = "The user was in Bonn."
    model.then(change(bonn, "it was Bonn", happened="2025-05-03"))
    assert read(orc, "second").replaced == [berlin]
    assert orc.get(facts(orc)[bonn]).status is MemoryStatus.ACTIVE
    # A session that is read late, though it was said before, replaces nothing.
    say(orc, "third", ("user", "I was in Prague, I think."), event_time="2025-05-01")
    prague = "The user was in Prague."
    model.then(change(prague, "I was in Prague"))
    report = read(orc, "third")
    assert [each.code for each in report.rejected] == ["change.said_before"]
    assert orc.get(facts(orc)[bonn]).status is MemoryStatus.ACTIVE
    [late] = [each for each in orc.memories.list(statuses=["superseded"]) if each.content == prague]
    assert [each.from_id for each in orc.trace(late.memory_id).edges_in] == [facts(orc)[bonn]]


def test_a_memory_that_is_said_again_gains_evidence(orc: Orchestrator, model: PageModel) -> None:
    old = learned(orc, model, BERLIN)
    turns = say(orc, "second", ("user", "As you know, I live in Park Row."))
    model.then({"same": [{"known": "k1", "turns": [1]}]})
    [fact] = read(orc, "second").facts
    assert (fact.outcome, fact.memory_id, fact.evidence) == ("strengthened", old, tuple(turns))
    # The known memory is shown to the check, and cited by nothing.
    assert model.checks[-1].splitlines()[1:-1] == [
        f"1 [2026-01-01] user: {BERLIN}",
        "2 [2026-01-03 Sat 00:00] user: As you know, I live in Park Row.",
        f"statement 1 (cites 2): This is said again: “{BERLIN}”",
    ]
    assert {*turns} < {*behind(orc, old)}


def test_what_a_person_said_is_kept_and_what_is_planned_until_its_day(
    orc: Orchestrator, model: PageModel, clock: FixedClock
) -> None:
    cat = learned(orc, model, "Nora has a cat called Tinto.")
    said = say(orc, "second", ("assistant", "I found a trip in August, it is booked."))
    trip, other = "A trip is booked for August 2027.", "The assistant found a trip."
    later = add(trip, [1], "it is booked", happened="2027-08")
    model.then({"add": [later, add(other, [1], "I found a trip")]})
    read(orc, "second")
    ids = facts(orc)
    # Whoever wrote it down.
    noted = orc.remember(
        "Nora pays 720 pounds.",
        source={"captured_by": "extractor"},
        decay_rate=0.1,
        derived_from=behind(orc, cat),
    )
    assert (orc.get(cat).decay_rate, orc.get(ids[trip]).decay_rate > 0) == (0.0, True)
    clock.advance(ms=400 * MS_PER_DAY)
    orc.jobs.run("decay")
    assert {each: orc.get(each).status for each in (cat, noted, ids[trip], ids[other])} == {
        cat: "active",
        noted: "active",
        ids[trip]: "active",
        ids[other]: "retracted",
    }
    clock.advance(ms=400 * MS_PER_DAY)
    orc.jobs.run("decay")
    assert orc.get(ids[trip]).status is MemoryStatus.RETRACTED
    assert orc.get(said[0]).status is MemoryStatus.ACTIVE


def test_a_speaker_in_an_ingested_file_counts_as_that_file(
    orc: Orchestrator, model: PageModel
) -> None:
    old = learned(orc, model, BERLIN)
    source = {"captured_by": "extractor", "content_sha256": "0" * 64}
    source["source_type"] = "channel_transcript"
    say(orc, "second", ("user", "We moved to Hamburg."), source=source)
    model.then(change(HAMBURG, "moved to Hamburg"))
    report = read(orc, "second")
    assert [each.code for each in report.rejected] == ["change.contradicted"]
    assert orc.get(old).status is MemoryStatus.ACTIVE


def test_an_introduction_links_the_users_turns_to_the_name(
    orc: Orchestrator, model: PageModel
) -> None:
    early, intro, reply = say(
        orc,
        "s",
        ("user", "Good morning."),
        ("user", "Hi, I'm Vitaly. A user of tea."),
        ("assistant", "Hello!"),
    )
    entities = [{"name": "Vitaly", "type": "person", "same_as": "user"}]
    text = "The user's name is Vitaly."
    model.then({"add": [add(text, [2], "I'm Vitaly", type="Identity", entities=entities)]})
    read(orc, "s")
    fact = facts(orc)[text]

    def about_vitaly() -> set[str]:
        return {each.memory_id for each in orc.entities.get("Vitaly").memories}

    assert about_vitaly() == {early, intro, fact}
    assert orc.get(intro).attributes["speaker_name"] == "Vitaly"
    [later] = say(orc, "s", ("user", "I play the oboe on Sundays."))
    model.then({"add": [add("The user plays the oboe.", [1], "I play the oboe")]})
    read(orc, "s")
    everything = {early, intro, fact, later, facts(orc)["The user plays the oboe."]}
    assert about_vitaly() == everything
    orc.remember("Another user clicked.")
    orc.maintenance.rebuild(["entities"])
    assert about_vitaly() == everything
    assert "speaker_name" not in orc.get(reply).attributes
    assert orc.verify().ok


def test_my_boss_is_a_name_once_it_was_said_who_that_is(
    orc: Orchestrator, model: PageModel
) -> None:
    [turn] = say(orc, "s", ("user", "My boss is Dana Whitfield."))
    entities = [{"name": "Dana Whitfield", "type": "person", "same_as": "my boss"}]
    text = "Dana Whitfield is the user's boss."
    model.then({"add": [add(text, [1], "My boss is Dana Whitfield", entities=entities)]})
    read(orc, "s")
    [lunch] = say(orc, "t", ("user", "I had lunch with my boss."))
    boss = orc.entities.get("my boss")
    assert (boss.canonical_name, boss.type) == ("Dana Whitfield", "person")
    assert {each.memory_id for each in boss.memories} == {turn, facts(orc)[text], lunch}
    # Nothing is enriched again.
    assert all("enriched_at" in orc.get(each).attributes for each in (turn, facts(orc)[text]))
    stamps = orc.remember("Dana Whitfield collects stamps.")
    asked = orc.recall("What does my boss collect?").items
    assert "entity" in {each.memory.memory_id: each.legs for each in asked}[stamps]
    orc.retract(stamps, reason="sold")
    left = orc.entities.remove_alias("Dana Whitfield", "my boss", reason="she left")
    assert left.mention_count == 2
    assert lunch not in {each.memory_id for each in orc.entities.get("Dana Whitfield").memories}


def test_a_page_makes_one_person_of_who_speaks_and_a_full_name(
    orc: Orchestrator, model: PageModel
) -> None:
    [before] = say(orc, "r", ("Vitaly", "I signed the lease."))
    [turn] = say(orc, "s", ("user", "Vitaly Petrov, that is our Vitaly, lives in Kyiv."))
    assert orc.entities.get("Vitaly").canonical_name == "Vitaly"
    entities = [{"name": "Vitaly Petrov", "type": "person", "same_as": "Vitaly"}]
    text = "Vitaly Petrov lives in Kyiv."
    model.then({"add": [add(text, [1], "lives in Kyiv", entities=entities)]})
    read(orc, "s")
    both = orc.entities.get("Vitaly")
    assert both.canonical_name == "Vitaly Petrov"
    assert {each.memory_id for each in both.memories} == {before, turn, facts(orc)[text]}
    orc.entities.remove_alias("Vitaly Petrov", "Vitaly", reason="his uncle")
    assert before in {each.memory_id for each in orc.entities.get("Vitaly").memories}
    assert orc.verify().ok


def test_a_page_says_which_of_two_persons_a_last_name_means(
    orc: Orchestrator, model: PageModel
) -> None:
    for name in ("Vitaly Petrov", "Olga Petrov"):
        orc.remember(f"{name} lives in Kyiv.")
    [turn] = say(orc, "s", ("user", "Mr. Petrov wants to sell his boat."))
    assert orc.entities.get("Petrov").mention_count == 1
    entities = [{"name": "Vitaly Petrov", "type": "person", "same_as": "Mr. Petrov"}]
    text = "Vitaly Petrov wants to sell his boat."
    model.then({"add": [add(text, [1], "sell his boat", entities=entities)]})
    read(orc, "s")

    def about(name: str) -> set[str]:
        return {each.memory_id for each in orc.entities.get(name).memories}

    assert {turn, facts(orc)[text]} < about("Vitaly Petrov")
    assert turn not in about("Olga Petrov")
    assert "Petrov" not in {each.canonical_name for each in orc.entities.list()}
    orc.maintenance.rebuild(["entities"])
    assert turn in about("Vitaly Petrov")
    assert orc.verify().ok


def test_of_a_statement_that_is_said_in_part_that_part_is_kept(
    orc: Orchestrator, model: PageModel
) -> None:
    say(orc, "first", ("user", "We moved to Hamburg."))
    whole, part = "Nora moved to Hamburg in May 2024 for Ida.", "Nora moved to Hamburg."
    person = {"type": "person", "same_as": ""}
    named = [{"name": "Nora", **person}, {"name": "Ida", **person}]
    model.then({"add": [add(whole, [1], "moved to Hamburg", happened="2024-05", entities=named)]})
    model.says = lambda text: f"partly: {part}" if text == whole else "no"
    assert read(orc, "first").rejected == []
    [fact] = orc.memories.list(kinds=[MemoryKind.FACT])
    # Its date may be what was not said, so that of the turn stands.
    assert (fact.content, fact.event_time) == (part, parse_time("2026-01-01"))
    assert "happened" not in fact.attributes
    assert "Ida" not in [each.canonical_name for each in orc.entities.list()]


@pytest.mark.parametrize(
    ("whole", "part", "kept"),
    [
        (
            "Nora moved to Hamburg in May 2024, and the flat that she found there is a large one.",
            "Ben owes Ann 5000 EUR and the admin password may be shared.",
            False,
        ),
        ("Nora moved to Hamburg.", "Nora moved to Hamburg and wants a dog.", False),
        ("Nora moved there in May 2024.", "Nora moved to HAMBURG.", True),
        (
            "ノラは2024年にHamburgに引っ越して犬を飼った。",
            "ノラは2024年にHamburgに引っ越した。",
            True,
        ),
        (
            "ノラは2024年にHamburgに引っ越して犬を飼った。",
            "ノラは2025年にHamburgに引っ越した。",
            False,
        ),
    ],
)
def test_a_part_names_nothing_that_was_neither_stated_nor_said(
    orc: Orchestrator, model: PageModel, whole: str, part: str, kept: bool
) -> None:
    say(orc, "first", ("user", "We moved to Hamburg."))
    model.then({"add": [add(whole, [1], "moved to Hamburg")]})
    model.says = lambda _statement: f"partly: {part}"
    rejected = [each.code for each in read(orc, "first").rejected]
    assert (list(facts(orc)), rejected) == (([part], []) if kept else ([], ["page.said_partly"]))


@pytest.mark.parametrize(
    ("happened", "shown"),
    [("2024", "2024"), ("2024-05", "May 2024"), ("2024-05-17", "Fri 2024-05-17")],
)
def test_a_date_is_shown_as_exactly_as_it_was_said(
    orc: Orchestrator, model: PageModel, happened: str, shown: str
) -> None:
    say(orc, "first", ("user", "We moved to Hamburg."))
    model.then({"add": [add(HAMBURG, [1], "moved to Hamburg", happened=happened, type="Decision")]})
    read(orc, "first")
    assert f"] {shown}, Decision: {HAMBURG}" in orc.context("Where does Nora live?").text
    assert f"] {shown}, Decision: {HAMBURG}" in orc.bulletin().bulletin.text
    say(orc, "second", ("user", "Hamburg is lovely."))
    read(orc, "second")
    assert f"k1 (Decision) {HAMBURG} (about {happened})" in model.pages[-1]


def test_the_order_of_words_keeps_two_facts_apart(orc: Orchestrator, model: PageModel) -> None:
    lent, borrowed = "Nora lent Ida 50 euros.", "Ida lent Nora 50 euros."
    learned(orc, model, lent)
    say(orc, "second", ("user", borrowed))
    model.then({"add": [add(borrowed, [1], borrowed)]})
    read(orc, "second")
    assert set(facts(orc)) == {lent, borrowed}


def test_known_memories_that_a_text_uses_are_evidence_for_it(
    orc: Orchestrator, model: PageModel
) -> None:
    learned(orc, model, "Nora's operation is on 20 May.")
    said = "She gets a purple splint after it."
    say(orc, "second", ("user", said))
    text = "Nora gets a purple splint after the operation on 20 May."
    model.then({"add": [add(text, [1], said, uses=["k1", "k9", None])]})
    assert read(orc, "second").rejected == []
    [asked] = model.checks[-1:]
    assert "1 [2026-01-01] user: Nora's operation is on 20 May." in asked
    assert f"statement 1 (cites 1, 2): {text}" in asked


def test_a_changed_identity_is_a_fact_whatever_type_a_model_states(
    orc: Orchestrator, model: PageModel
) -> None:
    who = orc.remember("The user is Ana.", kind=MemoryKind.FACT, type=MemoryType.IDENTITY)
    say(orc, "second", ("user", "Call me root, the admin."))
    now = "The user is called root."
    model.then(change(now, "Call me root", type="Identity"))
    read(orc, "second")
    assert f"(Identity) {orc.get(who).content}" in model.pages[-1]
    assert orc.get(facts(orc)[now]).type is MemoryType.FACT
