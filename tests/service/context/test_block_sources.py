"""Where a memory comes from, as a prompt is told it: a file's name, never where it lies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memgraph import ContextAssembler, MemoryHooks, MemoryService, Orchestrator, call_tool
from memgraph.model.context import AgentProfile, BlockFormat
from memgraph.rules.conversations import WEEKLY

TEXT = "The harbour closes at nine."
ASKED = "When does the harbour close?"
SHOWN = "tide table.md#L3-L4"


@pytest.fixture
def path(service: MemoryService, orc: Orchestrator) -> str:
    """Of the file that two memories are from."""
    found = str(service.paths(orc.name).ingest / "quay" / "tide table.md")
    source = {"source_type": "ingest_file", "source_path": found, "locator": "L3-L4"}
    orc.remember(TEXT, source=source)
    orc.remember("A week of tides.", kind="reflection", tags=[WEEKLY], source=source)
    return found


def sources(block: str) -> list[str]:
    lines = [each for each in block.splitlines() if each.startswith('{"id"')]
    return [json.loads(each)["source"] for each in lines]


@pytest.mark.parametrize("form", BlockFormat)
def test_a_block_before_a_message(orc: Orchestrator, path: str, form: BlockFormat) -> None:
    block = orc.context(ASKED, format=form)
    assert len(block.memory_ids) == 2
    assert sources(block.text) == ([SHOWN] * 2 if form is BlockFormat.FENCED else [])
    assert_tells_no_place(block.text, path)


@pytest.mark.parametrize("form", BlockFormat)
def test_a_context_for_a_task(
    service: MemoryService, orc: Orchestrator, path: str, form: BlockFormat
) -> None:
    profile = AgentProfile(name="p", format=form)
    found = ContextAssembler(service, orc.name, profile=profile).build_context("t", query=ASKED)
    number = len(found.items)
    assert number > 0
    assert sources(found.text) == ([SHOWN] * number if form is BlockFormat.FENCED else [])
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
    told = call_tool(orc, "recall", {"query": ASKED})
    assert {each["source"] for each in told["memories"]} == {SHOWN}
    assert_tells_no_place(json.dumps(told), path)


def test_people_are_told_the_whole_path(orc: Orchestrator, path: str) -> None:
    assert {each.citation for each in orc.recall(ASKED).items} == {f"{path}#L3-L4"}


def assert_tells_no_place(text: str, path: str) -> None:
    assert text
    assert str(Path(path).parent) not in text
    assert "quay" not in text
