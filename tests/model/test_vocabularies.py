"""Types, edges, sources and bounds are those of the design documents."""

from __future__ import annotations

import itertools
from enum import StrEnum

import pytest

from memgraph import Orchestrator
from memgraph.errors import InvalidInput
from memgraph.model.enums import (
    CapturedBy,
    EdgeType,
    MemoryKind,
    MemoryType,
    Scope,
    Sensitivity,
    SourceType,
)

TYPES = ["Fact", "Preference", "Decision", "Identity", "Event", "Observation", "Goal", "Todo"]
EDGES = ["RelatedTo", "Updates", "Contradicts", "CausedBy", "PartOf"]
SOURCES = ["workflow_output", "channel_transcript", "ingest_file", "diagnostics", "manual"]


@pytest.mark.parametrize(
    ("vocabulary", "words"),
    [
        (MemoryType, TYPES),
        (EdgeType, EDGES),
        (SourceType, SOURCES),
        (CapturedBy, ["extractor", "user", "system"]),
        (MemoryKind, ["episode", "fact", "reflection"]),
        (Scope, ["session", "project", "global"]),
        (Sensitivity, ["Public", "Internal", "Confidential", "Restricted"]),
    ],
)
def test_the_words_are_those_of_the_documents(vocabulary: type[StrEnum], words: list[str]) -> None:
    assert [member.value for member in vocabulary] == words


def test_every_word_is_stored(orc: Orchestrator) -> None:
    place = {"conversation_id": "c", "workflow_run_id": "r", "step_id": "s"}
    first = orc.remember("The shop opens at nine.")
    for memory_type in TYPES:
        memory_id = orc.remember("Marta leads the depot.", type=memory_type)
        assert orc.get(memory_id).type == memory_type
    for edge_type in EDGES:
        edge_id = orc.relate(first, edge_type, memory_id, weight=0.5, reason="As told.")
        [edge] = [edge for edge in orc.graph.subgraph([first]).edges if edge.edge_id == edge_id]
        assert (edge.edge_type, edge.weight, edge.reason) == (edge_type, 0.5, "As told.")
    for source_type, captured_by in itertools.product(SOURCES, CapturedBy):
        source = {"source_type": source_type, "captured_by": captured_by, **place}
        memory_id = orc.remember(f"{source_type} by {captured_by}", source=source)
        stored = orc.trace(memory_id).source.model_dump()
        assert {name: stored[name] for name in source} == source


def test_what_is_no_word_is_refused(orc: Orchestrator) -> None:
    first = orc.remember("The shop opens at nine.")
    second = orc.remember("Marta leads the depot.")
    for field, value in (
        ("type", "fact"),
        ("source", {"source_type": "rumour"}),
        ("source", {"captured_by": "model"}),
        ("importance", 101),
        ("confidence", -0.1),
    ):
        with pytest.raises(InvalidInput, match=field):
            orc.remember("The lift is broken.", **{field: value})
    with pytest.raises(InvalidInput, match="format must be one of: fenced, list, sections"):
        orc.context("When does the shop open?", format="xml")
    with pytest.raises(InvalidInput, match="edge_type"):
        orc.relate(first, "Likes", second)
    with pytest.raises(InvalidInput, match="weight"):
        orc.relate(first, "RelatedTo", second, weight=1.1)
    assert len(orc.memories.list()) == 2
