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
def test_a_block_before_a_message(orc: Orchestrator, path: str, form: BlockFormat) -> None:
    block = orc.context(ASKED, format=form)
    assert len(block.memory_ids) == 2
    # A reflection shows no file.
    assert sources(block.text) == ([] if form is BlockFormat.LIST else [SHOWN])
    assert_tells_no_place(block.text, path)


@pytest.mark.parametrize("form", BlockFormat)
def test_a_context_for_a_task(
    service: MemoryService, orc: Orchestrator, path: str, form: BlockFormat
) -> None:
    profile = AgentProfile(name="p", format=form)
    found = ContextAssembler(service, orc.name, profile=profile).build_context("t", query=ASKED)
    number = len(found.items)
    assert number > 0
    assert set(sources(found.text)) == (set() if form is BlockFormat.LIST else {SHOWN})
    assert_tells_no_place(found.text, path)
    # The host has all of it beside the text.
    assert [each.citation for each in found.items] == [f"{path}#L3-L4"] * number


def test_evidence(service: MemoryService, orc: Orchestrator, path: str) -> None:
    with MemoryHooks(service, orc.name, deadline_ms=30_000) as hooks:
        found = hooks.on_diagnostics(ASKED)
    assert found.warnings == ()
    assert set(sources(found.text)) == {SHOWN}
    assert_tells_no_place(found.text, path)
    assert {each.citation for each in found.items} == {f"{path}#L3-L4"}


def test_what_a_tool_tells_a_model(orc: Orchestrator, path: str) -> None:
    told = call_tool(orc, "search_memory", {"query": ASKED})
    assert isinstance(told, str)
    assert set(sources(told)) == {SHOWN}
    assert_tells_no_place(told, path)


def test_people_are_told_the_whole_path(orc: Orchestrator, path: str) -> None:
    assert {each.citation for each in orc.recall(ASKED).items} == {f"{path}#L3-L4"}


def assert_tells_no_place(text: str, path: str) -> None:
    assert text
    assert str(Path(path).parent) not in text
    assert str(Path(path).parent.parent) not in text
