"""What a receipt keeps: who asked, what was left out; who may look it up, and how long."""

from __future__ import annotations

from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from working import put

from memgraph import ContextAssembler, MemoryService, Orchestrator, Scope, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.errors import InvalidInput, NotFound
from memgraph.model.recall import RecallRequest
from memgraph.model.receipts import Receipt, ReceiptList
from memgraph.operations.read import receipt_lookup as reading_receipts
from memgraph.rules.scope import ScopeFacts, covers, viewer_fields, viewer_of, visible
from memgraph.store import receipts as receipts_rows
from memgraph.store.receipts import NewReceipt

DAY = 86_400_000
ATLAS = Viewer(project_ids=frozenset({"atlas"}))
ALL = Viewer(
    clearance=Sensitivity.RESTRICTED,
    project_ids=frozenset({"atlas", "zephyr"}),
    session_ids=frozenset({"t1"}),
)

ids = st.frozensets(st.sampled_from(["a", "b", "c"]))
viewers = st.builds(
    Viewer,
    clearance=st.sampled_from(Sensitivity),
    project_ids=ids,
    session_ids=ids,
    scopes=st.frozensets(st.sampled_from(Scope)),
    agent_id=st.sampled_from([None, "ada", "ben"]),
)


@given(viewers)
def test_a_viewer_is_kept_whole(viewer: Viewer) -> None:
    assert viewer_of(viewer_fields(viewer)) == viewer
    assert covers(viewer, viewer)


@given(viewers, viewers)
def test_who_covers_another_sees_all_that_this_one_sees(one: Viewer, other: Viewer) -> None:
    every = [
        ScopeFacts(scope.value, scope_id, sensitivity.value, agent_id)
        for scope in Scope
        for scope_id in ("a", "b", "c")
        for sensitivity in Sensitivity
        for agent_id in (None, "ada", "ben")
    ]
    seen, seen_by_other = (
        {facts for facts in every if visible(viewer, facts).allowed} for viewer in (one, other)
    )
    assert not covers(one, other) or seen_by_other <= seen


def test_a_receipt_tells_who_asked_what_and_of_which_state_and_what_was_given_and_why(
    service: MemoryService,
) -> None:
    owner = service.orchestrator("o", create=True, viewer=ATLAS, actor="ada")
    owner.remember_many({"content": f"Note {number} about the harbour."} for number in range(3))
    bundle = owner.recall("harbour", tags=[], top_n=2)
    found = owner.receipts.get(bundle.receipt_id)
    assert (found.purpose, found.actor, found.asked["top_n"]) == ("recall", "ada", 2)
    assert found.query_sha256 == sha256(b"harbour").hexdigest()
    assert found.viewer is not None
    assert found.viewer["project_ids"] == ["atlas"]
    assert found.change_seq == owner.maintenance.stats()["journal_entries"]
    assert tuple(item.memory_id for item in found.items) == bundle.ids
    given = [(one.score, dict(one.legs)) for one in bundle.items]
    assert [(item.score, dict(item.legs)) for item in found.items] == given
    block = owner.context("What is noted about the harbour?")
    told = owner.receipts.get(block.receipt_id)
    assert {item.memory_id for item in told.items} == {*block.memory_ids}
    assert told.asked["purpose"] == "get_context"


def test_what_was_left_out_is_counted_for_who_sees_it(
    service: MemoryService, clock: FixedClock
) -> None:
    host = service.orchestrator("o", create=True, viewer=ALL)
    for number in range(5):
        put(host, f"The harbour has gate {number}.")
    put(host, "The harbour of Atlas is deep.", scope=Scope.PROJECT, scope_id="atlas")
    put(host, "The harbour's code is 1234.", sensitivity=Sensitivity.RESTRICTED)
    put(host, "The market is far.", scope=Scope.PROJECT, scope_id="atlas")
    asker = service.orchestrator("o")
    receipt_id = asker.recall("harbour", top_n=2).receipt_id
    # What is stored after the answer was not left out.
    clock.advance(ms=1_000)
    put(host, "The harbour's second code is 5678.", sensitivity=Sensitivity.RESTRICTED)

    def left_out(viewer: Viewer) -> Any:
        return service.orchestrator("o", viewer=viewer).receipts.get(receipt_id).left_out

    numbers = {"top_n": 3, "budget": 0, "status": 0}
    assert left_out(ALL) == {**numbers, "scope": 1, "clearance": 1}
    assert left_out(ATLAS) == {**numbers, "scope": 1, "clearance": 0}
    # Who asked is not told of what they might not see.
    assert left_out(Viewer()) == {**numbers, "scope": 0, "clearance": 0}
    # Nor is who sees less told of what they saw beside what they were given.
    wider = service.orchestrator("o", viewer=ATLAS)
    receipt_id = wider.recall("gate", top_n=2).receipt_id
    assert left_out(ATLAS) is not None
    assert left_out(Viewer()) is None


