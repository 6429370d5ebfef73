"""Writing through the handle: what is stored together, what is refused, what is journalled."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from working import put

from memgraph import (
    EdgeType,
    MemoryService,
    MemoryStatus,
    MemoryType,
    Orchestrator,
    Sensitivity,
    Viewer,
)
from memgraph.clock import FixedClock
from memgraph.errors import Conflict, IllegalTransition, InvalidInput, NotFound
from memgraph.model.enums import MemoryKind
from memgraph.store import graph


def rows(service: MemoryService, name: str, statement: str, *values: Any) -> list[Any]:
    with service.opened(name) as opened, opened.database.read() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(statement, values)]


def actions(service: MemoryService, name: str = "orc-1") -> list[str]:
    return [row[0] for row in rows(service, name, "SELECT action FROM audit_log ORDER BY seq")]


def test_one_transaction_holds_the_row_and_all_that_hangs_on_it(
    orc: Orchestrator, service: MemoryService
) -> None:
    stored = orc.remember("Ada lives in Lisbon.")
    for table, column in (
        ("memories", "memory_id"),
        ("memory_status", "memory_id"),
        ("audit_log", "subject"),
    ):
        assert rows(
            service, "orc-1", f"SELECT count(*) FROM {table} WHERE {column} = ?", stored
        ) == [(1,)]
    assert rows(service, "orc-1", "SELECT state FROM memory_embeddings") == [("pending",)]
    assert rows(
        service, "orc-1", "SELECT count(*) FROM memory_fts WHERE memory_fts MATCH 'lisbon'"
    ) == [(1,)]


def test_equal_text_is_one_memory_unless_it_was_retracted(orc: Orchestrator) -> None:
    first = orc.remember("The gate closes at nine.")
    assert orc.remember("The  gate closes\nat nine.") == first
    assert orc.remember("The gate closes at nine.", type="Event") != first
    outcomes = orc.remember_many([{"content": "twin"}, {"content": "twin"}])
    assert [each.outcome for each in outcomes] == ["stored", "duplicate"]
    assert outcomes[0].memory_id == outcomes[1].memory_id
    orc.retract(first, reason="it opens at nine")
    assert orc.remember("The gate closes at nine.") != first


def test_a_turn_is_saved_in_its_place_and_embedded_later(
    orc: Orchestrator, service: MemoryService
) -> None:
    first = orc.save_episode("Ask Ada.", session_id="s", source_role="user")
    outcomes = orc.save_episodes(
        [
            {"content": "I did.", "session_id": "s", "source_role": "assistant"},
            {"content": "Who?", "session_id": "t", "source_role": "user", "event_time": 5},
        ]
    )
    # A turn that repeats another one stays apart.
    last = orc.save_episode("Ask Ada.", session_id="s", source_role="user", importance=7)
    turns = [orc.get(one) for one in (first, *(str(each.memory_id) for each in outcomes), last)]
    assert [(each.session_id, each.sequence) for each in turns] == [
        ("s", 0),
        ("s", 1),
        ("t", 0),
        ("s", 2),
    ]
    assert {(each.kind, each.type) for each in turns} == {
        (MemoryKind.EPISODE, MemoryType.OBSERVATION)
    }
    assert (turns[1].source_role, turns[2].event_time, turns[3].importance) == ("assistant", 5, 7)
    assert rows(service, "orc-1", "SELECT DISTINCT state FROM memory_embeddings") == [("pending",)]
    assert rows(service, "orc-1", "SELECT name_key FROM entities") == [("ada",)]


def test_a_turn_needs_its_session_and_its_speaker(orc: Orchestrator) -> None:
    turn = {"content": "Hi.", "session_id": "s", "source_role": "user"}
    for wrong in ({"session_id": ""}, {"source_role": None}, {"kind": "fact"}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            orc.save_episode(**(turn | wrong))  # type: ignore[arg-type]  # what a caller may pass
        [outcome] = orc.save_episodes([turn | wrong])
        assert (outcome.outcome, outcome.code) == ("rejected", InvalidInput.code)


def test_a_wrong_field_is_named_and_nothing_is_written(
    orc: Orchestrator, service: MemoryService
) -> None:
    wrong: list[tuple[str, Any]] = [
        *(("importance", 101), ("importance", -1), ("importance", "50")),
        *(("confidence", 1.01), ("confidence", float("nan"))),
        *(("type", "Nope"), ("kind", "wish"), ("sensitivity", "Secret"), ("scope", "session")),
        *(("event_time", "tomorrow"), ("event_time", 2**63), ("sequence", -1), ("unheard_of", 1)),
        *(("content", ""), ("content", " \n"), ("content", "x" * 32_001)),
        *(("content", "a\x00b"), ("content", "\ud800")),
        *(("attributes", {"a": float("inf")}), ("attributes", {"a": "x" * 20_000})),
    ]
    for field, value in wrong:
        with pytest.raises(InvalidInput, match=field):
            orc.remember(**{"content": "fine", field: value})
    assert rows(service, "orc-1", "SELECT count(*) FROM memories") == [(0,)]


def test_a_bad_item_of_many_is_rejected_alone(orc: Orchestrator) -> None:
    outcomes = orc.remember_many(
        [
            {"content": "good"},
            {"content": "bad", "importance": 500},
            {"content": "from nowhere", "derived_from": ["fact_missing"]},
            {"content": "good too", "key": "k"},
            {"content": "a key without its mark", "derived_from": ["k"]},
            ["no", "mapping"],
            {"content": "from the fourth", "derived_from": ["#k"]},
        ]
    )
    assert [each.code for each in outcomes] == [
        *(None, "input.invalid", "memory.not_found", None),
        *("memory.not_found", "input.invalid", None),
    ]
    assert [each.outcome for each in outcomes].count("rejected") == 4
    grounds = orc.trace(outcomes[6].memory_id or "").grounds
    assert [ground.memory_id for ground in grounds] == [outcomes[3].memory_id]


@pytest.mark.engines
def test_a_correction_replaces_and_keeps_what_was_said(
    orc: Orchestrator, service: MemoryService, clock: FixedClock
) -> None:
    old = orc.remember("Standup is at nine.", type="Fact", tags=["team"], importance=70)
    clock.advance(days=1)
    new = orc.correct(old, "Standup is at ten.", reason="moved")
    assert orc.get(old).status is MemoryStatus.SUPERSEDED
    assert orc.get(old).content == "Standup is at nine."
    assert (orc.get(new).tags, orc.get(new).importance) == (("team",), 70)
    history = rows(
        service,
        "orc-1",
        "SELECT status, until - since FROM memory_status WHERE memory_id = ? ORDER BY status_id",
        old,
    )
    assert history == [("active", 86_400_000), ("superseded", None)]
    assert actions(service) == ["remember", "remember", "supersede", "relate"]


def test_the_same_correction_again_is_the_first_one(
    orc: Orchestrator, service: MemoryService
) -> None:
    one = orc.remember("Standup is at nine.")
    new = orc.correct(one, "Standup is at ten.", reason="moved")
    before = actions(service)
    assert orc.correct(one, "Standup is  at ten.", reason="moved again") == new
    assert actions(service) == before
    # Another one corrects its successor.
    with pytest.raises(Conflict, match=new) as refused:
        orc.correct(one, "Standup is at noon.", reason="moved")
    assert refused.value.details["replaced_by"] == [new]
    orc.retract(new, reason="wrong")
    third = orc.correct(one, "Standup is at ten.", reason="it is")
    assert third != new
    assert [memory.memory_id for memory in orc.memories.list()] == [third]


def test_of_two_corrections_at_once_one_is_refused(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = orc.remember("Standup is at nine.")
    won: list[str] = []
    read = graph.visible_memory

    def get(*given: Any, **named: Any) -> Any:
        found = read(*given, **named)
        if not won:
            won.append("")
            # Another writer, between the look at the old memory and the write.
            won[:] = [orc.correct(one, "Standup is at ten.", reason="moved")]
        return found

    monkeypatch.setattr(graph, "visible_memory", get)
    with pytest.raises(Conflict) as refused:
        orc.correct(one, "Standup is at eleven.", reason="moved")
    assert refused.value.details["replaced_by"] == won
    assert [memory.memory_id for memory in orc.memories.list()] == won


def test_a_correction_that_cannot_be_leaves_nothing(
    orc: Orchestrator, service: MemoryService
) -> None:
    old = orc.remember("Standup is at nine.")
    with pytest.raises(Conflict, match="the new text equals the old one"):
        orc.correct(old, "Standup is  at nine.", reason="moved")
    orc.retract(old, reason="wrong")
    with pytest.raises(IllegalTransition):
        orc.correct(old, "Standup is at ten.", reason="moved")
    assert rows(service, "orc-1", "SELECT count(*) FROM memories") == [(1,)]
    assert actions(service) == ["remember", "retract"]


def test_a_reason_that_cannot_be_kept_is_bad_input(
    orc: Orchestrator, service: MemoryService
) -> None:
    one, two = orc.remember("a"), orc.remember("b")
    edge = orc.relate(one, "Contradicts", two)
    changes: list[Callable[[Any], object]] = [
        lambda reason: orc.correct(one, "c", reason=reason),
        lambda reason: orc.retract(one, reason=reason),
        lambda reason: orc.restore(one, reason=reason),
        lambda reason: orc.contradictions.resolve(edge, winner=one, reason=reason),
        lambda reason: orc.contradictions.reopen(edge, reason=reason),
    ]
    for change, reason in product(changes, ("x" * 2_001, "a\x00b", "\ud800", None)):
        with pytest.raises(InvalidInput, match="reason"):
            change(reason)
    assert actions(service) == ["remember", "remember", "relate"]


def test_an_id_or_an_actor_that_no_text_can_hold_is_bad_input(
    orc: Orchestrator, service: MemoryService
) -> None:
    for call in (
        lambda: orc.contradictions.resolve("\ud800", winner="fact_x", reason="x"),
        lambda: orc.memories.list(before="\ud800"),
        lambda: orc.memories.list(before=cast(str, object())),
        lambda: orc.memories.list(before=cast(str, 1)),
        lambda: service.orchestrator("orc-1", actor="\ud800"),
        lambda: service.orchestrator("orc-1", actor=""),
    ):
        with pytest.raises(InvalidInput):
            call()
    with pytest.raises(NotFound):
        orc.get("\ud800")


def test_an_edge_of_two_memories_is_stored_once_and_the_symmetric_ones_from_either_end(
    orc: Orchestrator,
) -> None:
    one, two = orc.remember("a"), orc.remember("b")
    edge = orc.relate(one, EdgeType.CONTRADICTS, two)
    assert orc.relate(two, "Contradicts", one) == edge
    assert orc.relate(one, "CausedBy", two) != orc.relate(two, "CausedBy", one)
    with pytest.raises(NotFound):
        orc.relate(one, "RelatedTo", "fact_missing")
    with pytest.raises(InvalidInput):
        orc.relate(one, "RelatedTo", one)
    with pytest.raises(InvalidInput, match="weight"):
        orc.relate(one, "RelatedTo", "fact_other", weight=2.0)


def test_a_partial_update_becomes_whole_and_never_the_reverse(
    orc: Orchestrator, service: MemoryService
) -> None:
    new, old = orc.remember("n"), orc.remember("o")
    edge = orc.relate(new, EdgeType.UPDATES, old, partial=True)
    assert orc.get(old).status is MemoryStatus.ACTIVE
    assert orc.relate(new, EdgeType.UPDATES, old) == edge
    assert orc.get(old).status is MemoryStatus.SUPERSEDED
    assert orc.relate(new, EdgeType.UPDATES, old, partial=True) == edge
    [found] = orc.trace(old).edges_in
    assert not found.partial
    assert actions(service)[2:] == ["relate", "supersede", "relate"]
    assert orc.verify().totals == {}


def test_no_circle_of_updates_leaves_nothing_standing(orc: Orchestrator) -> None:
    first, second, third = (orc.remember(text) for text in ("1", "2", "3"))
    # Read in the wrong order: what was replaced already may still replace.
    orc.relate(third, EdgeType.UPDATES, second)
    orc.relate(second, EdgeType.UPDATES, first)
    for older, newer in ((first, second), (first, third)):
        with pytest.raises(Conflict):
            orc.relate(older, EdgeType.UPDATES, newer)
    assert orc.get(third).status is MemoryStatus.ACTIVE


def test_what_was_replaced_comes_back_as_replaced(orc: Orchestrator) -> None:
    old = orc.remember("o")
    new = orc.correct(old, "n", reason="better")
    for change in (orc.retract, orc.restore):
        with pytest.raises(Conflict) as caught:
            change(old, reason="not this one")
        assert caught.value.details["replaced_by"] == [new]
    orc.retract(new, reason="worse after all")
    orc.retract(old, reason="to bring it back")
    orc.restore(old, reason="nothing stands against it")
    assert orc.get(old).status is MemoryStatus.ACTIVE
    assert orc.verify().totals == {}


def test_a_contradiction_is_resolved_and_taken_back(orc: Orchestrator, clock: FixedClock) -> None:
    one = put(orc, "The port is 80.", confidence=0.9)
    two = put(orc, "The port is 8080.")
    third = put(orc, "The port is closed.")
    edge = orc.relate(one, "Contradicts", two)
    with pytest.raises(Conflict, match="one of the two"):
        orc.contradictions.resolve(edge, winner=third, reason="x")
    with pytest.raises(NotFound):
        orc.contradictions.resolve(orc.relate(one, "RelatedTo", third), winner=one, reason="x")
    clock.advance(days=1)
    orc.contradictions.resolve(edge, winner=two, reason="looked at the config")
    loser, winner = orc.get(one), orc.get(two)
    assert (loser.status, loser.confidence) == (MemoryStatus.SUPERSEDED, 0.3)
    assert winner.attributes["supersedes"] == [one]
    with pytest.raises(Conflict):
        orc.contradictions.resolve(edge, winner=one, reason="again")
    before = len(orc.trace(two).journal)
    orc.contradictions.resolve(edge, winner=two, reason="a retry")
    assert len(orc.trace(two).journal) == before
    [found] = orc.contradictions.list(resolved=True).items
    assert found.edge.resolution is not None
    assert found.edge.resolution["reason"] == "looked at the config"
    orc.contradictions.reopen(edge, reason="the config was old")
    loser, winner = orc.get(one), orc.get(two)
    assert (loser.status, loser.confidence) == (MemoryStatus.ACTIVE, 0.9)
    assert "supersedes" not in winner.attributes
    with pytest.raises(Conflict):
        orc.contradictions.reopen(edge, reason="again")


def test_retract_restore_confirm(orc: Orchestrator) -> None:
    one = orc.remember("a", confidence=0.5)
    orc.retract(one, reason="no")
    orc.retract(one, reason="again")
    assert orc.trace(one).status_history[-1].reason == "no"
    with pytest.raises(Conflict):
        orc.confirm(one)
    orc.restore(one, reason="yes")
    orc.confirm(one)
    assert (orc.get(one).confidence, orc.get(one).decay_rate) == (1.0, 0.0)


@pytest.mark.engines
def test_lists_are_paged_and_filtered(orc: Orchestrator) -> None:
    orc.remember_many(
        {"content": f"n{number}", "type": "Todo" if number % 2 else "Fact", "tags": [f"t{number}"]}
        for number in range(7)
    )
    first = orc.memories.list(limit=3)
    rest = orc.memories.list(limit=10, before=first[-1].memory_id)
    assert [each.content for each in (*first, *rest)] == [f"n{n}" for n in range(6, -1, -1)]
    assert len(orc.memories.list(types=[MemoryType.TODO])) == 3
    assert [each.content for each in orc.memories.list(tags=["t4"])] == ["n4"]
    assert list(orc.memories.list(kinds=[MemoryKind.EPISODE])) == []
    with pytest.raises(InvalidInput, match="active, superseded, retracted"):
        orc.memories.list(statuses=["active') OR ('1'='1"])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="Preference"):
        orc.memories.list(types=["Nope"])  # type: ignore[list-item]


def test_a_number_outside_the_bounds_of_its_signature_is_refused(orc: Orchestrator) -> None:
    calls: list[Callable[..., object]] = [
        *(orc.memories.list, orc.entities.list, orc.receipts.list, orc.jobs.list)
    ]
    for call, limit in product(calls, (0, 1_001, 1.5, "3", float("nan"))):
        with pytest.raises(InvalidInput, match="a whole number between 1 and 1,000") as caught:
            call(limit=limit)
        assert caught.value.details["field"] == "limit"


def test_stats_count_what_is_there(orc: Orchestrator) -> None:
    one, two = orc.remember("a"), orc.remember("b")
    orc.relate(one, "RelatedTo", two)
    found = orc.maintenance.stats()
    assert found["memories"]["status"] == {"active": 2}
    assert found["edges"] == {"RelatedTo": 1}
    assert found["embeddings"] == {"pending": 2, "ready": 0, "failed": 0}
    assert found["journal_entries"] == 3
    assert found["bytes"]["memory.db"] > 0


@pytest.mark.engines
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.text(max_size=200))
def test_any_text_is_stored_as_it_is_or_refused(orc: Orchestrator, content: str) -> None:
    try:
        stored = orc.remember(content, kind="episode")
    except InvalidInput:
        assert not content.strip() or "\x00" in content
    else:
        assert orc.get(stored).content == content


def test_a_subgraph_takes_types_by_name_and_says_which_there_are(orc: Orchestrator) -> None:
    one, two = orc.remember("a"), orc.remember("b")
    orc.relate(one, "CausedBy", two)
    assert len(orc.graph.subgraph([one], edge_types=["CausedBy"]).edges) == 1
    assert len(orc.graph.subgraph([one], edge_types="Updates").edges) == 0
    with pytest.raises(InvalidInput, match="CausedBy"):
        orc.graph.subgraph([one], edge_types=["Nope"])
    with pytest.raises(InvalidInput, match="list"):
        orc.graph.subgraph(one)


def test_a_turn_is_the_same_by_its_session_its_id_its_role_and_its_text(orc: Orchestrator) -> None:
    given = {"session_id": "monday", "source_role": "user", "turn_id": "t-1"}
    first = orc.save_episode("Yes.", **given)
    assert orc.save_episode("Yes.", **given) == first
    others = [
        orc.save_episode("No.", **given),
        orc.save_episode("Yes.", **(given | {"source_role": "assistant"})),
        orc.save_episode("Yes.", **(given | {"turn_id": "t-2"})),
        orc.save_episode("Yes.", **(given | {"session_id": "tuesday"})),
    ]
    assert len({first, *others}) == 5
    orc.retract(first, reason="misheard")
    assert orc.save_episode("Yes.", **given) not in {first, *others}


def test_a_file_that_was_cut_off_can_be_handed_over_again(orc: Orchestrator) -> None:
    turns = [
        {"content": f"Line {at}.", "session_id": "s", "source_role": "user", "turn_id": f"t{at}"}
        for at in range(20)
    ]
    orc.save_episodes(turns[:13])
    outcomes = [each.outcome for each in orc.save_episodes([*turns, turns[3]])]
    assert outcomes == ["duplicate"] * 13 + ["stored"] * 7 + ["duplicate"]
    [session] = orc.sessions.list()
    assert session.turns == 20


SECRET = "The vault code is 8."


@pytest.fixture
def owner(service: MemoryService) -> Orchestrator:
    viewer = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"p"}))
    return service.orchestrator("orc-1", create=True, viewer=viewer)


@pytest.fixture
def stranger(service: MemoryService, owner: Orchestrator) -> Orchestrator:
    return service.orchestrator("orc-1")


@pytest.mark.parametrize("as_what", ["Internal", "Restricted"])
def test_a_repeated_text_is_no_duplicate_of_a_hidden_one(
    owner: Orchestrator, stranger: Orchestrator, as_what: str
) -> None:
    secret = owner.remember(SECRET, sensitivity="Restricted")
    [outcome] = stranger.remember_many([{"content": SECRET, "sensitivity": as_what}])
    assert outcome.outcome == "stored"
    assert outcome.memory_id != secret
    assert owner.remember(SECRET, sensitivity="Restricted") == secret
