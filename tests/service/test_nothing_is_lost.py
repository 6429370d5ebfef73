"""No comparison changes a status or loses a text, whatever the reader of pairs says."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from memgraph import MemoryService
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.providers.pair_reader import PairVerdict
from memgraph.rules.similarity import folded
from tests.pair_readers import ScriptedReader, reading

WORDS = ("we", "fly", "to", "via", "Rome", "Oslo", "not", "15", "1.5", "Anna", "TODO:", "now")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("remember"), texts),
        st.tuples(st.just("say"), texts),
        st.tuples(st.just("ingest"), texts),
        st.tuples(st.just("settle"), st.just("")),
        st.tuples(st.just("consolidate"), st.just("")),
    ),
    min_size=2,
    max_size=12,
)
verdicts = st.sampled_from([PairVerdict(0.999, 0.0, 0.001), PairVerdict(0.0, 1.0, 0.0)])


@settings(max_examples=8)
@given(steps, verdicts)
def test_without_a_decision_every_text_stays_active(
    done: list[tuple[str, str]], verdict: PairVerdict
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        reading(Path(folder), ScriptedReader(otherwise=verdict)) as service,
    ):
        orc = service.orchestrator("orc", create=True)
        for number, (step, text) in enumerate([*done, ("settle", ""), ("settle", "")]):
            if step == "remember":
                orc.remember(text)
            elif step == "say":
                orc.save_episode(text, session_id="s", source_role=("Mira", "Tom")[number % 2])
            elif step == "ingest":
                source = {"source_type": "ingest_file", "content_sha256": f"{number:064}"}
                orc.remember_many([{"content": text, "source": source}])
            elif step == "consolidate":
                orc.jobs.consolidate()
            else:
                orc.settle()
        kept = orc.memories.list(statuses=list(MemoryStatus), limit=500)
        assert {each.status for each in kept} <= {MemoryStatus.ACTIVE}
        told = {folded(text) or text for step, text in done if text}
        assert told <= {folded(each.content) or each.content for each in kept}
        edges = orc.graph.subgraph([each.memory_id for each in kept]).edges
        marks = {EdgeType.UPDATES, EdgeType.CONTRADICTS}
        assert all(edge.weight < 1.0 for edge in edges if edge.edge_type in marks)
        assert orc.verify().ok


@pytest.mark.reads_pairs
def test_the_shipped_reader_marks_a_plain_change(tmp_path: Path) -> None:
    with MemoryService(tmp_path, environ={}, background=False) as service:
        orc = service.orchestrator("orc", create=True)
        old = orc.remember("Backups are kept for 30 days.")
        orc.remember("The server is in Frankfurt.")
        new = orc.remember("Backups are now kept for 90 days.")
        orc.remember("The server is on fire.")
        [mark] = orc.settle().compared.marks
        assert (mark.from_id, mark.to_id, mark.edge_type) == (new, old, EdgeType.UPDATES)
        [shown] = [
            m for item in orc.recall("backups").items for m in item.marks if m.memory_id == new
        ]
        assert shown.reason == "probably changes: Backups are kept for 30 days."
        assert orc.get(old).status is MemoryStatus.ACTIVE
        text = orc.context("how long are backups kept?").text
        assert text.index("30 days") < text.index("90 days")
