"""Erasure: nothing of a text is left anywhere, the journal still verifies, the report is signed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from erasing_worlds import LINE, NAME, OTHER, SECRET, copied, dropped, filled, left
from working import tool

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import Conflict, InvalidInput, NotFound
from memgraph.model.enums import STORED_STATUSES, MemoryStatus, MemoryType
from memgraph.store.stores import store_of

WHY = "asked for by the person"


@pytest.mark.engines
def test_nothing_is_left_of_what_was_said_everywhere(
    service: MemoryService, orc: Orchestrator
) -> None:
    world = filled(orc)
    copied(orc)
    shown = snapshots(service, orc)
    planned = orc.erasure.erase(memory_id=world.secret, reason=WHY)
    report = orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
    assert report.unfinished == ()
    assert set(report.memory_ids) == {world.secret, world.alone}
    assert report.derived == 1
    assert [(each.memory_id, each.why) for each in report.kept] == [(world.shared, "other_grounds")]
    assert report.files_removed == ("memory/backups/before-1.db", *shown)
    assert "memory/logs/memory.log" in report.files_redacted
    assert planned.files_removed == report.files_removed
    assert planned.files_redacted == report.files_redacted
    assert report.remains == ()
    assert report.searched.strings > 4
    assert orc.verify().totals == {}
    assert orc.get(world.other).content == OTHER
    assert left(service, orc.paths.directory) == []


def test_a_database_that_was_put_aside_goes_with_its_log(
    service: MemoryService, orc: Orchestrator
) -> None:
    orc.remember(OTHER)
    folder = orc.paths.memory / "replaced" / "before-restore"
    folder.mkdir(parents=True)
    # The other memory was folded into the file by then, what is erased only stands in its log.
    with service.opened(orc.name) as opened:
        opened.database.fold(after=0)
    orc.remember(SECRET)
    copies = [shutil.copy(each, folder) for each in store_of(orc.paths).files()]
    assert [SECRET.encode() in Path(each).read_bytes() for each in copies] == [False, True, False]
    planned = orc.erasure.erase(text=SECRET, reason=WHY)
    report = orc.erasure.erase(text=SECRET, reason=WHY, dry_run=False)
    names = [f"memory/replaced/before-restore/memory.db{end}" for end in ("", "-shm", "-wal")]
    assert list(planned.files_removed) == list(report.files_removed) == names
    assert (report.unfinished, list(folder.iterdir())) == ((), [])


def snapshots(service: MemoryService, orc: Orchestrator) -> tuple[str, ...]:
    """The files of bulletins, from the orchestrator's folder; there are some."""
    with service.opened(orc.name) as opened:
        opened.write_down()
    found = sorted(orc.paths.bulletins.iterdir())
    assert len(found) > 1
    return tuple(str(each.relative_to(orc.paths.directory)) for each in found)


@pytest.mark.engines
def test_a_session_goes_with_what_was_drawn_from_it_and_the_bulletins(
    service: MemoryService, orc: Orchestrator
) -> None:
    decision = orc.remember(OTHER, type=MemoryType.DECISION)
    text = orc.bulletin().bulletin.text
    other = orc.save_episode(OTHER, session_id="s-2", source_role="user")
    turn = orc.save_episode(SECRET, session_id="s-1", source_role="Quendolin")
    fact = orc.remember(f"{NAME} owns a vault", derived_from=[turn], type=MemoryType.IDENTITY)
    assert NAME in orc.bulletin().bulletin.text
    written = snapshots(service, orc)
    report = orc.erasure.erase(session_id="s-1", reason=WHY, dry_run=False)
    assert set(report.memory_ids) == {turn, fact}
    assert report.unfinished == ()
    assert (orc.get(turn).source_role, orc.get(other).content) == (None, OTHER)
    assert set(report.files_removed) == set(written)
    assert list(orc.paths.bulletins.iterdir()) == []
    delivered = orc.receipts.bulletins().bulletins
    bodies = [orc.receipts.bulletin(each.bulletin_id).body for each in delivered]
    assert bodies == ["[erased]", text]
    assert decision in orc.bulletin().bulletin.memory_ids
    assert left(service, orc.paths.directory) == []


def test_an_erased_memory_stays_as_a_place_without_text(orc: Orchestrator) -> None:
    world = filled(orc)
    report = orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
    erased = orc.get(world.secret)
    assert (erased.content, erased.summary, erased.tags, erased.attributes) == ("", "", (), {})
    assert erased.status is MemoryStatus.RETRACTED
    assert erased.item_id is None
    with pytest.raises(Conflict, match="erased"):
        orc.restore(world.secret, reason="again")
    with pytest.raises(NotFound, match="erased"):
        orc.remember("So he hides it well", derived_from=[world.other, world.secret])
    found = [each.memory.memory_id for each in orc.recall("zwieback tin").items]
    assert found == [world.shared]
    with pytest.raises(Conflict, match=f"already erased by {report.erasure_id}"):
        orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
    assert orc.erasure.reports().erasures == (report,)
    assert orc.get(orc.remember(SECRET)).content == SECRET
    assert orc.verify().totals == {}


