"""Reading what the write path itself has written: history, journal, contradictions, bulletin."""

from __future__ import annotations

import pytest
from working import put

from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.clock import MS_PER_DAY, FixedClock
from memgraph.model.enums import EdgeType, MemoryStatus, Sensitivity
from memgraph.store.redaction import HIDDEN


@pytest.mark.engines
def test_a_corrected_decision_tells_its_whole_story(orc: Orchestrator, clock: FixedClock) -> None:
    old = orc.remember("We use Postgres for the ledger.", type="Decision")
    effect = orc.remember("Backups of the ledger run through pg_dump.")
    orc.relate(effect, EdgeType.CAUSED_BY, old)
    clock.advance(days=3)
    new = orc.correct(old, "We use SQLite for the ledger.", reason="one machine is enough")
    before = clock.now_ms() - MS_PER_DAY
    found = orc.trace(old)
    assert found.memory.status is MemoryStatus.SUPERSEDED
    assert [period.status for period in found.status_history] == [
        MemoryStatus.ACTIVE,
        MemoryStatus.SUPERSEDED,
    ]
    assert [link.memory_id for link in found.replaced_by] == [new]
    assert [link.memory_id for link in orc.trace(new).replaced] == [old]
    assert found.stale_dependents == (effect,)
    assert orc.trace(effect).stale_grounds == (old,)
    assert found.journal
    assert [note.seq for note in found.journal] == sorted(note.seq for note in found.journal)
    now, then = (
        orc.graph.subgraph([effect], hops=2),
        orc.graph.subgraph([effect], hops=2, as_of=before),
    )
    assert set(now.distances) == {effect, old, new}
    assert set(then.distances) == {effect, old}
    assert {node.status for node in then.nodes} == {MemoryStatus.ACTIVE}


@pytest.mark.engines
def test_a_contradiction_from_found_to_reopened(orc: Orchestrator, clock: FixedClock) -> None:
    noon = put(orc, "The release is at noon.")
    dusk = put(orc, "The release is at dusk.")
    edge = orc.relate(noon, EdgeType.CONTRADICTS, dusk)
    section = "conflicts_and_uncertainties"
    first = orc.bulletin().bulletin
    assert [line.memory_ids for line in first.sections[section]] == [(dusk,), (noon,)]
    (item,) = orc.contradictions.list().items
    assert (item.first.memory_id, item.second.memory_id) == (noon, dusk)
    edge_id = item.edge.edge_id
    assert edge_id in str(edge)
    clock.advance(days=2)
    orc.contradictions.resolve(edge_id, winner=dusk, reason="the calendar says so")
    assert orc.contradictions.list().items == ()
    (settled,) = orc.contradictions.list(resolved=True).items
    assert settled.open_days == 2.0
    assert settled.edge.resolution is not None
    assert settled.edge.resolution["winner_id"] == dusk
    assert orc.bulletin().bulletin.sections[section] == ()
    orc.contradictions.reopen(edge_id, reason="another calendar")
    assert [one.edge_id for one in orc.trace(noon).open_contradictions] == [edge_id]
    again = orc.bulletin().bulletin
    assert again.change_seq > first.change_seq
    assert again.sections == first.sections


def test_no_reason_about_a_hidden_side_is_told(service: MemoryService, orc: Orchestrator) -> None:
    noon = put(orc, "The release is at noon.")
    dusk = put(orc, "The release is at dusk.", sensitivity=Sensitivity.RESTRICTED)
    host = service.orchestrator("orc-1", viewer=Viewer(Sensitivity.RESTRICTED))
    host.relate(noon, EdgeType.CONTRADICTS, dusk, reason="quoth dusk")
    (item,) = host.contradictions.list().items
    host.contradictions.resolve(item.edge.edge_id, winner=dusk, reason="dusk wins")
    host.contradictions.reopen(item.edge.edge_id, reason="dusk was wrong")
    public = service.orchestrator("orc-1", viewer=Viewer(Sensitivity.PUBLIC))
    seen = service.orchestrator("orc-1", viewer=Viewer(Sensitivity.INTERNAL))
    for reader in (public, seen):
        found = reader.history.diff(0, service.clock.now_ms() + 1)
        assert "dusk" not in found.model_dump_json()
    told = [seen.trace(noon).model_dump_json(), seen.history.get(noon).model_dump_json()]
    assert all("dusk" not in each and HIDDEN in each for each in told)
    assert "dusk was wrong" in host.trace(noon).model_dump_json()


@pytest.mark.engines
def test_no_reason_of_an_edge_names_what_is_hidden(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    noon = put(orc, "The release is at noon.")
    dusk = put(orc, "The release is at dusk.")
    secret = put(orc, "The customer leaves.", sensitivity=Sensitivity.RESTRICTED)
    host = service.orchestrator("orc-1", viewer=Viewer(Sensitivity.RESTRICTED))
    because = f"fact_checked after {dusk}, as {secret} says: quoth"
    edge = host.relate(noon, EdgeType.UPDATES, dusk, weight=0.9, reason=because)
    clock.advance(days=1)
    then = clock.now_ms()
    clock.advance(days=1)
    host.contradictions.accept(edge, reason=f"{secret} is sure: quoth")

    def told(reader: Orchestrator, as_of: int | None) -> dict[str, str]:
        is_decided = as_of is None
        answers = {
            "trace": reader.trace(noon, as_of=as_of),
            "list": reader.contradictions.list(resolved=is_decided, as_of=as_of),
            "case": reader.contradictions.get(edge, as_of=as_of),
            "subgraph": reader.graph.subgraph([noon], as_of=as_of),
            "recall": reader.recall("release", as_of=as_of),
        }
        return {name: answer.model_dump_json() for name, answer in answers.items()}

    for as_of in (None, then):
        shown = told(service.orchestrator("orc-1", viewer=Viewer(Sensitivity.INTERNAL)), as_of)
        assert [name for name, text in shown.items() if "quoth" in text or secret in text] == []
        assert [name for name, text in shown.items() if HIDDEN not in text] == []
        assert all("quoth" in text for text in told(host, as_of).values())
    earlier = service.orchestrator("orc-1").recall("release", as_of=then)
    reasons = {edge.reason for edge in earlier.edges}
    reasons |= {mark.reason for item in earlier.items for mark in item.marks}
    assert reasons == {f"fact_checked after {dusk}, as {HIDDEN}"}


def test_a_journal_entry_does_not_name_what_is_hidden(
    orc: Orchestrator, service: MemoryService
) -> None:
    owner = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    shown = orc.remember("The office is in Porto.")
    secret = orc.remember("The lease ends in May.", sensitivity=Sensitivity.RESTRICTED)
    owner.relate(shown, EdgeType.RELATED_TO, secret)
    found = orc.trace(shown)
    assert secret not in found.model_dump_json()
    assert HIDDEN in found.model_dump_json()
    assert orc.graph.subgraph([shown], hops=4).edges == ()
