"""What a bulletin says of a real store: a dropped file, what was replaced, what was erased."""

from __future__ import annotations

import re

import pytest

from ingest.pipeline import IngestPipeline
from memgraph import EdgeType, MemoryService, MemoryType, Orchestrator, Scope
from memgraph.ids import short_id

pytestmark = pytest.mark.engines


def line_with(text: str, words: str) -> str:
    [line] = [line for line in text.splitlines() if words in line]
    return line


def test_a_dropped_todo_and_a_contradiction_are_shown(
    orc: Orchestrator, service: MemoryService
) -> None:
    drop = service.paths("orc-1").ingest / "notes.md"
    drop.write_text("# Work\n\nTODO: rotate the API keys before March.\n", encoding="utf-8")
    IngestPipeline(orc, now_ms=lambda: 1_767_225_600_000).run()
    first = orc.remember("The dentist is on 3 March.")
    second = orc.remember("Dr. Moss has no time before April.")
    orc.relate(second, EdgeType.CONTRADICTS, first)
    text = orc.bulletin().bulletin.text
    todo = line_with(text, "rotate the API keys")
    assert ", Todo (notes.md:3, Work): rotate the API keys before March. #" in todo
    lines = [line_with(text, words) for words in ("dentist", "before April")]
    numbers = [re.findall(r"\[(\d+)\]", line) for line in lines]
    assert numbers[0] == numbers[1][::-1]
    assert all("contradicts [" in line for line in lines)
    assert "## Open contradictions and doubts (1 of 1)" in text
    assert orc.bulletin().bulletin.text == text
    assert sorted(orc.bulletin().bulletin.memory_ids)[-2:] == sorted((first, second))


def test_what_was_corrected_erased_or_is_hidden_is_never_named(
    orc: Orchestrator, service: MemoryService
) -> None:
    old = orc.remember("Backups are kept for 30 days.", type=MemoryType.DECISION)
    new = orc.correct(old, "Backups are kept for 90 days.", reason="audit")
    kept = orc.remember("The gate closes at nine.")
    gone = orc.remember("Nobody ever locks the yard.")
    orc.relate(gone, EdgeType.CONTRADICTS, kept)
    assert f"#{short_id(gone)}" in orc.bulletin().bulletin.text
    hidden = orc.remember(
        "Atlas ships its first crate in June.", scope=Scope.PROJECT, scope_id="atlas"
    )
    orc.erasure.erase(memory_id=gone, reason="asked for", dry_run=False)
    issued = service.orchestrator("orc-1").bulletin().bulletin
    assert {*issued.memory_ids} == {new, kept}
    assert "contradicts" not in line_with(issued.text, "gate closes at nine")
    for one in (old, gone, hidden):
        assert short_id(one) not in issued.text
