"""The lines that a memory was read from: those alone, of the very file, and for nobody else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ingest.pipeline import IngestPipeline
from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.errors import InvalidInput, NotFound
from memgraph.graph.influence import grounds
from memgraph.model.enums import Sensitivity
from memgraph.model.influence import SourceLines
from memgraph.model.values import Memory
from memgraph.operations.provenance.sources import with_lines
from memgraph.store.visibility import View

NOTES = "# Shop\n\nThe shop closes at six on Fridays.\n\nThe oven was repaired in May.\n"
SECRET = "The safe holds the deeds of the house."


def ingested(orc: Orchestrator, name: str, text: str) -> dict[str, Memory]:
    """What a dropped file became, by the text of each."""
    orc.paths.ingest.mkdir(parents=True, exist_ok=True)
    (orc.paths.ingest / name).write_text(text, encoding="utf-8")
    IngestPipeline(orc, now_ms=lambda: 1_767_225_600_000).run()
    return {each.content: each for each in orc.memories.list(statuses=(), limit=100)}


def one_of(found: dict[str, Memory], words: str) -> Memory:
    [one] = [memory for text, memory in found.items() if words in text]
    return one


def shown(found: SourceLines) -> list[tuple[int | None, str]]:
    return [(line.number, line.text) for line in found.lines]


def stored_file(orc: Orchestrator, memory: Memory) -> Path:
    path = orc.sources.lines(memory.memory_id).path
    assert path is not None
    return Path(path)


def test_a_value_of_a_json_file_is_shown_by_its_pointer(orc: Orchestrator) -> None:
    records = [{"about": "Tea is at four."}, {"about": "Cake is at five."}]
    memory = one_of(ingested(orc, "records.json", json.dumps(records)), "Cake")
    found = orc.sources.lines(memory.memory_id)
    assert (found.state, found.first_line) == ("kept", None)
    text = "\n".join(line.text for line in found.lines)
    assert "Cake is at five." in text
    assert "Tea" not in text
    assert {line.number for line in found.lines} == {None}


def test_no_line_is_shown_of_a_file_that_is_not_the_one_that_was_read(orc: Orchestrator) -> None:
    memory = one_of(ingested(orc, "notes.md", NOTES), "oven")
    path = stored_file(orc, memory)
    path.chmod(0o600)
    path.write_text(NOTES.replace("May", "June"), encoding="utf-8")
    changed = orc.sources.lines(memory.memory_id)
    assert (changed.state, changed.lines, changed.last_line) == ("changed", (), 5)
    path.unlink()
    assert orc.sources.lines(memory.memory_id).state == "gone"
    elsewhere = orc.paths.memory / "elsewhere.md"
    elsewhere.write_text(NOTES, encoding="utf-8")
    path.symlink_to(elsewhere)
    assert orc.sources.lines(memory.memory_id).state == "gone"
    path.unlink()
    os.mkfifo(path)
    assert orc.sources.lines(memory.memory_id).state == "gone"


def test_a_memory_has_its_own_lines_of_the_file_that_is_kept_and_a_root_may_be_moved(
    service: MemoryService, tmp_path: Path
) -> None:
    orc = service.orchestrator("orc-1", create=True)
    memory = one_of(ingested(orc, "notes.md", NOTES), "oven")
    found = orc.sources.lines(memory.memory_id)
    assert (found.state, found.first_line, found.last_line) == ("kept", 5, 5)
    assert shown(found) == [(5, "The oven was repaired in May.")]
    assert (found.turns, found.cut) == ((), False)
    service.close()
    (tmp_path / "root").rename(tmp_path / "moved")
    with MemoryService(tmp_path / "moved", environ={}, background=False) as moved:
        there = moved.orchestrator("orc-1").sources.lines(memory.memory_id)
    assert (there.state, there.lines) == ("kept", found.lines)


@pytest.mark.parametrize("locator", ["L1-L999", "#"])
def test_who_names_a_file_as_a_source_reads_nothing_of_it(
    service: MemoryService, orc: Orchestrator, locator: str
) -> None:
    """One who may write and knows path and digest must not see what others' lines say."""
    text = f"{NOTES}\n{SECRET}\n"
    known = orc.sources.lines(one_of(ingested(orc, "notes.md", text), "oven").memory_id)
    low = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.PUBLIC))
    source = {
        "source_type": "ingest_file",
        "source_path": known.path,
        "content_sha256": known.source.content_sha256,
        "locator": locator,
    }
    made = low.remember("Nothing of it.", source=source, sensitivity="Public")
    found = low.sources.lines(made)
    assert (found.state, found.lines) == ("unverified", ())
    assert SECRET not in found.model_dump_json()
    # Nor by saying first what the file is about to say.
    early = low.remember("A guess of a line.", source=source, sensitivity="Public")
    ingested(orc, "more.md", "# More\n\nA guess of a line.\n\nThe rest is secret.\n")
    assert low.sources.lines(early).lines == ()