def test_bulletins_that_were_not_looked_at_are_told(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = service.orchestrator("o", create=True, viewer=ATLAS)
    for text in ("The goal is to ship.", "The goal is to ship in June."):
        owner.remember(text, type="Goal", scope=Scope.PROJECT, scope_id="atlas")
        owner.bulletin()
    assert len(owner.receipts.bulletins().bulletins) == 2
    assert not owner.receipts.bulletins().cut
    monkeypatch.setattr(reading_receipts, "MAX_BULLETINS_LOOKED_AT", 1)
    assert (found := service.orchestrator("o").receipts.bulletins()).cut
    assert found.bulletins == ()


def test_tokens_and_replaced_memories_are_left_out_by_name(orc: Orchestrator) -> None:
    first = put(orc, "The harbour closes at nine in the evening.")
    put(orc, "The harbour opens at six in the morning.")
    orc.correct(first, "The harbour closes at ten in the evening.", reason="it was told")
    bundle = orc.recall("harbour", token_budget=12)
    found = orc.receipts.get(bundle.receipt_id).left_out
    assert found is not None
    assert found["budget"] == 2 - len(bundle.ids) > 0
    assert found["status"] == 1


def test_a_bulletin_is_hidden_from_who_saw_less_than_it_was_made_for(
    service: MemoryService, clock: FixedClock
) -> None:
    """It says that a ground fell, and cites only what stands on it."""
    owner = service.orchestrator("o", create=True, viewer=ATLAS)
    ground = owner.remember("The pier holds.", scope="project", scope_id="atlas")
    held = owner.remember("Ships may land.", derived_from=[ground])
    clock.advance(ms=DAY)
    owner.retract(ground, reason="it was looked at")
    issued = owner.bulletin()
    assert "evidence withdrawn 2026-01-02: " in issued.bulletin.text
    assert issued.bulletin.memory_ids == (held,)
    [listed] = owner.receipts.bulletins().bulletins
    assert issued.receipt_id is not None
    # A receipt of a turn that was given it, too.
    receipts = [issued.receipt_id, _turn_with(owner, issued.receipt_id)]
    impact = {each.receipt_id for each in owner.graph.impact(held).hand_outs}
    assert impact >= {*receipts}
    other = service.orchestrator("o")
    assert other.get(held).memory_id == held
    assert other.receipts.bulletins().bulletins == ()
    assert other.receipts.list().receipts == ()
    assert other.graph.impact(held).hand_outs == ()
    with pytest.raises(NotFound):
        other.receipts.bulletin(listed.bulletin_id)
    for one in receipts:
        assert owner.receipts.get(one).bulletin_id == listed.bulletin_id
        with pytest.raises(NotFound):
            other.receipts.get(one)
    # Who sees more sees it as it was.
    more = service.orchestrator("o", viewer=ALL)
    assert more.receipts.bulletin(listed.bulletin_id).body == issued.bulletin.text
    assert more.receipts.bulletins().bulletins == (listed,)


def _turn_with(orc: Orchestrator, bulletin_receipt_id: str) -> str:
    """A receipt of a turn that was given a bulletin."""
    given = Receipt(
        receipt_id=f"{bulletin_receipt_id}X",
        at=0,
        query="",
        asked={"purpose": "on_step"},
        items=(),
        viewer=viewer_fields(orc.viewer),
    )
    with orc._service.opened(orc.name) as opened:
        opened.receipts.add(NewReceipt(given, beside=bulletin_receipt_id))
        opened.receipts.flush()
    return given.receipt_id


@pytest.mark.engines
def test_a_bulletin_is_kept_once_and_every_hand_out_of_it_has_a_receipt(
    orc: Orchestrator, clock: FixedClock
) -> None:
    told = put(orc, "The harbour closes at nine.")
    issued = []
    for _ in range(3):
        clock.advance(ms=DAY)
        issued.append(orc.bulletin())
    other = put(orc, "The harbour opens at six.")
    clock.advance(ms=DAY)
    issued.append(orc.bulletin())
    receipts = [orc.receipts.get(each.receipt_id or "") for each in issued]
    first = receipts[0]
    assert [each.same_as for each in receipts] == [None, first.receipt_id, first.receipt_id, None]
    assert len({each.bulletin_id for each in receipts}) == 2
    assert [item.memory_id for item in receipts[2].items] == [told]
    assert {item.memory_id for item in receipts[3].items} == {told, other}
    newest, oldest = orc.receipts.bulletins().bulletins
    assert (newest.receipts, oldest.receipts) == (1, 3)
    kept = orc.receipts.bulletin(oldest.bulletin_id)
    assert kept.body == issued[0].bulletin.text
    assert kept.sha256 == sha256(kept.body.encode()).hexdigest() == first.sha256
    assert kept.memory_ids == (told,)
    # Handing out a bulletin is no access.
    assert orc.get(told).access_count == 0
    assert orc.receipts.bulletins(before=newest.bulletin_id).bulletins == (oldest,)
    assert orc.receipts.bulletins(limit=1).cut
    with pytest.raises(NotFound):
        orc.receipts.bulletin("bul_none")
    for limit in (0, 1_001):
        with pytest.raises(InvalidInput):
            orc.receipts.bulletins(limit=limit)


def test_a_page_of_receipts_goes_on_where_one_was_that_was_removed(
    service: MemoryService, clock: FixedClock
) -> None:
    orc = service.orchestrator("o", create=True)
    put(orc, "The harbour closes at nine.")
    made = []
    for _ in range(5):
        clock.advance(ms=DAY)
        made.append(orc.recall("harbour").receipt_id)
    last = orc.receipts.list(limit=2).receipts[-1].receipt_id
    assert last == made[3]
    with service.opened("o") as opened, opened.database.write() as connection:
        for table in ("recall_items", "recalls"):
            connection.exec_driver_sql(f"DELETE FROM {table} WHERE recall_id = ?", (last,))
    rest = orc.receipts.list(limit=2, before=last)
    assert ([each.receipt_id for each in rest.receipts], rest.cut) == (made[2:0:-1], True)
    orc.bulletin()
    rest = orc.receipts.list(purpose="recall", limit=2, before=made[1])
    assert ([each.receipt_id for each in rest.receipts], rest.cut) == ([made[0]], False)


def kept_service(root: Path, clock: FixedClock, **variables: str) -> MemoryService:
    environ = {f"MEMGRAPH_MEMORY__RECEIPTS__{name}": one for name, one in variables.items()}
    return MemoryService(root, clock=clock, environ=environ, background=False)


def upkeep(service: MemoryService) -> None:
    with service.opened("o") as opened:
        opened.receipts.flush()
        opened.upkeep._removes_at = 0
        opened.upkeep.run()


def receipt_ids(service: MemoryService) -> list[str]:
    with service.opened("o") as opened, opened.database.read() as connection:
        rows = connection.exec_driver_sql("SELECT recall_id FROM recalls ORDER BY recall_id")
        found = [row[0] for row in rows]
        dangling = connection.exec_driver_sql(
            "SELECT count(*) FROM recalls r WHERE same_as IS NOT NULL AND NOT EXISTS"
            " (SELECT 1 FROM recalls o WHERE o.recall_id = r.same_as)"
        ).scalar_one()
        orphans = connection.exec_driver_sql(
            "SELECT count(*) FROM recall_items WHERE recall_id NOT IN"
            " (SELECT recall_id FROM recalls)"
        ).scalar_one()
    assert (dangling, orphans) == (0, 0)
    return found


def test_old_receipts_go_in_steps(
    tmp_path: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memgraph.service.open_orchestrator.RECEIPTS_AT_ONCE", 2)
    with kept_service(tmp_path, clock, KEEP_DAYS="1") as service:
        orc = service.orchestrator("o", create=True)
        put(orc, "The harbour closes at nine.")
        for _ in range(5):
            orc.recall("harbour")
        clock.advance(ms=2 * DAY)
        last = orc.recall("harbour").receipt_id
        upkeep(service)
        assert receipt_ids(service) == [last]


def test_what_a_kept_one_repeats_is_kept(
    tmp_path: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memgraph.service.open_orchestrator.KEEP_RECEIPTS", 2)
    with kept_service(tmp_path, clock) as service:
        orc = service.orchestrator("o", create=True)
        told = put(orc, "The harbour closes at nine.")
        made = []
        for _ in range(5):
            clock.advance(ms=1)
            made.append(orc.bulletin().receipt_id)
        upkeep(service)
        assert receipt_ids(service) == [made[0], *made[-2:]]
        assert [item.memory_id for item in orc.receipts.get(made[-1] or "").items] == [told]
        # Once none repeats it any more it goes, and the bulletin with the last of its receipts.
        for _ in range(2):
            clock.advance(ms=1)
            made.append(orc.recall("harbour").receipt_id)
        upkeep(service)
        assert receipt_ids(service) == made[-2:]
        assert orc.receipts.bulletins().bulletins == ()


def test_what_was_read_is_not_looked_at_beyond_a_bound(
    orc: Orchestrator, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts_rows, "MOST_HIDDEN", 2)
    host = service.orchestrator("orc-1", viewer=ALL)
    for number in range(4):
        put(host, f"The harbour's code is {number}.", sensitivity=Sensitivity.RESTRICTED)
    receipt_id = orc.recall("harbour").receipt_id
    found = host.receipts.get(receipt_id).left_out
    assert found is not None
    assert found["clearance"] == 2


def test_a_recalls_receipt_says_for_whom_it_was(orc: Orchestrator) -> None:
    put(orc, "The harbour closes at nine.")
    plain = orc.recall("harbour")
    bundle = orc.recall(
        "harbour", for_conversation_id="talk", for_workflow_run_id="run-7", for_step_id="s1"
    )
    assert bundle.ids == plain.ids
    found = orc.receipts.get(bundle.receipt_id)
    assert (found.conversation_id, found.workflow_run_id, found.step_id) == ("talk", "run-7", "s1")
    listed = orc.receipts.list(workflow_run_id="run-7").receipts
    assert [each.receipt_id for each in listed] == [bundle.receipt_id]
    # Of whose memories are asked for it says nothing of whom they are for.
    filtered = orc.recall("harbour", conversation_id="talk")
    assert orc.receipts.get(filtered.receipt_id).conversation_id is None


def test_what_is_no_id_is_told(orc: Orchestrator) -> None:
    for no_id in (None, 7, "\ud800"):
        with pytest.raises(InvalidInput):
            orc.receipts.get(no_id)  # type: ignore[arg-type]  # what a caller may pass
    for no_task in (7, "\ud800"):
        with pytest.raises(InvalidInput):
            orc.receipts.list(task_id=no_task)  # type: ignore[arg-type]


def test_receipts_are_listed_newest_first_and_for_whom(service: MemoryService) -> None:
    orc = service.orchestrator("o", create=True)
    assert orc.receipts.list() == ReceiptList((), cut=False)
    told = put(orc, "The harbour closes at nine.")
    assembler = ContextAssembler(service, "o")
    places = [("t1", "r1", "c1"), ("t1", "r2", "c1"), ("t2", "r1", "c2")]
    ids = [
        assembler.build_context(task, workflow_run_id=run, conversation_id=talk).receipt_id
        for task, run, talk in places
    ]
    recalled = orc.recall("harbour").receipt_id

    def listed(**fields: Any) -> list[str]:
        return [each.receipt_id for each in orc.receipts.list(**fields).receipts]

    assert listed() == [recalled, *ids[::-1]]
    assert listed(task_id="t1") == [ids[1], ids[0]]
    assert listed(task_id="t1", workflow_run_id="r1") == [ids[0]]
    assert listed(conversation_id="c2") == [ids[2]]
    assert listed(conversation_id="c3") == []
    newest = orc.receipts.list(limit=1)
    assert (newest.receipts[0], newest.cut) == (orc.receipts.get(recalled), True)
    assert [each.memory_id for each in newest.receipts[0].items] == [told]
    assert orc.receipts.list(limit=4).cut is False


def test_a_list_holds_what_the_viewer_may_see_whole(service: MemoryService) -> None:
    owner = service.orchestrator("o", create=True, viewer=ATLAS)
    atlas = owner.remember("Atlas ships in June.", scope=Scope.PROJECT, scope_id="atlas")
    hidden = owner.recall("June").receipt_id
    with service.opened("o") as opened:
        shown = {"bulletin": {"change_seq": 1, "memory_ids": [atlas]}, "purpose": "on_message"}
        opened.receipts.add(NewReceipt(Receipt("rcl_0", 1, "", shown, (), counts=False)))
    owner.remember("The harbour opens in June.")
    mixed = owner.recall("June").receipt_id
    anyone = service.orchestrator("o")
    open_ = anyone.recall("June").receipt_id
    assert [each.receipt_id for each in anyone.receipts.list().receipts] == [open_]
    assert {each.receipt_id for each in owner.receipts.list().receipts} == {
        *(open_, mixed, hidden, "rcl_0")
    }
    # A page of one that is hidden does not end the list.
    assert [each.receipt_id for each in anyone.receipts.list(limit=1).receipts] == [open_]
    # A hidden one and none sound the same, and say what to do.
    told = []
    for each in (hidden, "rcl_0", "rcl_none"):
        with pytest.raises(NotFound, match="a task or project") as caught:
            anyone.receipts.get(each)
        told.append(caught.value.message.replace(each, ""))
    assert len(set(told)) == 1


def test_a_receipt_without_memories_is_its_places(service: MemoryService) -> None:
    service.orchestrator("o", create=True)
    anyone, of_task = Viewer(), Viewer(session_ids=frozenset({"t1"}))
    ben, ben_alone = Viewer(agent_id="ben"), Viewer(agent_id="ben", shared=False)
    asked_and_seen: list[tuple[dict[str, Any], Viewer, bool]] = [
        *(({}, anyone, True), ({}, ben, True), ({}, ben_alone, False)),
        *(({"task_id": "t1"}, anyone, False), ({"task_id": "t1"}, of_task, True)),
        *(({"project_id": "atlas"}, anyone, False), ({"project_id": "atlas"}, ATLAS, True)),
        ({"project_ids": ["atlas", "zephyr"]}, ATLAS, False),
        ({"project_ids": ["atlas"]}, ATLAS, True),
        ({"session_scope_ids": ["t1"]}, ATLAS, False),
        *(({"agent_id": "ada"}, anyone, True), ({"agent_id": "ada"}, ben, False)),
        ({"agent_id": "ben"}, ben_alone, True),
    ]
    for number, (asked, viewer, seen) in enumerate(asked_and_seen):
        name = f"rcl_{number}"
        with service.opened("o") as opened:
            opened.receipts.add(NewReceipt(Receipt(name, 1, "what nobody knows", asked, ())))
        receipts = service.orchestrator("o", viewer=viewer).receipts
        listed = {each.receipt_id for each in receipts.list().receipts}
        assert (name in listed) is seen, (asked, viewer)
        # What is not listed is not to be had by its id either.
        with nullcontext() if seen else pytest.raises(NotFound):
            receipts.get(name)


def test_a_receipt_names_no_place_that_its_reader_was_not_granted(service: MemoryService) -> None:
    both = Viewer(project_ids=frozenset({"atlas", "zephyr"}), session_ids=frozenset({"t1"}))
    owner = service.orchestrator("o", create=True, viewer=both)
    owner.remember("The harbour closes at nine.")
    places = {"project_ids": ("atlas", "zephyr"), "session_scope_ids": ("t1",)}
    receipt_id = owner.recall("harbour", **places).receipt_id
    assert owner.receipts.get(receipt_id).asked["project_ids"] == ["atlas", "zephyr"]
    told = service.orchestrator("o", viewer=ATLAS).receipts.get(receipt_id)
    assert told.viewer is not None
    assert told.asked["project_ids"] == told.viewer["project_ids"] == ["atlas"]
    assert told.asked["session_scope_ids"] == told.viewer["session_ids"] == []


def test_only_so_many_receipts_are_looked_at(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_receipts, "MAX_RECEIPTS_LOOKED_AT", 2)
    put(orc, "The harbour closes at nine.")
    ids = [orc.recall("harbour").receipt_id for _ in range(3)]
    found = orc.receipts.list()
    assert [each.receipt_id for each in found.receipts] == [ids[2], ids[1]]
    assert found.cut


def test_what_was_brought_in_beside_another_says_so(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    said = put(orc, "The harbour ferry leaves at nine.")
    other = put(orc, "The harbour ferry leaves at ten.")
    bundle = orc.recall("harbour ferry", top_n=2)
    items = [
        item.model_copy(update={"brought_by": said if item.memory.memory_id == other else None})
        for item in bundle.items
    ]
    given = bundle.model_copy(update={"items": tuple(items), "receipt_id": "rcl_beside"})
    with service.opened("orc-1") as opened:
        opened.receipts.add(NewReceipt(Receipt.of(RecallRequest(query="harbour ferry"), given)))
    told = {item.memory_id: item.reasons for item in orc.receipts.get("rcl_beside").items}
    assert told == {said: (), other: (f"beside:{said}",)}
