"""A place stays empty rather than filled with the unrelated, and conflicting sides are marked."""

from __future__ import annotations

import pytest

from memgraph import Orchestrator
from memgraph.errors import InvalidInput, NotFound
from memgraph.ids import short_id
from tests.working import put

TEXTS = (
    "The harbour of Trieste closes at nine in winter.",
    "Mira repairs old clocks in Graz.",
    "Invoices are sent on the first Monday of a month.",
)


def filled(orc: Orchestrator) -> dict[str, str]:
    ids = {text: orc.remember(text) for text in TEXTS}
    orc.settle()
    return ids


def test_a_context_has_the_floor_of_the_settings(orc: Orchestrator) -> None:
    ids = filled(orc)
    stranger = "Which violin concerto did Oistrakh record in Leipzig?"
    assert orc.context(stranger).text == ""
    assert ids[TEXTS[1]] in orc.context("Who repairs clocks in Graz?").memory_ids


@pytest.mark.engines
def test_short_ids_are_taken_wherever_a_memory_is_named(orc: Orchestrator) -> None:
    gate, bridge, lamp = (
        put(orc, text) for text in ("The gate is shut.", "The gate is open.", "The lamp is red.")
    )
    short = short_id
    edge = orc.relate(short(gate), "Contradicts", short(bridge))
    assert orc.get(short(gate)).memory_id == orc.trace(short(gate)).memory.memory_id == gate
    assert {gate, bridge} == {each.memory_id for each in orc.graph.subgraph([short(gate)]).nodes}
    assert [each.edge.edge_id for each in orc.contradictions.list(memory_id=short(gate)).items] == [
        edge
    ]
    assert orc.contradictions.list(memory_id=short(lamp)).items == ()
    assert (
        orc.graph.grounds(short(gate)).memory_id == orc.sources.lines(short(gate)).memory_id == gate
    )
    orc.contradictions.resolve(edge, winner=short(bridge), reason="seen")
    assert (orc.get(gate).status, orc.get(bridge).status) == ("superseded", "active")
    [outcome] = orc.memories.forget([short(lamp)], reason="wrong")
    assert (outcome.memory_id, outcome.outcome) == (lamp, "retracted")
    with pytest.raises(InvalidInput):
        orc.relate(short(bridge), "RelatedTo", bridge)
    with pytest.raises(NotFound):
        orc.get("0" * 8)