@pytest.mark.engines
def test_what_is_erased_is_listed_and_counted_as_that_alone(
    orc: Orchestrator, clock: FixedClock
) -> None:
    secret, taken, other = orc.remember(SECRET), orc.remember("Left is right"), orc.remember(OTHER)
    orc.retract(taken, reason="wrong")
    before = clock.now_ms()
    clock.advance(days=1)
    orc.erasure.erase(memory_id=secret, reason=WHY, dry_run=False)

    def listed(*statuses: MemoryStatus, as_of: int | None = None) -> list[str]:
        found = orc.memories.list(statuses=statuses, as_of=as_of)
        return [each.memory_id for each in found]

    everything = [other, taken, secret]
    for as_of in (None, before):
        assert listed(MemoryStatus.ERASED, as_of=as_of) == [secret]
        assert listed(MemoryStatus.RETRACTED, as_of=as_of) == [taken]
        assert listed(MemoryStatus.RETRACTED, MemoryStatus.ERASED, as_of=as_of) == [taken, secret]
        assert listed(MemoryStatus.ACTIVE, MemoryStatus.ERASED, as_of=as_of) == [other, secret]
        assert listed(*STORED_STATUSES, as_of=as_of) == [other, taken]
        assert listed(*MemoryStatus, as_of=as_of) == everything
        assert listed(as_of=as_of) == everything
    assert [each.shown_status.value for each in map(orc.get, everything)] == [
        "active",
        "retracted",
        "erased",
    ]
    counted = {"active": 1, "erased": 1, "retracted": 1}
    assert orc.memories.counts()["status"] == counted
    stats = orc.maintenance.stats()
    assert stats["memories"]["status"] == counted
    assert stats["embeddings"]["failed"] == 0
    assert orc.maintenance.retry_embeddings() == 0


def test_an_entity_goes_with_all_that_names_it(service: MemoryService, orc: Orchestrator) -> None:
    world = filled(orc)
    found = [each for each in orc.entities.list() if "Xaverskyan" in each.canonical_name]
    assert found
    with pytest.raises(InvalidInput, match="repeats"):
        orc.erasure.erase(entity=found[0].entity_id, reason=f"about {NAME}", dry_run=False)
    report = orc.erasure.erase(entity=found[0].entity_id, reason=WHY, dry_run=False)
    assert {world.secret, world.alone} <= set(report.memory_ids)
    assert report.unfinished == ()
    assert report.target == found[0].entity_id
    assert not [each for each in orc.entities.list() if "Xaverskyan" in each.canonical_name]
    assert orc.verify().totals == {}
    assert NAME not in report.model_dump_json()
    assert left(service, orc.paths.directory, ("Xaverskyan", "xaverskyan")) == []


@pytest.mark.engines
def test_lines_of_a_file_go_and_the_others_stay_where_they_were(
    service: MemoryService, orc: Orchestrator
) -> None:
    dropped(orc, "notes.md", f"# Notes\n\n- {LINE}\n- Fact: {OTHER}\n")
    [mine] = [each for each in orc.memories.list() if "zwieback" in each.content]
    [kept] = [each for each in orc.memories.list() if "deployment" in each.content]
    report = orc.erasure.erase(memory_id=mine.memory_id, reason=WHY, dry_run=False)
    assert report.unfinished == ()
    assert "memory/ingest/processed/notes.md" in report.files_redacted
    lines = (orc.paths.processed / "notes.md").read_text(encoding="utf-8").split("\n")
    assert len(lines) == 5
    assert OTHER in lines[3]
    told = orc.sources.lines(kept.memory_id)
    assert (told.state, [each.text for each in told.lines]) == ("kept", [lines[3]])
    assert orc.sources.lines(mine.memory_id).state == "erased"
    assert orc.verify().totals == {}
    assert left(service, orc.paths.directory) == []


@pytest.mark.engines
def test_a_whole_file_goes_by_its_path(service: MemoryService, orc: Orchestrator) -> None:
    dropped(orc, "secret.md", f"# On {NAME}\n\nIntroduction of zwieback lore.\n\n- {LINE}\n")
    path = orc.paths.processed / "secret.md"
    planned = orc.erasure.erase(path=str(path), reason=WHY)
    assert path.exists()
    report = orc.erasure.erase(path=str(path), reason=WHY, dry_run=False)
    assert report.unfinished == ()
    assert "memory/ingest/processed/secret.md" in report.files_removed
    assert planned.files_removed == report.files_removed
    assert not path.exists()
    assert orc.verify().totals == {}
    assert left(service, orc.paths.directory) == []


def test_what_another_source_says_stays(orc: Orchestrator) -> None:
    mine = orc.remember(SECRET)
    # Its lines are broken elsewhere.
    again = SECRET.replace(" ", "\n", 3)
    same = orc.remember(f"He said: {again}")
    report = orc.erasure.erase(memory_id=mine, reason=WHY, dry_run=False)
    assert [(each.memory_id, each.why) for each in report.kept] == [(same, "says_it")]
    assert report.searched.shared > 0
    assert report.unfinished == ()
    assert orc.get(same).content == f"He said: {again}"


