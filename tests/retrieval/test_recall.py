"""What recall finds, why, and what it does without."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import InvalidInput, ProviderUnavailable
from memgraph.ids import short_id
from memgraph.model.recall import Bundle
from memgraph.model.receipts import bundle_bytes
from memgraph.providers.fake import FakeEmbedding
from memgraph.store.sqlite import engine
from memgraph.store.sqlite.indexes import SqliteVectorIndex
from tests.console_worlds import NAME, shop

MOST_STATEMENTS = 9


def remember(orc: Orchestrator, *contents: str, **fields: Any) -> list[str]:
    found = [orc.remember(content, **fields) for content in contents]
    orc.settle()
    return found


def say(orc: Orchestrator, session: str, *turns: tuple[str, str], **fields: Any) -> list[str]:
    """A conversation: pairs of speaker and text."""
    found = [
        orc.remember(text, kind="episode", session_id=session, source_role=who, **fields)
        for who, text in turns
    ]
    orc.settle()
    return found


def codes(bundle: Bundle) -> list[str]:
    return [each.code for each in bundle.degraded]


@pytest.mark.engines
def test_words_and_meaning_find_a_memory(orc: Orchestrator) -> None:
    cat, _, _ = remember(
        orc,
        "The cat of the neighbours sleeps on our porch.",
        "Invoices are due on the last Friday of a month.",
        "The deployment runs from the main branch.",
    )
    bundle = orc.recall("Whose cat is on the porch?")
    first = bundle.items[0]
    assert first.memory.memory_id == cat
    assert {"text", "vector", "context"} <= first.legs.keys()
    assert first.modifiers.keys() >= {"importance", "recency", "confidence", "contradiction"}
    assert first.source in bundle.sources
    assert first.citation == "manual"
    assert not bundle.degraded


def test_the_same_question_gives_the_same_bytes(orc: Orchestrator) -> None:
    remember(orc, *(f"Note {number} about the harbour crane" for number in range(40)))
    bundles = [orc.recall("harbour crane") for _ in range(3)]
    assert len({bundle_bytes(bundle) for bundle in bundles}) == 1


def test_an_answer_without_the_words_is_found_beside_its_question(orc: Orchestrator) -> None:
    _, asked, answer, _ = say(
        orc,
        "s1",
        ("Ana", "Good morning!"),
        ("Ana", "Which instrument did your brother learn in Lisbon?"),
        ("Ben", "It was the accordion, he practised every evening for a year."),
        ("Ana", "Lovely."),
    )
    reports: dict[str, Any] = {"kind": "episode", "source_role": "Cid"}
    orc.remember_many(
        {"content": f"The weather report number {n} said rain.", "session_id": f"other-{n}"}
        | reports
        for n in range(60)
    )
    orc.settle()
    found = orc.recall("instrument brother learn Lisbon", top_n=3).ids
    assert {asked, answer} <= set(found)


def test_the_speaker_named_in_the_question_comes_first(orc: Orchestrator) -> None:
    hers, his = say(
        orc,
        "s1",
        ("Ana", "My favourite dish is the mushroom risotto from home."),
        ("Ben", "My favourite dish is the mushroom risotto as well."),
    )
    assert orc.recall("What is Ben's favourite dish?").ids[0] == his
    assert orc.recall("What is Ana's favourite dish?").ids[0] == hers


def test_a_named_date_finds_what_happened_then(orc: Orchestrator) -> None:
    early, late = (
        orc.remember(f"We met at the lake and swam, visit {n}.", event_time=at)
        for n, at in ((1, "2024-03-05"), (2, "2024-07-05"))
    )
    orc.settle()
    assert orc.recall("What happened at the lake in July 2024?").ids[0] == late
    assert orc.recall("What happened at the lake in March 2024?").ids[0] == early


@pytest.mark.engines
def test_cjk_words_of_two_characters_are_found(orc: Orchestrator) -> None:
    tokyo, _ = remember(orc, "彼女は東京都に住んでいます", "会議は火曜日です")
    assert orc.recall("東京").ids[0] == tokyo


@pytest.mark.engines
def test_a_replaced_memory_speaks_for_its_successor(orc: Orchestrator) -> None:
    old, *_ = remember(orc, "The standup is at nine in the morning in the blue room.")
    new = orc.correct(old, "Moved to half past ten, upstairs.", reason="new schedule")
    newest = orc.correct(new, "Now at eleven, online.", reason="again")
    orc.settle()
    bundle = orc.recall("standup morning blue room")
    assert bundle.ids == (newest,)
    assert bundle.items[0].legs["succession"] == 1
    shown = orc.recall("standup morning blue room", include_superseded=True)
    assert set(shown.ids) == {old, new, newest}
    assert {item.modifiers["status"] for item in shown.items} == {0.5, 1.0}


@pytest.mark.engines
def test_as_of_gives_back_what_held_then(orc: Orchestrator, clock: FixedClock) -> None:
    [old] = remember(orc, "The release is planned for May.")
    clock.advance(days=2)
    before = clock.now_ms()
    clock.advance(days=2)
    new = orc.correct(old, "The release is planned for June.", reason="delay")
    orc.settle()
    assert orc.recall("release planned").ids == (new,)
    then = orc.recall("release planned", as_of=before)
    assert then.ids == (old,)
    assert then.items[0].memory.status == "active"
    assert not then.edges
    assert not orc.recall("release planned", as_of=before - 10 * 86_400_000).items


def test_what_is_retracted_or_over_is_not_recalled(orc: Orchestrator, clock: FixedClock) -> None:
    kept, gone, over = remember(
        orc, "The lamp is red.", "Anna repaired a lamp.", "A lamp needs 40 watts."
    )
    orc.retract(gone, reason="wrong")
    limited = orc.remember("Ben lends us his lamp.", valid_until=clock.now_ms() + 1_000)
    clock.advance(days=1)
    found = orc.recall("lamp").ids
    assert set(found) == {kept, over}
    assert limited not in found


@pytest.mark.engines
def test_an_open_contradiction_brings_its_other_side(orc: Orchestrator) -> None:
    one, other = remember(orc, "The office key is with Dora.", "Emil keeps it in his drawer.")
    remember(orc, *(f"The office key number {n} was copied." for n in range(40)))
    edge = orc.relate(one, "Contradicts", other, reason="two keepers")
    bundle = orc.recall("Is the office key with Dora?", top_n=5)
    assert {one, other} <= set(bundle.ids)
    item = next(each for each in bundle.items if each.memory.memory_id == one)
    assert item.contradicted_by == (other,)
    assert item.modifiers["contradiction"] == 0.95
    assert edge in {each.edge_id for each in bundle.edges}
    orc.contradictions.resolve(edge, winner=one, reason="asked them")
    after = orc.recall("Is the office key with Dora?", top_n=5)
    assert other not in after.ids
    assert after.items[0].modifiers["contradiction"] == 1.0


def test_the_time_of_the_event_decides_which_side_is_the_later(orc: Orchestrator) -> None:
    [new] = remember(orc, "Dora keeps the office key.", event_time="2026-03-01")
    [old] = remember(orc, "Emil keeps the office key.", event_time="2026-02-01")
    orc.relate(old, "Contradicts", new, reason="two keepers")
    assert orc.recall("Does Emil keep the office key?", top_n=5).ids[:2] == (new, old)


def test_the_sides_of_an_open_contradiction_stand_ranks_lower(orc: Orchestrator) -> None:
    lamp, rumour, *_ = remember(
        orc,
        "Hall A has a lamp.",
        "Someone said hall A has no lamp.",
        "Hall A has a lamp on the left wall.",
        "Hall A has a lamp above the door.",
        "A lamp of hall A was bought in May.",
        "Hall B has a lamp.",
        "Hall C has a lamp and a bell.",
    )
    before = orc.recall("Hall A has a lamp", top_n=20).ids
    assert before[0] == lamp
    edge = orc.relate(rumour, "Contradicts", lamp, reason="one of them is wrong")
    bundle = orc.recall("Hall A has a lamp", top_n=20)
    assert bundle.ids.index(lamp) >= before.index(lamp) + 2
    assert bundle.ids.index(rumour) == bundle.ids.index(lamp) - 1
    assert set(bundle.ids) == set(before)
    scores = [item.score for item in bundle.items]
    assert scores == sorted(scores, reverse=True)
    # One side alone does not come first either.
    assert orc.recall("Hall A has a lamp", top_n=1).ids[0] not in (lamp, rumour)
    orc.contradictions.dismiss(edge, reason="hall A was rebuilt")
    assert orc.recall("Hall A has a lamp", top_n=20).ids[0] == lamp


def test_what_probably_changed_a_memory_takes_its_place(
    orc: Orchestrator, clock: FixedClock
) -> None:
    old, *others = remember(
        orc,
        "The choir meets on Tuesdays at nine.",
        "The choir meets in the old school.",
        "The choir has nine altos on Tuesdays.",
        *(f"The choir sang song {n} on a day of May." for n in range(60)),
    )
    clock.advance(days=1)
    [new] = remember(orc, "From now on it is the evening after that, as agreed.")
    question = "Does the choir meet on Tuesdays at nine?"
    before = orc.recall(question, top_n=5)
    assert before.ids[0] == old
    assert new not in before.ids
    edge = orc.relate(new, "Updates", old, weight=0.85, reason="probably changes: From now on")
    bundle = orc.recall(question, top_n=5)
    assert bundle.ids[:2] == (new, old)
    later, earlier = bundle.items[:2]
    assert later.score > earlier.score
    assert later.mark.startswith(f"probably changes {short_id(old)} (")
    assert earlier.mark.startswith(f"probably changed by {short_id(new)} (")
    assert [(m.kind, m.memory_id, m.weight, m.edge_id) for m in earlier.marks] == [
        ("changed_by", new, 0.85, edge)
    ]
    assert [(m.kind, m.memory_id, m.reason) for m in later.marks] == [
        ("changes", old, "probably changes: From now on")
    ]
    assert earlier.memory.status == later.memory.status == "active"
    assert orc.recall(question, top_n=1).ids == (new,)
    assert set(others) & set(bundle.ids)


def test_of_a_marked_pair_the_earlier_stands_right_behind_and_changes_are_followed(
    orc: Orchestrator, clock: FixedClock
) -> None:
    first, *_ = remember(
        orc, "The rent is 780 pounds.", *(f"Rent of flat {n} in pounds." for n in range(6))
    )
    clock.advance(days=1)
    [second] = remember(orc, "I had to raise it to 810.")
    clock.advance(days=1)
    [third] = remember(orc, "Back down, 800 is what we shook hands on.")
    orc.relate(second, "Updates", first, weight=0.9)
    orc.relate(third, "Updates", second, weight=0.9)
    assert orc.recall("How much is the rent in pounds?", top_n=5).ids[:3] == (third, second, first)
    # What was found by itself and has no place among the best takes none away.
    asked = orc.recall("Back down to 800, hands shook on it", top_n=1)
    assert asked.ids == (third,)


def test_what_stands_on_a_replaced_ground_is_lowered(orc: Orchestrator) -> None:
    [ground] = remember(orc, "The budget is 900.")
    derived = orc.remember("We can afford the large tent.", derived_from=(ground,))
    caused = orc.remember("The large tent was ordered.")
    orc.relate(caused, "CausedBy", ground)
    remember(orc, "The large tent is green.")
    orc.correct(ground, "The budget is 300.", reason="cut")
    factors = {
        item.memory.memory_id: item.modifiers["stale_basis"]
        for item in orc.recall("large tent").items
    }
    assert factors[derived] == factors[caused] == 0.95
    assert set(factors.values()) == {0.95, 1.0}


@pytest.mark.engines
def test_what_text_and_vectors_agree_on_is_third_be_it_last_in_context(orc: Orchestrator) -> None:
    told = " ".join(["we", "saw", "it", "stand", "beside", "the", "water"] * 4)
    turns = (("Ann", f"The heron came again, {told} {n}.") for n in range(40))
    say(orc, "pond", *turns, event_time="2023-05-10")
    [asked] = say(orc, "other", ("Ben", "Heron?"), event_time="2019-01-01")
    third = orc.recall("heron in May 2023", top_n=5).items[2]
    assert third.memory.memory_id == asked
    assert third.legs["text"] == third.legs["vector"] == 1
    assert third.legs["context"] > 35
    assert third.modifiers["agreement"] > 1.0


@pytest.mark.engines
def test_edges_bring_what_is_joined(orc: Orchestrator) -> None:
    decision, ground = remember(
        orc, "We chose the ferry for the trip to the island.", "Flights were sold out in April."
    )
    orc.relate(decision, "CausedBy", ground)
    remember(orc, *(f"Unrelated remark number {n}." for n in range(80)))
    bundle = orc.recall("ferry island trip", top_n=5)
    joined = next(each for each in bundle.items if each.memory.memory_id == ground)
    assert joined.legs["graph"] == 1
    assert [(edge.from_id, edge.to_id) for edge in bundle.edges] == [(decision, ground)]


@pytest.mark.engines
def test_filters_leave_what_they_name(tmp_path: Path, storage_url: str) -> None:
    config = {"memory.ingest.allowed_roots": ["/files"], "memory.storage.url": storage_url}
    with MemoryService(tmp_path, config=config, environ={}, background=False) as service:
        orc = service.orchestrator("o", create=True)
        a = orc.remember(
            "A pelican, the first one.",
            event_time="2024-01-01",
            source={"source_type": "ingest_file", "source_path": "/files/a.md"},
        )
        b = orc.remember(
            "A pelican, the second one.",
            type="Decision",
            tags=("x", "y", "z"),
            event_time="2024-03-01",
            source={"source_type": "ingest_file", "source_path": "/files/sub/b.md"},
        )
        c = orc.remember(
            "A pelican, the third one.",
            kind="episode",
            session_id="s",
            event_time="2024-03-02",
            source={"source_type": "channel_transcript", "conversation_id": "talk"},
        )
        orc.settle()
        filters: list[tuple[dict[str, Any], set[str]]] = [
            ({"types": ["Decision"]}, {b}),
            ({"kinds": ["episode"]}, {c}),
            ({"tags": ["x", "y"]}, {b}),
            ({"session_id": "s"}, {c}),
            ({"exclude_session_id": "s"}, {a, b}),
            ({"source_path": "/files/a.md"}, {a}),
            ({"source_path": "/files/"}, {a, b}),
            ({"source_types": ["channel_transcript"]}, {c}),
            ({"conversation_id": "talk"}, {c}),
            ({"event_after": "2024-02-01"}, {b, c}),
            ({"event_before": "2024-02-01"}, {a}),
            ({"types": ["Decision"], "kinds": ["episode"]}, set()),
        ]
        for fields, expected in filters:
            for query in ("pelican", ""):
                assert set(orc.recall(query, **fields).ids) == expected, (fields, query)


def test_a_token_budget_and_a_number_are_kept_and_it_says_which_cut(orc: Orchestrator) -> None:
    remember(orc, *(f"Beacon {n} " + "shines over the water " * n for n in range(1, 12)))
    free = orc.recall("beacon")
    budget = free.token_cost // 2
    bundle = orc.recall("beacon", token_budget=budget)
    assert 0 < bundle.token_cost <= budget
    assert bundle.cut_reasons == ("token_budget",)
    assert not free.cut
    seven = orc.recall("beacon", top_n=7)
    assert (len(seven.items), seven.cut_reasons) == (7, ("top_n",))


def test_a_query_that_cannot_be_asked(orc: Orchestrator) -> None:
    for query in ("", "  \n", "\ud800", "a\x00b"):
        with pytest.raises(InvalidInput):
            orc.recall(query)


@pytest.mark.engines
def test_any_other_query_is_answered(orc: Orchestrator) -> None:
    remember(orc, "A word about unicorns.")
    for query in ("???", '"* NEAR(', "summary : x", "🦄", "word " * 100_000, "ß" * 999):
        assert len(orc.recall(query).items) <= 1


@pytest.mark.engines
def test_filters_alone_give_the_most_important_first(orc: Orchestrator) -> None:
    low, high, mid = (orc.remember(f"Todo {n}", type="Todo", importance=n) for n in (10, 90, 50))
    assert orc.recall(types=["Todo"]).ids == (high, mid, low)


def test_without_the_provider_words_are_searched(
    service: MemoryService, tmp_path: Any, clock: FixedClock
) -> None:
    provider = FakeEmbedding(32)
    with MemoryService(
        tmp_path / "fake", clock=clock, embedding=provider, environ={}, background=False
    ) as made:
        memory = made.orchestrator("orc", create=True)
        found = memory.remember("The kettle is broken.")
        assert codes(memory.recall("kettle")) == ["vector.pending"]
        memory.settle()
        provider.fail_with = ProviderUnavailable("down")
        bundle = memory.recall("kettle")
        assert codes(bundle) == ["vector.provider_failed"]
        assert bundle.ids == (found,)
        provider.fail_with = None
        assert codes(memory.recall("kettle")) == []


def test_a_leg_that_takes_too_long_is_given_up(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(orc, *(f"Gull number {n}" for n in range(50)))
    ticks = itertools.count(step=3_600)
    monkeypatch.setattr(engine, "_STEPS_BETWEEN_LOOKS", 1)
    monkeypatch.setattr(engine.time, "monotonic", lambda: next(ticks))
    bundle = orc.recall("gull")
    assert {"text.deadline", "vector.deadline"} <= set(codes(bundle))
    monkeypatch.undo()
    assert len(orc.recall("gull").items) == 20


def test_the_first_recall_waits_for_the_vectors(
    tmp_path: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, Any] = {
        "clock": clock,
        "embedding": FakeEmbedding(32),
        "environ": {},
        "background": False,
    }
    with MemoryService(tmp_path, **made) as first:
        remember(first.orchestrator("orc", create=True), "A gull stole the bread.")
    elapsed_s = 0.0
    read = SqliteVectorIndex._read

    def slowly(index: SqliteVectorIndex, start: int, end: int) -> Any:
        nonlocal elapsed_s
        elapsed_s += 3.0
        return read(index, start, end)

    monkeypatch.setattr(SqliteVectorIndex, "_read", slowly)
    monkeypatch.setattr(engine, "_STEPS_BETWEEN_LOOKS", 1)
    monkeypatch.setattr(engine.time, "monotonic", lambda: elapsed_s)
    with MemoryService(tmp_path, **made) as second:
        bundle = second.orchestrator("orc").recall("gull")
    assert (elapsed_s, codes(bundle)) == (3.0, [])


def test_a_hub_of_edges_stays_bounded(orc: Orchestrator) -> None:
    [hub] = remember(orc, "The hub of all the spokes.")
    outcomes = orc.remember_many([{"content": f"Spoke {n}."} for n in range(230)])
    for outcome in outcomes:
        orc.relate(hub, "RelatedTo", outcome.memory_id or "")
    bundle = orc.recall("hub", top_n=20)
    assert bundle.ids[0] == hub
    assert len(bundle.items) <= 20
    assert len(bundle.edges) <= 200


def test_a_small_store_answers_what_fits_and_nothing_else(orc: Orchestrator) -> None:
    opens, _, _ = remember(
        orc,
        "The oven shop opens at nine.",
        "The oven in the oven shop is heated with beech wood.",
        "Anna plays the cello on Saturdays.",
    )
    found = orc.recall("Tell when the oven shop opens.", min_relevance=0.25).ids
    assert found[0] == opens
    assert len(found) == 2
    assert orc.recall("Who won the football match?", min_relevance=0.25).ids == ()


def test_a_recall_takes_few_statements(service: MemoryService, orc: Orchestrator) -> None:
    say(
        orc,
        "s1",
        ("Anna", "Did you feed the cat of Melanie Potter?"),
        ("Boris", "Yes, Melanie Potter called, the cat is fine."),
    )
    remember(orc, "Melanie Potter keeps a cat and two canaries.")
    orc.recall("Who keeps a cat?")
    statements: list[str] = []
    with service.opened("orc-1") as opened, opened.database.read() as connection:
        driver: Any = connection.driver
        driver.set_trace_callback(statements.append)
    bundle = orc.recall("What does Melanie Potter keep?")
    driver.set_trace_callback(None)
    assert {"text", "vector", "entity", "context"} <= bundle.items[0].legs.keys()
    # What an extension asks for inside a statement is traced as a comment.
    asked = [each for each in statements if not each.startswith(("--", "BEGIN", "COMMIT"))]
    assert 0 < len(asked) <= MOST_STATEMENTS, "\n".join(asked)


def test_what_replaced_a_memory_of_something_else_stays_behind_the_answer(tmp_path: Path) -> None:
    """In the shop's world a goal about posters was replaced; the closing time is disputed."""
    shop(tmp_path)
    with MemoryService(tmp_path, environ={}, background=False) as service:
        orc = service.orchestrator(NAME)
        orc.settle()
        first = orc.recall("When does the shop close?").items[0]
    assert first.memory.content.startswith("The shop closes at")
