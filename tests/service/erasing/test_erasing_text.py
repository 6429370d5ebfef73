"""Erasing a person by a literal text, wherever it stands under the root."""

from __future__ import annotations

import json

import pytest
from erasing_worlds import OTHER, left
from working import tool

from memgraph import MemoryService, Orchestrator
from memgraph.errors import InvalidInput, NotFound

WHY = "asked for by the person"
NAME = "Quillaxina Zorbentrop"
CANARIES = ("Quillaxina", "quillaxina", "QUILLAXINA", "Zorbentrop")
SAID = (
    f"Yesterday {NAME} paid the rent.",
    f"the kettle belongs to {NAME.lower()}",
    f"{NAME.upper()} IS AWAY",
    "Ｑｕｉｌｌａｘｉｎａ  Zorbentrop has left",
    f"ask Dr{NAME}s assistant",
)


def world(orc: Orchestrator) -> tuple[list[str], str]:
    """The memories that say the name, and one that does not; it stands in files, too."""
    said = [orc.remember(text) for text in SAID]
    other = orc.remember(
        OTHER, tags=[f"for {NAME}"], attributes={"title": f"On {NAME}", "hmac": NAME}
    )
    orc.recall(f"what did {NAME} pay?")
    orc.ingestion.log_event("said", text=f"so says {NAME.upper()}")
    for folder, name in ((orc.paths.rejected, "zorb.json"), (orc.paths.processed, "notes.md")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps({"by": f"{NAME},\n{OTHER}"}), encoding="utf-8")
    return said, other


@pytest.mark.engines
def test_a_name_that_is_no_entity_goes_from_everywhere(
    service: MemoryService, orc: Orchestrator
) -> None:
    said, other = world(orc)
    if not orc.entities.list():
        with pytest.raises(NotFound, match="name it as a text"):
            orc.erasure.erase(entity=NAME, reason=WHY, dry_run=False)
    looked = orc.erasure.erase(text=NAME, reason=WHY)
    assert looked.preview is not None
    assert sorted(looked.memory_ids) == sorted(said)
    files = ("memory/ingest/processed/notes.md", "memory/ingest/rejected/zorb.json")
    assert orc.get(said[0]).content == SAID[0]
    report = orc.erasure.erase(text=NAME, reason=WHY, dry_run=False)
    assert report.complete
    assert report.remains == ()
    assert set(report.memory_ids) == set(said)
    assert set(files) <= set(report.files_redacted)
    assert NAME not in report.model_dump_json()
    changed = orc.get(other)
    assert (changed.content, changed.tags) == (OTHER, ("for [erased]",))
    assert changed.attributes == {"title": "On [erased]", "hmac": "[erased]"}
    assert json.loads((orc.paths.rejected / "zorb.json").read_text())["by"].endswith(OTHER)
    assert orc.verify().totals == {}
    again = orc.erasure.erase(text=NAME.lower(), reason=WHY, dry_run=False)
    assert (again.memory_ids, again.rows, again.files_redacted) == ((), {}, ())
    assert again.target == report.target
    assert left(service, orc.paths.directory, CANARIES) == []


def test_entities_and_aliases_with_it_go(service: MemoryService, orc: Orchestrator) -> None:
    tool(orc, "remember_fact", content="The rent is paid.", entity_names=[NAME, "Bergen"])
    assert {each.canonical_name for each in orc.entities.list()} >= {NAME}
    report = orc.erasure.erase(text="zorbentrop", reason=WHY, dry_run=False)
    assert report.complete
    assert report.memory_ids == ()
    assert report.entities == 1
    assert not [each for each in orc.entities.list() if "Zorbentrop" in each.canonical_name]
    assert orc.verify().totals == {}
    assert left(service, orc.paths.directory, CANARIES) == []


def test_where_it_is_an_id_it_stays_and_is_counted(orc: Orchestrator) -> None:
    turn = orc.save_episode(f"I am {NAME}.", session_id=NAME, source_role="user")
    report = orc.erasure.erase(text=NAME, reason=WHY, dry_run=False)
    assert report.complete
    assert report.memory_ids == (turn,)
    assert report.searched.shared == 1
    assert orc.get(turn).session_id == NAME


def test_a_text_that_is_everywhere_is_refused(orc: Orchestrator) -> None:
    for text in ("ab", " a ", "**"):
        with pytest.raises(InvalidInput, match="too short"):
            orc.erasure.erase(text=text, reason=WHY, dry_run=False)
