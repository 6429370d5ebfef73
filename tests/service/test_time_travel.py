"""The memory as it was: whatever happens later, an earlier time answers as it did then."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest
from hypothesis import example, given, settings, strategies as st
from sampling import WHOLE
from working import put, working

from memgraph.clock import MS_PER_DAY, FixedClock, iso
from memgraph.errors import Conflict, NotFound
from memgraph.ids import short_id
from memgraph.model.enums import JobName, MemoryKind, MemoryType, SourceType
from memgraph.model.values import Edge, Source
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.cli.formats import edge_line

NAMES = ("Ada", "Bea")
TALKS = ("monday", "tuesday")
TYPES = (
    MemoryType.FACT,
    MemoryType.PREFERENCE,
    MemoryType.GOAL,
    MemoryType.TODO,
    MemoryType.DECISION,
)

pytestmark = pytest.mark.engines


class Seen(NamedTuple):
    """What is known of one moment at any later one."""

    at: int
    statuses: dict[str, tuple[str, int | None]]
    edges: set[tuple[object, ...]]
    pairs: dict[bool, list[tuple[object, ...]]]
    grounds: dict[str, set[str]]

    def without(self, erased: set[str]) -> Self:
        """What is to be seen of it once some memories were erased."""
        return self._replace(
            statuses={one: each for one, each in self.statuses.items() if one not in erased},
            edges={each for each in self.edges if erased.isdisjoint(each)},
            pairs={
                one: [each for each in pairs if erased.isdisjoint(each)]
                for one, pairs in self.pairs.items()
            },
            grounds={one: g - erased for one, g in self.grounds.items() if one not in erased},
        )


def parts_of(edge: Edge) -> tuple[object, ...]:
    """An edge, with which a set can be made."""
    return (edge.from_id, edge.to_id, edge.model_dump_json())


def seen(orc: Orchestrator, at: int, *, as_of: int | None = None) -> Seen:
    """All of it, now or as of a time."""
    memories = orc.memories.list(statuses=(), limit=1_000, as_of=as_of)
    ids = [each.memory_id for each in memories]
    graph = orc.graph.subgraph(ids, max_nodes=1_000, as_of=as_of) if ids else None
    return Seen(
        at,
        {each.memory_id: (each.status.value, each.valid_until) for each in memories},
        {parts_of(each) for each in (graph.edges if graph else ())},
        {
            resolved: [
                (*parts_of(pair.edge), pair.state, pair.moot)
                for pair in orc.contradictions.list(resolved=resolved, limit=500, as_of=as_of).items
            ]
            for resolved in (False, True)
        },
        {one: {link.memory_id for link in orc.trace(one, as_of=as_of).grounds} for one in ids},
    )


class Living:
    """An orchestrator to which things happen."""

    def __init__(self, orc: Orchestrator, clock: FixedClock) -> None:
        self._orc = orc
        self._clock = clock
        self._ids: list[str] = []
        self.erased: set[str] = set()

    def happen(self, what: str, first: int, second: int) -> None:
        """One thing; what the rules forbid does not happen."""
        with suppress(Conflict, NotFound):
            self._do(what, first, second)

    def _do(self, what: str, first: int, second: int) -> None:
        orc = self._orc
        if what == "remember" or len(self._ids) < 2:
            self._remember(first, second)
            return
        one, other = (self._ids[each % len(self._ids)] for each in (first, second))
        if what == "correct":
            self._ids.append(orc.correct(one, f"item {len(self._ids)} as corrected", reason="new"))
        elif what == "confirm":
            orc.confirm(one)
        elif what == "retract":
            orc.retract(one, reason="wrong")
        elif what == "restore":
            orc.restore(one, reason="right after all")
        elif what == "erase":
            self.erased |= set(
                orc.erasure.erase(memory_id=one, reason="asked for", dry_run=False).memory_ids
            )
        elif what == "poison":
            orc.sources.retract(conversation_id=TALKS[first % 2], reason="poisoned", dry_run=False)
        elif what == "merge":
            orc.entities.merge("Ada", "Bea", reason="one person")
        elif what == "decay":
            orc.jobs.run(JobName.DECAY)
        elif what == "recall":
            orc.recall("item", top_n=2)
            orc.receipts.list()
        elif one == other:
            return
        elif what == "contradict":
            orc.relate(one, "Contradicts", other, reason="both cannot be")
        elif what == "update":
            orc.relate(one, "Updates", other, partial=first % 2 == 0, reason=f"{first}")
        elif what == "mark":
            kind = "Updates" if first % 2 else "Contradicts"
            orc.relate(one, kind, other, weight=0.8, reason="probably")
        else:
            self._decide(what, first)

    def _remember(self, first: int, second: int) -> None:
        ends = None if first % 3 else self._clock.now_ms() + (second % 5 + 1) * MS_PER_DAY
        self._ids.append(
            self._orc.remember(
                f"item {len(self._ids)} of {NAMES[first % 2]} says {second}",
                kind=MemoryKind.FACT,
                type=TYPES[first % len(TYPES)],
                importance=second % 101,
                confidence=(first % 10 + 1) / 10,
                valid_until=ends,
                derived_from=self._ids[-1:] if second % 2 else [],
                source=Source(
                    source_type=SourceType.CHANNEL_TRANSCRIPT, conversation_id=TALKS[second % 2]
                ),
            )
        )

    def _decide(self, what: str, first: int) -> None:
        page = self._orc.contradictions.list(resolved=what == "reopen", limit=500).items
        if not page:
            return
        edge = page[first % len(page)].edge
        if what == "resolve":
            self._orc.contradictions.resolve(edge.edge_id, winner=edge.from_id, reason="newer")
        elif what == "accept":
            self._orc.contradictions.accept(edge.edge_id, reason="seen")
        elif what == "dismiss":
            self._orc.contradictions.dismiss(edge.edge_id, reason="no contradiction")
        else:
            self._orc.contradictions.reopen(edge.edge_id, reason="too early")


WORDS = (
    *("remember", "remember", "correct", "confirm", "retract", "restore"),
    *("contradict", "contradict", "update", "resolve", "resolve", "dismiss"),
    *("mark", "accept", "reopen"),
    *("erase", "poison", "merge", "decay", "recall"),
)
CONTRADICTING = [("remember", 0, 0), ("remember", 0, 0), ("contradict", 0, 1)]
EVENTS = st.tuples(st.sampled_from(WORDS), st.integers(0, 30), st.integers(0, 30))


@given(st.lists(EVENTS, min_size=4, max_size=10), st.integers(1, 3 * MS_PER_DAY))
@example([*CONTRADICTING, ("confirm", 0, 0), ("erase", 0, 0)], MS_PER_DAY)
@example(
    [
        *(("remember", 0, 0), ("remember", 0, 0), ("mark", 1, 0), ("dismiss", 0, 0)),
        *(("reopen", 0, 0), ("dismiss", 0, 0), ("update", 1, 0), ("retract", 1, 0)),
        *(("restore", 0, 0), ("restore", 1, 0)),
    ],
    1,
)
@example([("remember", 0, 0), ("remember", 0, 0), ("mark", 0, 1), ("contradict", 0, 1)], 1)
@settings(max_examples=6 if WHOLE else 2, deadline=None)
def test_an_earlier_time_has_its_memories_statuses_and_edges(
    events: list[tuple[str, int, int]], pause: int
) -> None:
    clock = FixedClock()
    with tempfile.TemporaryDirectory() as folder, working(Path(folder), clock=clock) as service:
        orc = service.orchestrator("orc", create=True)
        living = Living(orc, clock)
        moments = [seen(orc, clock.now_ms())]
        for each in events:
            clock.advance(ms=pause)
            living.happen(*each)
            moments.append(seen(orc, clock.now_ms()))
        clock.advance(days=30)
        for moment in moments:
            again = seen(orc, moment.at, as_of=moment.at)
            assert again.without(living.erased) == moment.without(living.erased)


def test_an_earlier_time_shows_the_status_of_then_and_the_values_of_today(
    orc: Orchestrator, clock: FixedClock
) -> None:
    kept = orc.remember("The lighthouse keeper sleeps at noon.", type="Preference", confidence=0.5)
    before = clock.now_ms()
    clock.advance(days=1)
    orc.confirm(kept)
    orc.recall("lighthouse keeper")
    orc.receipts.list()
    clock.advance(days=1)
    orc.retract(kept, reason="a mistake")
    then = orc.get(kept, as_of=before)
    assert (then.status.value, then.confidence, then.last_accessed_at) == ("active", 1.0, None)
    assert then.updated_at == then.created_at
    assert orc.recall("lighthouse keeper", as_of=before).ids == (kept,)
    assert orc.bulletin(as_of=before).bulletin.memory_ids == (kept,)
    assert orc.recall("lighthouse keeper").ids == ()


def test_a_mark_that_was_put_in_force_later_was_a_mark(
    orc: Orchestrator, clock: FixedClock
) -> None:
    old, new = (put(orc, f"The ferry leaves from pier {pier}.") for pier in ("two", "five"))
    edge = orc.relate(new, "Updates", old, weight=0.8, reason="a later sign")
    open_case = orc.contradictions.get(edge)
    before = clock.now_ms()
    clock.advance(days=1)
    orc.relate(new, "Updates", old, reason="the timetable")
    assert orc.contradictions.list().items == ()
    assert orc.contradictions.list(resolved=True, as_of=before).items == ()
    [then] = orc.contradictions.list(as_of=before).items
    assert then.edge == open_case.edge
    assert orc.contradictions.get(edge, as_of=before).edge == open_case.edge
    recalled = orc.recall("ferry pier", as_of=before)
    assert {mark.weight for item in recalled.items for mark in item.marks} == {0.8}
    assert {mark.reason for item in recalled.items for mark in item.marks} == {"a later sign"}
    assert "replaced by" not in recalled.model_dump_json()
    assert [each.edge_id for each in orc.trace(old, as_of=before).probable_changes] == [edge]
    assert orc.trace(old, as_of=before).replaced_by == ()
    [now] = orc.contradictions.list(resolved=True).items
    assert orc.contradictions.get(edge).edge == now.edge
    assert orc.history.get(old).periods[-1].reason == f"replaced by {new}: the timetable"
    [replaced] = orc.history.diff(before, clock.now_ms()).replaced
    assert replaced.reason == f"replaced by {new}: the timetable"
    assert orc.trace(old).replaced_by[0].memory_id == new
    assert orc.verify().ok


def answers(orc: Orchestrator, edge: str, as_of: int | None = None) -> dict[str, Any]:
    """What is answered about a pair, now or as of a time, without what is always of today."""
    of_today = {"attributes", "updated_at", "access_count", "last_accessed_at"}
    case, pages = orc.contradictions.get(edge, as_of=as_of), {}
    for resolved in (False, True):
        page = orc.contradictions.list(resolved=resolved, as_of=as_of).items
        pages[resolved] = [(each.edge, each.state, each.moot, each.open_days) for each in page]
    ends = case.edge.from_id, case.edge.to_id
    traces = [orc.trace(one, as_of=as_of) for one in ends]
    recalled = orc.recall("ferry pier", include_superseded=True, as_of=as_of)
    return {
        "case": (case.edge, case.state, case.moot, case.journal),
        "pages": pages,
        "memories": [orc.get(one, as_of=as_of).model_dump(exclude=of_today) for one in ends],
        "sides": {side.memory.memory_id: side.memory.valid_until for side in case.sides},
        "edges": [(each.edges_in, each.edges_out, each.replaced_by) for each in traces],
        "open": [(each.probable_changes, each.open_contradictions) for each in traces],
        "graph": orc.graph.subgraph(ends, as_of=as_of).edges,
        "bulletin": orc.bulletin(as_of=as_of).bulletin.text,
        "recall": {each.memory.memory_id: (each.marks, each.mark) for each in recalled.items},
    }


CHANGE = (
    *("dismiss", "reopen", "accept", "reopen", "dismiss", "state"),
    *("retract", "restore", "restore new"),
)
CONTRADICTION = ("dismiss", "reopen", "accept", "reopen", "state", "resolve", "reopen", "dismiss")


@pytest.mark.parametrize(
    ("edge_type", "steps"), [("Updates", CHANGE), ("Contradicts", CONTRADICTION)]
)
def test_every_step_of_a_pair_is_answered_later_as_it_was_answered_then(
    orc: Orchestrator, clock: FixedClock, edge_type: str, steps: tuple[str, ...]
) -> None:
    old, new = (put(orc, f"The ferry leaves from pier {pier}.") for pier in ("two", "five"))
    edge = orc.relate(new, edge_type, old, weight=0.8, reason="a later sign")
    told = {clock.now_ms(): answers(orc, edge)}
    for number, step in enumerate(steps):
        clock.advance(days=1)
        reason = f"step {number}"
        if step == "state":
            orc.relate(new, edge_type, old, reason=reason)
        elif step == "retract":
            orc.retract(new, reason=reason)
        elif step.startswith("restore"):
            orc.restore(old if step == "restore" else new, reason=reason)
        elif step == "resolve":
            orc.contradictions.resolve(edge, winner=old, reason=reason)
        else:
            getattr(orc.contradictions, step)(edge, reason=reason)
        told[clock.now_ms()] = answers(orc, edge)
    clock.advance(days=30)
    for at, answer in told.items():
        assert answers(orc, edge, as_of=at) == answer
    assert orc.verify().ok


@pytest.mark.sqlite
def test_a_mark_is_accepted_and_reopened_once(orc: Orchestrator) -> None:
    old, new = (put(orc, f"The ferry leaves from pier {pier}.") for pier in ("two", "five"))
    edge = orc.relate(new, "Updates", old, weight=0.8, reason="a later sign")
    orc.contradictions.accept(edge, reason="the timetable")
    with pytest.raises(Conflict, match="reopen it first"):
        orc.contradictions.accept(edge, reason="again")
    orc.contradictions.reopen(edge, reason="of last year")
    with pytest.raises(Conflict, match="open"):
        orc.contradictions.reopen(edge, reason="again")
    journal = [each.action for each in orc.contradictions.get(edge).journal]
    assert journal[-2:] == ["accept", "reopen"]
    assert [each.status for each in orc.history.get(old).periods] == [
        *("active", "superseded", "active")
    ]


@pytest.mark.sqlite
def test_a_reopened_mark_leaves_what_another_decision_did(orc: Orchestrator) -> None:
    old, new, third = (put(orc, f"The ferry leaves from pier {n}.") for n in (1, 2, 3))
    edge = orc.relate(new, "Updates", old, weight=0.8)
    orc.contradictions.accept(edge, reason="the timetable")
    orc.retract(new, reason="of last year")
    against = orc.relate(third, "Contradicts", old)
    orc.contradictions.resolve(against, winner=third, reason="the harbour")
    orc.contradictions.reopen(edge, reason="of last year")
    assert orc.get(old).status.value == "superseded"


@pytest.mark.sqlite
def test_a_decision_that_was_undone_says_so(orc: Orchestrator, clock: FixedClock) -> None:
    old, new = (put(orc, f"The ferry leaves from pier {pier}.") for pier in ("two", "five"))
    edge = orc.relate(new, "Updates", old, weight=0.8)
    orc.contradictions.accept(edge, reason="the timetable")
    accepted = clock.now_ms()
    clock.advance(days=1)
    orc.retract(new, reason="the timetable of last year")
    orc.restore(old, reason="it holds again")
    [undone] = orc.contradictions.list(resolved=True).items
    assert (undone.moot, orc.contradictions.get(edge).moot) == (True, True)
    [then] = orc.contradictions.list(resolved=True, as_of=accepted).items
    assert (then.moot, then.edge.relation) == (False, "replaces")
    for trace in (orc.trace(old), orc.trace(new)):
        [traced] = (*trace.edges_in, *trace.edges_out)
        assert (traced.relation, traced.undone_at) == ("replaced", clock.now_ms())
        assert (trace.replaced, trace.replaced_by) == ((), ())
        assert "undone on" in edge_line(traced)
    [traced] = orc.trace(old, as_of=accepted).edges_in
    assert (traced.relation, traced.undone_at) == ("replaces", None)
    assert [link.memory_id for link in orc.trace(old, as_of=accepted).replaced_by] == [new]


@pytest.mark.sqlite
def test_the_strongest_edges_of_then_are_those_of_a_hub(
    orc: Orchestrator, clock: FixedClock
) -> None:
    hub, *others = (put(orc, f"Ferry number {number} leaves at dawn.") for number in range(131))
    for number, other in enumerate(others):
        orc.relate(other, "Contradicts", hub, weight=0.6 if number < 5 else 0.9, reason="read")
    clock.advance(days=1)
    at = clock.now_ms()
    before = orc.graph.subgraph([hub], hops=1, as_of=at)
    assert {edge.weight for edge in before.edges} == {0.9}
    clock.advance(days=1)
    for other in others[:5]:
        orc.relate(other, "Contradicts", hub, reason="stated")
    assert orc.graph.subgraph([hub], hops=1, as_of=at) == before
    assert 1.0 in {edge.weight for edge in orc.graph.subgraph([hub], hops=1).edges}


def test_what_was_true_at_a_time_and_what_was_known_then_are_two_questions(
    orc: Orchestrator, clock: FixedClock
) -> None:
    first = orc.remember("The harbour office opens at nine.")
    before = clock.now_ms()
    clock.advance(days=10)
    second = orc.correct(first, "The harbour office opens at ten.", reason="new hours")
    learnt_late = orc.remember("The harbour office was painted green.", event_time=before)
    now = clock.now_ms()
    clock.advance(days=1)

    def found(**when: int) -> set[str]:
        return set(orc.recall("harbour office", **when).ids)

    assert found() == {second, learnt_late}
    assert found(as_of=before) == {first}
    assert found(valid_at=before) == {first, learnt_late}
    assert found(valid_at=now) == {second, learnt_late}
    assert found(as_of=before, valid_at=before) == {first}
    # It is the answer of then, and no worse for what replaced it.
    [then, _] = orc.recall("When does the harbour office open?", valid_at=before).items
    assert (then.memory.memory_id, then.modifiers["status"]) == (first, 1.0)


@pytest.mark.parametrize("kind", ["mark", "contradiction", "correction"])
def test_what_was_replaced_held_until_what_replaced_it_was_said(
    orc: Orchestrator, clock: FixedClock, kind: str
) -> None:
    old = put(orc, "The ferry leaves from pier two.")
    clock.advance(days=1)
    said, between = clock.now_ms(), clock.now_ms() + MS_PER_DAY
    text = "The ferry leaves from pier five."
    new = old if kind == "correction" else put(orc, text)
    clock.advance(days=9)
    edge = ""
    if kind == "mark":
        edge = orc.relate(new, "Updates", old, weight=0.8)
        orc.contradictions.accept(edge, reason="the timetable")
    elif kind == "contradiction":
        edge = orc.relate(new, "Contradicts", old)
        orc.contradictions.resolve(edge, winner=new, reason="the timetable")
    else:
        new = orc.correct(old, text, reason="the timetable", event_time=said)
    decided = clock.now_ms()
    clock.advance(days=1)
    assert orc.recall("ferry pier", valid_at=between).ids == (new,)
    if edge:
        assert set(orc.recall("pier", valid_at=between, as_of=between).ids) == {old, new}
    recalled = [each.memory for each in orc.recall("pier", include_superseded=True).items]
    sides = [each.memory for each in orc.contradictions.get(edge).sides] if edge else recalled
    ends = [orc.get(old, as_of=decided), orc.trace(old).memory, *sides, *recalled]
    assert {each.valid_until for each in ends if each.memory_id == old} == {said}
    assert f"until {iso(said)[:10]}, see" in orc.context("Which ferry leaves from pier two?").text
    assert orc.get(old, as_of=decided - 1).valid_until is None


@pytest.mark.sqlite
def test_a_memory_that_a_reason_names_ends_nothing(orc: Orchestrator, clock: FixedClock) -> None:
    old = put(orc, "The ferry leaves from pier two.")
    clock.advance(days=1)
    new = put(orc, "The ferry leaves from pier five.")
    clock.advance(days=9)
    for words in ("see also", "ended by"):
        orc.retract(old, reason=f"{words} {new}")
        assert orc.get(old).valid_until == clock.now_ms(), words
        orc.restore(old, reason="it holds")
        clock.advance(days=1)


@pytest.mark.sqlite
def test_a_successor_from_a_file_without_a_date_is_undated(
    orc: Orchestrator, tmp_path: Path
) -> None:
    path = str(tmp_path / "root" / orc.name / "memory" / "ingest" / "pier.md")
    source = Source(source_type=SourceType.INGEST_FILE, source_path=path)
    old, new = (put(orc, f"The ferry leaves from pier {n}.", source=source) for n in (1, 2))
    orc.relate(new, "Updates", old)
    marks = {each.mark for each in orc.recall("ferry pier", include_superseded=True).items}
    assert marks == {"", f"replaced by {short_id(new)} (undated)"}


@pytest.mark.sqlite
def test_an_end_that_was_stored_stays_and_a_replacement_may_come_before_it(
    orc: Orchestrator, clock: FixedClock
) -> None:
    end = clock.now_ms() + 10 * MS_PER_DAY
    offers = [orc.remember(f"The offer of shop {n} holds.", valid_until=end) for n in (1, 2, 3)]
    clock.advance(days=1)
    orc.correct(offers[0], "The offer of shop 1 is over.", reason="sold")
    assert orc.get(offers[0]).valid_until == clock.now_ms()
    clock.advance(days=9)
    # The end is the millisecond of a change of the status.
    orc.retract(offers[1], reason="over")
    orc.correct(offers[2], "The offer of shop 3 is over.", reason="sold")
    for one in offers[1:]:
        assert orc.get(one).valid_until == end
    orc.restore(offers[1], reason="in error")
    assert orc.get(offers[1]).valid_until == end


@pytest.mark.sqlite
def test_a_case_of_an_earlier_time_suggests_nothing(orc: Orchestrator, clock: FixedClock) -> None:
    wrong, right = put(orc, "The ferry leaves at two."), put(orc, "The ferry leaves at five.")
    edge = orc.relate(wrong, "Contradicts", right)
    told = clock.now_ms()
    clock.advance(days=1)
    assert orc.contradictions.get(edge).suggestion is not None
    orc.contradictions.resolve(edge, winner=right, reason="the timetable")
    assert orc.contradictions.get(edge, as_of=told).state == "open"
    assert orc.contradictions.get(edge, as_of=told).suggestion is None


def test_a_bulletin_of_an_earlier_time_has_the_confidence_of_then(
    orc: Orchestrator, clock: FixedClock
) -> None:
    sides = [orc.remember(f"We ship in {m}.", type="Goal", confidence=0.9) for m in ("May", "June")]
    edge = orc.relate(sides[0], "Contradicts", sides[1])
    doubts = [orc.remember(f"Pier {n} is wet.", confidence=0.4 + n / 100) for n in (1, 2, 3)]
    dry = orc.remember("Pier 3 is dry.")
    other = orc.relate(doubts[2], "Contradicts", dry)
    bulletin, told = orc.bulletin().bulletin, clock.now_ms()
    clock.advance(days=1)
    orc.contradictions.resolve(edge, winner=sides[0], reason="the plan")
    orc.contradictions.resolve(other, winner=dry, reason="seen")
    clock.advance(days=1)
    assert orc.bulletin(as_of=told).bulletin == bulletin
    assert orc.get(sides[1]).confidence == 0.3
    [_, then] = orc.recall("What do we ship in June?", as_of=told).items
    assert {orc.get(sides[1], as_of=told).confidence, then.memory.confidence} == {0.9}


@pytest.mark.sqlite
def test_what_was_erased_says_nothing_of_an_earlier_time(
    orc: Orchestrator, clock: FixedClock
) -> None:
    gone = orc.remember("The lighthouse keeper sleeps at noon.", type="Todo", tags=["done"])
    kept = orc.remember("The lighthouse keeper never sleeps.", type="Preference")
    orc.relate(kept, "Contradicts", gone)
    before = clock.now_ms()
    clock.advance(days=1)
    orc.erasure.erase(memory_id=gone, reason="asked for", dry_run=False)
    bulletin = orc.bulletin(as_of=before).bulletin
    assert short_id(gone) not in bulletin.text
    assert "contradicts [" not in bulletin.text
    assert bulletin.memory_ids == (kept,)
    assert orc.recall("", types=["Todo", "Preference"], as_of=before).ids == (kept,)
    assert orc.get(gone, as_of=before).content == ""


@pytest.mark.sqlite
def test_an_answer_of_an_earlier_time_tells_that_ranks_are_of_today(
    orc: Orchestrator, clock: FixedClock
) -> None:
    kept = orc.remember("The lighthouse keeper sleeps at noon.")
    orc.settle()
    before = clock.now_ms()
    clock.advance(days=1)

    def told(query: str, **when: Any) -> list[str]:
        return [each.code for each in orc.recall(query, types=["Fact"], **when).degraded]

    assert told("lighthouse", as_of=before) == ["ranks.of_today"]
    assert told("lighthouse", as_of=clock.now_ms()) == told("", as_of=before) == []
    assert orc.recall("lighthouse", as_of=before).ids == (kept,)