def test_what_is_not_there_cannot_be_erased(orc: Orchestrator) -> None:
    with pytest.raises(NotFound, match="no memory 'fact_x'; an erasure takes a whole id"):
        orc.erasure.erase(memory_id="fact_x", reason=WHY, dry_run=False)
    with pytest.raises(NotFound, match="no memory of the run 'nope'"):
        orc.erasure.erase(workflow_run_id="nope", reason=WHY, dry_run=False)
    with pytest.raises(NotFound):
        orc.erasure.erase(entity="Nobody", reason=WHY, dry_run=False)
    with pytest.raises(NotFound):
        orc.erasure.erase(session_id="none", reason=WHY, dry_run=False)
    with pytest.raises(InvalidInput):
        orc.erasure.erase(reason=WHY, dry_run=False)
    with pytest.raises(InvalidInput):
        orc.erasure.erase(memory_id="a", session_id="b", reason=WHY, dry_run=False)
    # Nor a text that is everywhere.
    for text in ("ab", " a ", "**"):
        with pytest.raises(InvalidInput, match="too short"):
            orc.erasure.erase(text=text, reason=WHY, dry_run=False)


PERSON = "Quillaxina Zorbentrop"
SPELLINGS = ("Quillaxina", "quillaxina", "QUILLAXINA", "Zorbentrop")
SAID = (
    f"Yesterday {PERSON} paid the rent.",
    f"the kettle belongs to {PERSON.lower()}",
    f"{PERSON.upper()} IS AWAY",
    "Ｑｕｉｌｌａｘｉｎａ  Zorbentrop has left",
    f"ask Dr{PERSON}s assistant",
)


def named(orc: Orchestrator) -> tuple[list[str], str]:
    """The memories that say the name, and one that does not; it stands in files, too."""
    said = [orc.remember(text) for text in SAID]
    other = orc.remember(
        OTHER, tags=[f"for {PERSON}"], attributes={"title": f"On {PERSON}", "hmac": PERSON}
    )
    orc.recall(f"what did {PERSON} pay?")
    orc.ingestion.log_event("said", text=f"so says {PERSON.upper()}")
    for folder, name in ((orc.paths.rejected, "zorb.json"), (orc.paths.processed, "notes.md")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps({"by": f"{PERSON},\n{OTHER}"}), encoding="utf-8")
    return said, other


@pytest.mark.engines
def test_a_name_that_is_no_entity_goes_from_everywhere(
    service: MemoryService, orc: Orchestrator
) -> None:
    said, other = named(orc)
    if not orc.entities.list():
        with pytest.raises(NotFound, match="name it as a text"):
            orc.erasure.erase(entity=PERSON, reason=WHY, dry_run=False)
    looked = orc.erasure.erase(text=PERSON, reason=WHY)
    assert looked.preview is not None
    assert sorted(looked.memory_ids) == sorted(said)
    files = ("memory/ingest/processed/notes.md", "memory/ingest/rejected/zorb.json")
    assert orc.get(said[0]).content == SAID[0]
    report = orc.erasure.erase(text=PERSON, reason=WHY, dry_run=False)
    assert report.complete
    assert report.remains == ()
    assert set(report.memory_ids) == set(said)
    assert set(files) <= set(report.files_redacted)
    assert PERSON not in report.model_dump_json()
    changed = orc.get(other)
    assert (changed.content, changed.tags) == (OTHER, ("for [erased]",))
    assert changed.attributes == {"title": "On [erased]", "hmac": "[erased]"}
    assert json.loads((orc.paths.rejected / "zorb.json").read_text())["by"].endswith(OTHER)
    assert orc.verify().totals == {}
    again = orc.erasure.erase(text=PERSON.lower(), reason=WHY, dry_run=False)
    assert (again.memory_ids, again.rows, again.files_redacted) == ((), {}, ())
    assert again.target == report.target
    assert left(service, orc.paths.directory, SPELLINGS) == []


def test_entities_and_aliases_with_it_go(service: MemoryService, orc: Orchestrator) -> None:
    tool(orc, "remember_fact", content="The rent is paid.", entity_names=[PERSON, "Bergen"])
    assert {each.canonical_name for each in orc.entities.list()} >= {PERSON}
    report = orc.erasure.erase(text="zorbentrop", reason=WHY, dry_run=False)
    assert report.complete
    assert report.memory_ids == ()
    assert report.entities == 1
    assert not [each for each in orc.entities.list() if "Zorbentrop" in each.canonical_name]
    assert orc.verify().totals == {}
    assert left(service, orc.paths.directory, SPELLINGS) == []


def test_where_it_is_an_id_it_stays_and_is_counted(orc: Orchestrator) -> None:
    turn = orc.save_episode(f"I am {PERSON}.", session_id=PERSON, source_role="user")
    report = orc.erasure.erase(text=PERSON, reason=WHY, dry_run=False)
    assert report.complete
    assert report.memory_ids == (turn,)
    assert report.searched.shared == 1
    assert orc.get(turn).session_id == PERSON
