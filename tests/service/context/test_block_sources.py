"""The origin of a memory in a prompt: a file of the drop zone, never where the zone lies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memgraph import ContextAssembler, MemoryHooks, MemoryService, Orchestrator, call_tool
from memgraph.model.context import AgentProfile, BlockFormat
from memgraph.rules.conversations import WEEKLY

TEXT = "The harbour closes at nine."
ASKED = "When does the harbour close?"
SHOWN = "quay/tide table.md:3"


@pytest.fixture
def path(service: MemoryService, orc: Orchestrator) -> str:
    """Of the file that two memories are from."""
    found = str(service.paths(orc.name).ingest / "quay" / "tide table.md")
    source = {"source_type": "ingest_file", "source_path": found, "locator": "L3-L4"}
    orc.remember(TEXT, source=source)
    orc.remember("A week of tides.", kind="reflection", tags=[WEEKLY], source=source)
    return found


def sources(block: str) -> list[str]:
    """The files and lines in the heads of a block."""
    return re.findall(r"^(?:\[\d+\]|-) [^:(]*\((.+?)\):? ", block, re.MULTILINE)


@pytest.mark.parametrize("form", BlockFormat)
def test_a_block_before_a_message_and_a_context_for_a_task(
    service: MemoryService, orc: Orchestrator, path: str, form: BlockFormat
) -> None:
    shown = [] if form is BlockFormat.LIST else [SHOWN]
    block = orc.context(ASKED, format=form)
    assert len(block.memory_ids) == 2
    # A reflection shows no file.
    assert sources(block.text) == shown
    assert_tells_no_place(block.text, path)
    profile = AgentProfile(name="p", format=form)
    found = ContextAssembler(service, orc.name, profile=profile).build_context("t", query=ASKED)
    assert found.items
    assert {*sources(found.text)} == {*shown}
    assert_tells_no_place(found.text, path)
    # The host has all of it beside the text.
    assert {each.citation for each in found.items} == {f"{path}#L3-L4"}


def test_evidence_and_what_a_tool_tells_a_model(
    service: MemoryService, orc: Orchestrator, path: str
) -> None:
    with MemoryHooks(service, orc.name, deadline_ms=30_000) as hooks:
        found = hooks.on_diagnostics(ASKED)
    told = call_tool(orc, "search_memory", {"query": ASKED})
    assert isinstance(told, str)
    for text in (found.text, told):
        assert {*sources(text)} == {SHOWN}
        assert_tells_no_place(text, path)
    # People are told the whole path.
    for each in (*found.items, *orc.recall(ASKED).items):
        assert each.citation == f"{path}#L3-L4"


def assert_tells_no_place(text: str, path: str) -> None:
    assert text
    assert str(Path(path).parent) not in text
    assert str(Path(path).parent.parent) not in text