@pytest.mark.parametrize("says_it", ["first", "again"])
def test_lines_of_what_is_hidden_are_left_out(
    service: MemoryService, orc: Orchestrator, says_it: str
) -> None:
    found = ingested(orc, "notes.md", NOTES)
    memory, other = one_of(found, "oven"), one_of(found, "closes")
    # As if a second memory of the same lines were for few.
    statement = {
        "first": "UPDATE memories SET source_id ="
        " (SELECT source_id FROM memories WHERE memory_id = ?) WHERE memory_id = ?",
        "again": "INSERT INTO memory_supports (source_id, added_at, memory_id)"
        " SELECT source_id, created_at, ?2 FROM memories WHERE memory_id = ?1",
    }[says_it]
    hide = "UPDATE memories SET sensitivity = 'Restricted' WHERE memory_id = ?"
    with service.opened("orc-1") as opened, opened.database.write() as connection:
        connection.exec_driver_sql(statement, (memory.memory_id, other.memory_id))
        connection.exec_driver_sql(hide, (other.memory_id,))
    assert orc.sources.lines(memory.memory_id).lines == ()
    high = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    assert len(high.sources.lines(memory.memory_id).lines) == 1


def test_a_memory_of_a_talk_has_the_turns_that_the_reader_sees(
    service: MemoryService, orc: Orchestrator
) -> None:
    said = [
        orc.save_episode(text, session_id="monday", source_role="user")
        for text in ("We open at nine.", "On Fridays at ten.")
    ]
    hidden = orc.save_episode(
        SECRET, session_id="monday", source_role="user", sensitivity="Restricted"
    )
    high = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    fact = high.remember("The shop opens at nine.", derived_from=[*said, hidden])
    found = orc.sources.lines(fact)
    assert [(turn.memory_id, turn.text) for turn in found.turns] == [
        (said[0], "We open at nine."),
        (said[1], "On Fridays at ten."),
    ]
    assert (found.state, found.lines, found.cut) == ("none", (), False)
    assert len(high.sources.lines(fact).turns) == 3


def test_grounds_go_down_to_the_lines_of_as_many_as_are_asked_for(orc: Orchestrator) -> None:
    found = ingested(orc, "notes.md", NOTES)
    ground = one_of(found, "oven")
    fact = orc.remember("The oven works.", derived_from=[ground.memory_id])
    whole = orc.graph.grounds(fact, lines=10)
    told = [(each.memory_id, len(each.lines)) for each in whole.lines]
    assert told[:2] == [(fact, 0), (ground.memory_id, 1)]
    assert not whole.cut
    assert orc.graph.grounds(fact, lines=1).cut_reasons == ("max_lines",)
    assert orc.graph.grounds(fact).lines == ()
    for wrong in (-1, 1_001, "1"):
        with pytest.raises(InvalidInput):
            orc.graph.grounds(fact, lines=wrong)  # type: ignore[arg-type]  # what a caller may pass


def test_what_is_erased_while_grounds_are_read_is_told_as_such(
    service: MemoryService, orc: Orchestrator
) -> None:
    ground = one_of(ingested(orc, "notes.md", NOTES), "oven").memory_id
    other = orc.remember("The oven is large.")
    fact = orc.remember("The oven works.", derived_from=[ground, other])
    with service.opened("orc-1") as opened:
        with opened.database.read() as snapshot:
            found = grounds(snapshot, View(orc.viewer), memory_id=fact)
        orc.erasure.erase(memory_id=ground, reason="asked", dry_run=False)
        told = with_lines(opened, View(orc.viewer), found, limit=10).lines
    states = {each.memory_id: (each.state, each.lines) for each in told}
    assert states[ground] == ("erased", ())
    assert states[other] == ("none", ())


def test_grounds_are_of_a_memory_or_of_a_run(orc: Orchestrator) -> None:
    fact = orc.remember("The oven works.")
    for wrong in (
        {},
        {"memory_id": fact, "workflow_run_id": "run-1"},
        {"workflow_run_id": "\ud800"},
    ):
        with pytest.raises(InvalidInput):
            orc.graph.grounds(**wrong)
    with pytest.raises(NotFound):
        orc.sources.lines("fact_none")
    with pytest.raises(NotFound, match="no run 'run-1'"):
        orc.graph.grounds(workflow_run_id="run-1")
