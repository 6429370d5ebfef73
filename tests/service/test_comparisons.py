"""New facts and turns are compared in the background, and what is found is a mark, no decision."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import Conflict, ProviderRejected
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.values import Edge
from memgraph.providers.pair_reader import PairVerdict, StatementPair
from tests.pair_readers import CHANGES, REPEATS, ScriptedReader, reading

OLD = "Access tokens expire after 15 minutes."
NEW = "Access tokens now live for an hour."
CONVERSATION = {
    "source_type": "channel_transcript",
    "captured_by": "extractor",
    "conversation_id": "c-1",
}


@pytest.fixture
def reader() -> ScriptedReader:
    return ScriptedReader({(OLD, NEW): CHANGES})


@pytest.fixture
def service(
    tmp_path: Path, clock: FixedClock, storage_url: str, reader: ScriptedReader
) -> Iterator[MemoryService]:
    with reading(tmp_path / "root", reader, url=storage_url, clock=clock) as made:
        yield made


def edges_into(orc: Orchestrator, memory_id: str) -> tuple[Edge, ...]:
    return orc.trace(memory_id).edges_in


def test_the_same_text_of_one_type_place_and_speaker_is_stored_once(orc: Orchestrator) -> None:
    first = orc.memories.store(OLD)
    again = orc.memories.store("  access TOKENS expire\nafter 15 minutes")
    assert (first.outcome, first.duplicate_of, first.reasons) == ("stored", None, {})
    assert (again.outcome, again.memory_id) == ("duplicate", first.memory_id)
    assert again.reasons == {first.memory_id: "the same text"}
    assert (first.comparison, again.comparison) == ("pending", None)
    for other in ({"type": "Decision"}, {"scope": "project", "scope_id": "p"}):
        assert orc.memories.store(OLD, **other).outcome == "stored"
    assert orc.memories.store(OLD, source_role="Mira").outcome == "stored"


@pytest.mark.engines
def test_a_change_by_the_same_author_is_a_mark_that_is_in_force_once_accepted(
    orc: Orchestrator,
) -> None:
    old, new = orc.remember(OLD), orc.remember(NEW)
    assert edges_into(orc, old) == ()
    [mark] = orc.settle().compared.marks
    [edge] = edges_into(orc, old)
    # Without the reason, which quotes: whoever runs the comparisons may not see the text.
    assert mark.reason is None
    assert dict(edge) == dict(mark) | {"reason": edge.reason, "undone_at": None}
    assert edge.edge_type is EdgeType.UPDATES
    assert (edge.from_id, edge.weight, edge.resolution) == (new, 0.92, None)
    assert edge.reason == f"probably changes: {OLD}"
    assert {orc.get(each).status for each in (old, new)} == {MemoryStatus.ACTIVE}
    assert orc.maintenance.pending_comparisons() == 0
    orc.contradictions.accept(mark.edge_id, reason="the manual says so")
    [edge] = edges_into(orc, old)
    assert (edge.edge_id, edge.weight, edge.reason) == (mark.edge_id, 1.0, "the manual says so")
    assert orc.get(old).status is MemoryStatus.SUPERSEDED
    assert orc.get(new).status is MemoryStatus.ACTIVE
    assert orc.verify().ok
    with pytest.raises(Conflict):
        orc.contradictions.accept(mark.edge_id, reason="again")


def test_a_change_by_another_author_is_an_open_contradiction_and_the_later_wins_if_accepted(
    orc: Orchestrator,
) -> None:
    old = orc.remember(OLD, source=CONVERSATION)
    new = orc.remember(NEW)
    orc.settle()
    [edge] = edges_into(orc, old)
    assert (edge.edge_type, edge.weight) == (EdgeType.CONTRADICTS, 0.92)
    assert edge.reason == f"probably contradicts: {OLD}"
    assert {orc.get(each).status for each in (old, new)} == {MemoryStatus.ACTIVE}
    assert [each.edge.edge_id for each in orc.contradictions.list().items] == [edge.edge_id]
    orc.contradictions.accept(edge.edge_id, reason="so it is")
    assert orc.get(old).status is MemoryStatus.SUPERSEDED
    [case] = orc.contradictions.list(resolved=True).items
    assert case.edge.resolution is not None
    assert case.edge.resolution["winner_id"] == new
    with pytest.raises(Conflict):
        orc.contradictions.accept(edge.edge_id, reason="again")
    orc.contradictions.reopen(edge.edge_id, reason="too early")
    assert orc.get(old).status is MemoryStatus.ACTIVE
    assert orc.verify().ok


def test_turns_of_one_speaker_are_marked_like_facts(
    orc: Orchestrator, reader: ScriptedReader
) -> None:
    reader.verdicts = {("I live in Oslo.", "I live in Bergen."): CHANGES}
    turns = [
        orc.save_episode(said, session_id="s", source_role=who)
        for who, said in (
            ("Mira", "I live in Oslo."),
            ("Tom", "I live in Bergen."),
            ("Mira", "Hello all! I live in Bergen."),
        )
    ]
    orc.settle()
    types = {edge.from_id: edge.edge_type for edge in edges_into(orc, turns[0])}
    assert types == {turns[1]: EdgeType.CONTRADICTS, turns[2]: EdgeType.UPDATES}
    assert StatementPair("Mira: I live in Oslo.", "Tom: I live in Bergen.") in reader.asked


@pytest.mark.parametrize(
    ("verdict", "said", "marks"),
    [
        (PairVerdict(0.89, 0.05, 0.06), "I live in Bergen.", 0),
        (PairVerdict(0.9, 0.05, 0.05), "I live in Bergen.", 1),
        (PairVerdict(0.99, 0.0, 0.01), "Nobody ate the soup.", 0),
    ],
    ids=["below", "certain", "far"],
)
def test_turns_are_marked_where_the_reader_is_nearly_certain_and_they_are_close(
    orc: Orchestrator, reader: ScriptedReader, verdict: PairVerdict, said: str, marks: int
) -> None:
    reader.otherwise = verdict
    for turn in ("I live in Oslo.", said):
        orc.save_episode(turn, session_id="s", source_role="Mira")
    assert len(orc.settle().compared.marks) == marks


def test_a_repetition_in_other_words_is_a_relation(
    orc: Orchestrator, reader: ScriptedReader
) -> None:
    reader.verdicts = {(OLD, "After a quarter of an hour access tokens expire."): REPEATS}
    old = orc.remember(OLD)
    new = orc.remember("After a quarter of an hour access tokens expire.")
    orc.settle()
    [edge] = edges_into(orc, old)
    assert (edge.edge_type, edge.from_id, edge.weight) == (EdgeType.RELATED_TO, new, 0.9)
    assert edge.reason == f"probably says the same as: {OLD}"


def test_the_order_is_when_it_was_said_not_when_it_happens_or_is_stored(
    orc: Orchestrator, clock: FixedClock, reader: ScriptedReader
) -> None:
    old = orc.remember(OLD, event_time="2025-06-01T00:00:00Z")
    clock.advance(ms=60_000)
    new = orc.remember(NEW, event_time="2024-01-01T00:00:00Z")
    reader.verdicts[("I live in Oslo.", "I live in Bergen.")] = CHANGES
    said = {"session_id": "s", "source_role": "Mira"}
    later = orc.save_episode("I live in Bergen.", event_time="2025-02-01T00:00:00Z", **said)
    earlier = orc.save_episode("I live in Oslo.", event_time="2025-01-01T00:00:00Z", **said)
    orc.settle()
    assert [edge.from_id for edge in edges_into(orc, old)] == [new]
    assert [edge.from_id for edge in edges_into(orc, earlier)] == [later]


@pytest.mark.engines
def test_a_fact_is_not_compared_with_the_turn_that_it_comes_from(
    orc: Orchestrator, reader: ScriptedReader
) -> None:
    reader.otherwise = CHANGES
    turn = orc.save_episode(OLD, session_id="s", source_role="Mira")
    orc.remember(NEW, derived_from=[turn])
    assert orc.settle().compared.marks == []
    assert reader.asked == []


@pytest.mark.parametrize(
    "where",
    [
        [{"source": {"source_type": "ingest_file", "content_sha256": "a" * 64}}] * 2,
        [{"scope": "project", "scope_id": name} for name in "ab"],
    ],
    ids=["one document", "two projects"],
)
def test_statements_of_one_document_or_of_two_places_are_not_compared(
    orc: Orchestrator, reader: ScriptedReader, where: list[dict[str, object]]
) -> None:
    reader.otherwise = CHANGES
    first, second = where
    orc.remember_many([{"content": OLD, **first}, {"content": NEW, **second}])
    orc.settle()
    assert reader.asked == []


@pytest.mark.engines
def test_a_pair_is_compared_once_and_at_most_twelve_are_read(
    orc: Orchestrator, reader: ScriptedReader
) -> None:
    lamps = [f"Lamp {number} in the hall is green." for number in range(40)]
    orc.remember_many([{"content": each} for each in lamps])
    assert orc.settle().compared.compared == len(lamps)
    asked = list(reader.asked)
    assert len(set(asked)) == len(asked) <= 12 * len(lamps)
    assert orc.settle().compared.compared == 0


def test_a_dismissed_mark_is_not_raised_again(orc: Orchestrator) -> None:
    old, new = orc.remember(OLD), orc.remember(NEW)
    [mark] = orc.settle().compared.marks
    orc.contradictions.dismiss(mark.edge_id, reason="the test system's tokens")
    for memory_id in (old, new):
        orc.retract(memory_id, reason="sent twice")
    copy = orc.remember(OLD)
    orc.remember(NEW)
    assert orc.settle().compared.marks == []
    assert edges_into(orc, copy) == ()
    assert orc.verify().ok


def test_a_contradiction_that_somebody_stated_needs_a_winner(orc: Orchestrator) -> None:
    edge = orc.relate(orc.remember("One."), "Contradicts", orc.remember("Two."))
    with pytest.raises(Conflict, match=f"memgraph resolve ORC {edge} --winner"):
        orc.contradictions.accept(edge, reason="so it is")


def test_whoever_dismissed_a_mark_may_think_again(orc: Orchestrator) -> None:
    old, new = orc.remember(OLD), orc.remember(NEW)
    [mark] = orc.settle().compared.marks
    orc.contradictions.dismiss(mark.edge_id, reason="two systems")
    with pytest.raises(Conflict):
        orc.contradictions.accept(mark.edge_id, reason="one system")
    assert orc.relate(new, "Updates", old, reason="one system") == mark.edge_id
    [edge] = edges_into(orc, old)
    assert (edge.weight, (edge.resolution or {})["reason"]) == (1.0, "one system")
    assert orc.get(old).status is MemoryStatus.SUPERSEDED
    assert orc.verify().ok


def test_a_marked_contradiction_that_somebody_states_is_no_longer_probable(
    orc: Orchestrator,
) -> None:
    old, new = orc.remember(OLD, source=CONVERSATION), orc.remember(NEW)
    [mark] = orc.settle().compared.marks
    assert orc.relate(old, "Contradicts", new, reason="I checked") == mark.edge_id
    [case] = orc.contradictions.list().items
    assert (case.edge.weight, case.edge.reason) == (1.0, "I checked")
    assert "probably" not in orc.context("tokens").text
    assert orc.relate(old, "Contradicts", new, weight=0.5) == mark.edge_id
    [case] = orc.contradictions.list().items
    assert case.edge.weight == 1.0
    assert orc.verify().ok


def test_only_an_edge_of_weight_one_replaces(orc: Orchestrator) -> None:
    old, new = orc.remember(OLD), orc.remember("Tokens are gone.")
    orc.relate(new, "Updates", old, weight=0.99)
    assert orc.get(old).status is MemoryStatus.ACTIVE
    orc.relate(new, "Updates", old)
    assert orc.get(old).status is MemoryStatus.SUPERSEDED


def test_what_was_retracted_meanwhile_is_not_marked(orc: Orchestrator) -> None:
    old = orc.remember(OLD)
    orc.remember(NEW)
    orc.retract(old, reason="wrong")
    assert orc.settle().compared.marks == []


@pytest.mark.engines
def test_what_waits_survives_a_restart(
    tmp_path: Path, storage_url: str, reader: ScriptedReader
) -> None:
    def started() -> MemoryService:
        return reading(tmp_path / "again", reader, url=storage_url)

    with started() as first:
        orc = first.orchestrator("orc-2", create=True)
        old = orc.remember(OLD)
        orc.remember(NEW)
        assert orc.maintenance.pending_comparisons() == 2
    with started() as again:
        orc = again.orchestrator("orc-2")
        orc.settle()
        assert len(edges_into(orc, old)) == 1


class BrokenReader(ScriptedReader):
    def read(self, pairs: list[StatementPair]) -> list[PairVerdict]:  # type: ignore[override]
        raise ProviderRejected("the files are damaged", provider="local")


@pytest.mark.engines
def test_a_reader_that_fails_leaves_the_memory_waiting(
    tmp_path: Path, clock: FixedClock, storage_url: str
) -> None:
    with reading(tmp_path / "broken", BrokenReader(), url=storage_url, clock=clock) as service:
        orc = service.orchestrator("orc-3", create=True)
        orc.remember_many([{"content": OLD}, {"content": NEW}])
        assert orc.settle().compared.put_off == 1
        assert orc.maintenance.pending_comparisons() == 2
        assert "comparison.failing" in service.health("orc-3")["degraded"]


def test_without_a_reader_nothing_waits(tmp_path: Path) -> None:
    with MemoryService(tmp_path / "plain", background=False, environ={}) as service:
        orc = service.orchestrator("orc-4", create=True)
        assert orc.memories.store(OLD).comparison is None
        assert orc.maintenance.pending_comparisons() == 0


@pytest.mark.sqlite
def test_nothing_waits_of_what_was_erased(orc: Orchestrator) -> None:
    outcome = orc.memories.store(OLD)
    orc.remember(NEW)
    orc.erasure.erase(memory_id=outcome.memory_id, reason="asked for", dry_run=False)
    assert orc.maintenance.pending_comparisons() == 1
