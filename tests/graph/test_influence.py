"""Impact and evidence of memories, compared with the stored rows."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from filling import NOW, Filling
from graph_worlds import World, plans, reached, reading, reverse, stands_on, stored, viewers
from hypothesis import given, settings, strategies as st
from sampling import often

from memgraph.errors import NotFound
from memgraph.graph import influence as influences
from memgraph.graph.influence import MAX_DEPTH, MAX_LEFT
from memgraph.model.enums import Sensitivity
from memgraph.model.influence import ReceiptMention
from memgraph.rules.scope import Viewer, covers, viewer_fields
from memgraph.store.engine import Database

grounds, impact = reading(influences.grounds), reading(influences.impact)
RUNS = ["run-1", "run-2"]
NOBODY = Viewer(clearance=Sensitivity.PUBLIC, scopes=frozenset())

receipts = st.lists(
    st.fixed_dictionaries(
        {
            "items": st.lists(st.integers(0, 7), max_size=4, unique=True),
            "run": st.none() | st.sampled_from(RUNS),
            "at": st.integers(0, 5),
            # What it is besides: the same as one before it, shown with the last bulletin, or of a
            # new bulletin whose own receipt is kept or became too old.
            "repeats": st.booleans(),
            "beside": st.booleans(),
            "bulletin": st.none() | st.lists(st.integers(0, 7), max_size=3, unique=True),
            "kept": st.booleans(),
            "asker": st.just(NOBODY) | viewers,
        }
    ),
    max_size=6,
)


def hand_out(
    filling: Filling,
    receipt_id: str,
    ids: list[str],
    *,
    at: int = NOW,
    run: str | None = None,
    conversation: str | None = None,
    purpose: str | None = None,
    same_as: str | None = None,
    bulletin_id: str | None = None,
    viewer: Viewer = NOBODY,
) -> None:
    """Return the rows of a receipt."""
    asker = json.dumps(viewer_fields(viewer))
    with filling.database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO recalls (recall_id, created_at, query, request, workflow_run_id,"
            " conversation_id, purpose, same_as, bulletin_id, viewer)"
            " VALUES (?, ?, '', '{}', ?, ?, ?, ?, ?, ?)",
            (receipt_id, at, run, conversation, purpose, same_as, bulletin_id, asker),
        )
        for rank, one in enumerate(ids, start=1):
            connection.exec_driver_sql(
                "INSERT INTO recall_items (recall_id, rank, memory_id, score, explanation)"
                " VALUES (?, ?, ?, 0.5, '{}')",
                (receipt_id, rank, one),
            )


def issue(filling: Filling, bulletin_id: str, cited: list[str]) -> str:
    """Return the row of a bulletin."""
    with filling.database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO bulletins (bulletin_id, created_at, change_seq, view_key, viewer,"
            " sha256, memory_ids, body) VALUES (?, ?, 1, 'k', '{}', '', ?, '')",
            (bulletin_id, NOW, json.dumps(cited)),
        )
    return bulletin_id


class Handed:
    """Return the memories that each planned receipt names, in order."""

    def __init__(self, database: Database, world: World, plan: list[dict[str, Any]]) -> None:
        self.named: dict[str, list[str]] = {}
        self.runs: dict[str, str | None] = {}
        self.at: dict[str, int] = {}
        self.askers: dict[str, Viewer] = {}
        filling = Filling(database)
        ids = list(world.memories)
        last: str | None = None
        shown: tuple[str, list[str]] | None = None
        for number, each in enumerate(plan):
            receipt_id = f"rcl_{number}"
            items = list(dict.fromkeys(ids[one % len(ids)] for one in each["items"]))
            cited: list[str] = []
            purpose, bulletin_id = None, None
            if each["bulletin"] is not None:
                cited = list(dict.fromkeys(ids[one % len(ids)] for one in each["bulletin"]))
                bulletin_id = issue(filling, f"bul_{number}", cited)
                shown = (bulletin_id, cited)
                if each["kept"]:
                    purpose, items = "bulletin", cited
            elif each["beside"] and shown is not None:
                bulletin_id, cited = shown
            if bulletin_id is not None:
                self.askers[receipt_id] = each["asker"]
            repeats = last if each["repeats"] and bulletin_id is None else None
            self.named[receipt_id] = [*(self.named[repeats] if repeats else items), *cited]
            self.runs[receipt_id] = each["run"]
            self.at[receipt_id] = NOW + each["at"]
            hand_out(
                filling,
                receipt_id,
                [] if repeats else items,
                at=NOW + each["at"],
                run=each["run"],
                same_as=repeats,
                purpose=purpose,
                bulletin_id=bulletin_id,
                viewer=each["asker"],
            )
            if repeats is None and bulletin_id is None:
                last = receipt_id

    def seen(self, visible: set[str], viewer: Viewer) -> list[str]:
        """Receipts that name nothing hidden, the newest first; of bulletins those of askers who
        saw no more.
        """
        open_ones = [
            one
            for one, ids in self.named.items()
            if set(ids) <= visible and covers(viewer, self.askers.get(one, viewer))
        ]
        return sorted(open_ones, key=lambda one: (self.at[one], one), reverse=True)


@settings(max_examples=often(60))
@given(plans, receipts, viewers)
def test_impact_is_what_the_stored_rows_say_and_nothing_hidden_is_told(
    plan: Any, given_out: Any, viewer: Viewer
) -> None:
    with stored(plan) as (database, world):
        handed = Handed(database, world, given_out)
        seen = world.seen(viewer)
        start = next(iter(world.memories))
        if start not in seen:
            with pytest.raises(NotFound):
                impact(database, start, viewer=viewer)
            return
        found = impact(database, start, viewer=viewer)
        stands = reached(reverse(stands_on(world)), {start}, seen)
        assert {each.memory_id: each.distance for each in found.derived} == stands
        asked = {start, *stands}
        expected = [one for one in handed.seen(seen, viewer) if asked & set(handed.named[one])]
        assert [each.receipt_id for each in found.hand_outs] == expected
        for each in found.hand_outs:
            named = handed.named[each.receipt_id]
            assert list(each.memory_ids) == [one for one in dict.fromkeys(named) if one in asked]
        assert sum(found.purposes.values()) == len(expected)
        for run in found.runs:
            own = [one for one in expected if handed.runs[one] == run.name]
            assert run.receipts == len(own) > 0
            assert (run.first_at, run.last_at) == (
                min(handed.at[one] for one in own),
                max(handed.at[one] for one in own),
            )
        assert not world.leaks(found.model_dump_json(), viewer)
        assert not found.cut


@settings(max_examples=often(60))
@given(plans, receipts, viewers)
def test_the_grounds_of_a_run_are_what_it_was_given_and_what_that_stands_on(
    plan: Any, given_out: Any, viewer: Viewer
) -> None:
    with stored(plan) as (database, world):
        handed = Handed(database, world, given_out)
        seen = world.seen(viewer)
        expected = [one for one in handed.seen(seen, viewer) if handed.runs[one] == "run-1"]
        if not expected:
            with pytest.raises(NotFound):
                grounds(database, workflow_run_id="run-1", viewer=viewer)
            return
        found = grounds(database, workflow_run_id="run-1", viewer=viewer)
        assert [each.receipt_id for each in found.hand_outs] == expected
        given_ids = {one for receipt in expected for one in handed.named[receipt]}
        assert set(found.given) == given_ids
        distances = {each.memory_id: each.distance for each in found.links}
        assert distances == reached(stands_on(world), given_ids, seen)
        ended = {one for one, row in world.memories.items() if row["status"] != "active"}
        assert set(found.refuted) == ended & (given_ids | distances.keys())
        assert set(found.memory_by_id) == given_ids | distances.keys()
        assert {each.source_id for each in found.memories} == {
            each.source_id for each in found.sources
        }
        assert not world.leaks(found.model_dump_json(), viewer)


def test_a_memory_had_before_it_what_its_run_was_given_until_then(filling: Filling) -> None:
    known, later, ground = (filling.memory() for _ in range(3))
    filling.flush()
    source = filling.source("src_run", source_type="workflow_output", workflow_run_id="run-1")
    made = filling.memory(source_id=source, created_at=NOW + 5)
    filling.derived(made, ground)
    filling.flush()
    hand_out(filling, "rcl_1", [known], at=NOW + 4, run="run-1")
    hand_out(filling, "rcl_2", [later], at=NOW + 5, run="run-1")
    hand_out(filling, "rcl_3", [later], at=NOW + 1, run="run-2")
    found = grounds(filling, memory_id=made)
    assert [each.receipt_id for each in found.hand_outs] == ["rcl_1"]
    assert (found.given, [each.memory_id for each in found.links]) == ((known,), [ground])
    found_runs = impact(filling, known).runs
    assert [(each.name, each.left) for each in found_runs] == [("run-1", (made,))]
    reached_later = {each.name: each.left for each in impact(filling, later).runs}
    assert reached_later == {"run-1": (made,), "run-2": ()}


def test_what_a_conversation_left_is_told_without_its_turns(filling: Filling) -> None:
    known = filling.memory()
    filling.flush()
    source = filling.source("src_talk", conversation_id="talk")
    filling.memory(kind="episode", source_id=source, created_at=NOW + 2)
    facts = [
        filling.memory(source_id=source, created_at=NOW + 1 + at) for at in range(MAX_LEFT + 2)
    ]
    filling.flush()
    hand_out(filling, "rcl_1", [known], at=NOW + 2, conversation="talk")
    found = impact(filling, known)
    assert [each.left for each in found.conversations] == [tuple(facts[1 : MAX_LEFT + 1])]
    assert found.cut_reasons == ("max_left",)
    assert found.runs == ()


def test_bounds_are_told(filling: Filling) -> None:
    long = [filling.memory() for _ in range(MAX_DEPTH + 2)]
    for one, ground in pairwise(long):
        filling.derived(one, ground)
    hub = filling.memory()
    parts = [filling.memory() for _ in range(6)]
    for one in parts:
        filling.edge(one, hub, "PartOf")
    filling.flush()
    for number in range(4):
        hand_out(filling, f"rcl_{number}", [hub], at=NOW + number)
    assert grounds(filling, memory_id=long[0]).cut_reasons == ("depth",)
    assert [each.memory_id for each in impact(filling, long[-1]).derived] == long[-2:0:-1]
    found = impact(filling, hub, max_nodes=3)
    assert [each.memory_id for each in found.derived] == parts[:3]
    assert _ids(found.hand_outs) == ["rcl_3", "rcl_2", "rcl_1"]
    assert found.cut_reasons == ("max_nodes", "max_receipts")
    whole = impact(filling, hub, max_nodes=6)
    assert (len(whole.derived), whole.cut) == (6, False)


def _ids(found: tuple[ReceiptMention, ...]) -> list[str]:
    return [each.receipt_id for each in found]
