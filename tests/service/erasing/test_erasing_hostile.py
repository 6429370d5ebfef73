"""Erasure where something stands in the way, and what it must not touch."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote

import pytest
from erasing_worlds import LINE, NAME, OTHER, SECRET, dropped, filled, left

from ingest.pipeline import IngestPipeline
from memgraph import MemoryHooks, MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import InvalidConfig
from memgraph.ids import CountingIds
from memgraph.operations.erasure import files
from memgraph.paths import ERASURE_KEY_NAME
from memgraph.providers.fake import FakeEmbedding
from memgraph.store.erasure import searched_columns

WHY = "asked for"
OAK = "412 tools of oak & ash in the Pfützenstraße"


@pytest.fixture
def embedding(tmp_path: Path, clock: FixedClock) -> Iterator[MemoryService]:
    with MemoryService(
        tmp_path / "embedding",
        clock=clock,
        ids=CountingIds(),
        environ={},
        background=False,
        embedding=FakeEmbedding(),
    ) as made:
        yield made


def test_vectors_go_from_the_rows_the_index_and_the_file(embedding: MemoryService) -> None:
    orc = embedding.orchestrator("orc-1", create=True)
    secret, other = orc.remember(SECRET), orc.remember(OTHER)
    orc.settle()
    with embedding.opened("orc-1") as opened, opened.database.read() as connection:
        rows = connection.exec_driver_sql(
            "SELECT e.vector FROM memory_embeddings e JOIN memories m ON m.pk = e.memory_pk"
            " WHERE m.memory_id IN (?, ?) ORDER BY m.pk",
            (secret, other),
        ).all()
    gone, kept = (bytes(vector) for (vector,) in rows)
    report = orc.erasure.erase(memory_id=secret, reason=WHY, dry_run=False)
    assert report.unfinished == ()
    assert orc.verify().totals == {}
    assert orc.maintenance.embeddings_status().states == {"pending": 0, "ready": 1, "failed": 0}
    assert orc.maintenance.retry_embeddings() == 0
    assert orc.settle().embedded.ready == 0
    embedding.close()
    data = orc.paths.database.read_bytes()
    assert kept[:64] in data
    assert gone[:64] not in data


def test_numbers_that_cursors_stand_on_stay_when_the_file_is_written_anew(
    service: MemoryService, orc: Orchestrator
) -> None:
    world = filled(orc)
    numbers = "SELECT rowid, edge_id FROM memory_edges ORDER BY rowid"
    with service.opened("orc-1") as opened, opened.database.write() as connection:
        # A gap that a renumbering would close, and residue that only a new file is without.
        connection.exec_driver_sql(
            "UPDATE memory_edges SET rowid = rowid + 1000 WHERE rowid ="
            " (SELECT max(rowid) FROM memory_edges)"
        )
        before = connection.exec_driver_sql(numbers).all()
    with service.opened("orc-1") as opened, opened.database.exclusive() as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE scrap (text TEXT)")
        connection.execute("INSERT INTO scrap VALUES (?)", (SECRET * 2_000,))
        connection.execute("DROP TABLE scrap")
        connection.execute("PRAGMA secure_delete = FAST")
    report = orc.erasure.erase(memory_id=world.secret, reason=WHY, dry_run=False)
    assert report.unfinished == ()
    with service.opened("orc-1") as opened, opened.database.read() as connection:
        assert connection.exec_driver_sql(numbers).all() == before
    assert left(service, orc.paths.directory) == []


def test_links_lead_nowhere(tmp_path: Path, orc: Orchestrator) -> None:
    secret = orc.remember(SECRET)
    outside, twice = tmp_path / "outside.md", tmp_path / "twice.md"
    for each in (outside, twice):
        each.write_text(SECRET, encoding="utf-8")
    orc.paths.processed.mkdir(parents=True, exist_ok=True)
    (orc.paths.processed / "link.md").symlink_to(outside)
    (orc.paths.processed / "twice.md").hardlink_to(twice)
    report = orc.erasure.erase(memory_id=secret, reason=WHY, dry_run=False)
    assert "file.refused" in report.unfinished
    assert report.remains == ("memory/ingest/processed/twice.md",)
    assert outside.read_text(encoding="utf-8") == SECRET
    assert twice.read_text(encoding="utf-8") == SECRET


def test_manifests_and_logs_stay_what_they_are(orc: Orchestrator) -> None:
    dropped(orc, "notes.md", f"# {NAME}'s zwieback notes\n\n- {LINE}\n- Fact: {OTHER}\n")
    orc.ingestion.log_event("said", text=f"{NAME} said: {LINE}")
    [mine] = [each for each in orc.memories.list() if "attic" in each.content]
    report = orc.erasure.erase(memory_id=mine.memory_id, reason=WHY, dry_run=False)
    assert "memory/logs/memory.log" in report.files_redacted
    manifest = json.loads((orc.paths.processed / "notes.md.manifest.json").read_text())
    assert manifest["memories"] == {"stored": 2}
    for line in orc.paths.log_file.read_text().splitlines():
        assert json.loads(line)["event"]
    assert NAME not in orc.paths.log_file.read_text()


def test_words_of_the_store_itself_are_no_strings_to_look_for(orc: Orchestrator) -> None:
    attributes = {
        "role": "conversation",
        "at": "2026-11-22T15:06:06.738Z",
        "by": "channel_transcript",
    }
    secret = orc.remember("conversation", attributes=attributes, tags=["source_type"])
    orc.recall("conversation")
    report = orc.erasure.erase(memory_id=secret, reason=WHY, dry_run=False)
    assert report.unfinished == ()
    assert report.searched.strings == 0
    assert orc.verify().totals == {}


def test_a_key_that_others_may_read_seals_nothing(
    service: MemoryService, orc: Orchestrator
) -> None:
    orc.erasure.erase(memory_id=orc.remember(SECRET), reason=WHY, dry_run=False)
    key = service.root / ERASURE_KEY_NAME
    assert key.stat().st_mode & 0o077 == 0
    key.chmod(0o644)
    secret = orc.remember(OTHER)
    with pytest.raises(InvalidConfig, match="chmod 600"):
        orc.erasure.erase(memory_id=secret, reason=WHY, dry_run=False)
    key.chmod(0o600)
    assert orc.erasure.erase(memory_id=secret, reason=WHY, dry_run=False).complete


@pytest.mark.parametrize(
    ("encoding", "end"),
    [("utf-8", "\r\n"), ("utf-8", "\u2028"), ("utf-16", "\n"), ("utf-16", "\n  > ")],
)
def test_a_sentence_that_is_wrapped_goes_from_lines_it_shares(
    orc: Orchestrator, encoding: str, end: str
) -> None:
    secret = "It owns 412 tools, and most of them were donated by Quendolin."
    stays = "The library was founded by six neighbours in the old depot."
    text = f"{stays} {secret.replace(' tools', end + 'tools')} The saw 🪚 was repaired.\n"
    kept = orc.paths.processed / "kept.txt"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(text.encode(encoding))
    report = orc.erasure.erase(memory_id=orc.remember(secret), reason=WHY, dry_run=False)
    assert report.unfinished == ()
    left = kept.read_bytes().decode(encoding)
    assert left.startswith(stays)
    assert left.endswith("The saw 🪚 was repaired.\n")
    assert not [each for each in ("412", "tools", "Quendolin") if each in left]
    assert left.splitlines()[1:] != []
    assert len(left) == len(text)


def test_a_file_that_writes_it_otherwise_hides_nothing(orc: Orchestrator) -> None:
    secret = f"It owns {OAK}, donated by Quendolin."
    otherwise = [
        ("412 tools", "**412\n`tools`**"),
        ("412 tools", "[412 tools](https://example.org/tools?id=7)"),
        ("oak & ash", "oak &amp; ash"),
        ("Pfützenstraße", unicodedata.normalize("NFD", "Pfützenstraße")),
        ("Pfützenstraße", "Pf&uuml;tzenstra&#223;e"),
        ("412 tools", "<em>412</em>&nbsp;tools"),
        (" tools of oak & ash in the Pfützenstraße", "%20" + quote(OAK).removeprefix("412%20")),
    ]
    orc.paths.processed.mkdir(parents=True, exist_ok=True)
    files = [orc.paths.processed / f"kept-{number}.md" for number in range(len(otherwise))]
    for file, (plain, written) in zip(files, otherwise, strict=True):
        assert plain in secret
        text = secret.replace(plain, written)
        file.write_text(f"The saw runs. {text} And so on.\n", encoding="utf-8")
    report = orc.erasure.erase(memory_id=orc.remember(secret), reason=WHY, dry_run=False)
    names = [f"memory/ingest/processed/{file.name}" for file in files]
    assert (list(report.files_redacted), report.unfinished) == (names, ())
    for file in files:
        left = file.read_text(encoding="utf-8")
        assert left.startswith("The saw runs. ")
        assert left.endswith(" And so on.\n")
        assert not [each for each in ("412", "tools", "oak", "tra", "Quendolin") if each in left]


def test_a_dry_run_names_what_the_erasure_does_and_writes_nothing(orc: Orchestrator) -> None:
    dropped(orc, "notes.md", f"# Notes\n\n- {LINE}\n- Fact: {OTHER}\n")
    [mine] = [each for each in orc.memories.list() if "zwieback" in each.content]
    drawn = orc.remember("So it lies up there", derived_from=[mine.memory_id])
    before = orc.verify().checked["journal_entries"]
    looked = orc.erasure.erase(memory_id=mine.memory_id, reason=WHY)
    assert (looked.dry_run, looked.complete) == (True, False)
    assert orc.get(mine.memory_id) == mine
    assert orc.verify().checked["journal_entries"] == before
    assert looked.preview is not None
    assert looked.preview.derived_ids == (drawn,)
    assert looked.files_redacted == ("memory/ingest/processed/notes.md",)
    done = orc.erasure.erase(memory_id=mine.memory_id, reason=WHY, dry_run=False)
    assert done.memory_ids == looked.memory_ids
    assert done.files_redacted == looked.files_redacted


def test_a_source_that_is_no_readable_file_holds_up_no_erasure(
    service: MemoryService, orc: Orchestrator
) -> None:
    zone = orc.paths.ingest
    (zone / "folder").mkdir(parents=True)
    os.mkfifo(zone / "pipe")
    (zone / "deep.json").write_text("[" * 20_000)
    for name in ("folder", "pipe", "deep.json"):
        source = {"source_type": "ingest_file", "source_path": str(zone / name), "locator": "/0/0"}
        memory_id = orc.remember(f"{SECRET} By {name}.", source=source)
        report = orc.erasure.erase(memory_id=memory_id, reason=WHY, dry_run=False)
        assert report.unfinished == ()
    assert SECRET.encode() not in b"\n".join(orc.exchange.export_lines())


BEAM = "Fact: The zwieback lies in the attic of the house, behind the beam"
STAYS = "Fact: The deployment window is on Tuesday evening, as ever"


def holding(orc: Orchestrator, text: str) -> list[str]:
    folder = orc.paths.directory
    spelled = (text.encode(), text.encode("utf-16-le"), text.encode("utf-16-be"))
    return [
        str(each.relative_to(folder))
        for each in folder.rglob("*")
        if each.is_file() and any(one in each.read_bytes() for one in spelled)
    ]


def test_a_short_code_is_looked_for_and_a_short_phrase_is_told(orc: Orchestrator) -> None:
    # No digest, id or process number of the files can have these four characters in a row.
    code, phrase = orc.remember("PIN is 9z4x"), orc.remember("so be it")
    orc.ingestion.log_event("said", text="the PIN is 9z4x, so be it")
    first = orc.erasure.erase(memory_id=code, reason=WHY, dry_run=False)
    assert (first.searched.strings, first.searched.too_short) == (1, 0)
    assert holding(orc, "9z4x") == []
    second = orc.erasure.erase(memory_id=phrase, reason=WHY, dry_run=False)
    assert (second.searched.strings, second.searched.too_short) == (0, 1)


def test_a_day_that_was_named_is_not_taken_from_everything_else(orc: Orchestrator) -> None:
    orc.ingestion.log_event("said", text="nothing of it")
    stamp = json.loads(orc.paths.log_file.read_text().splitlines()[-1])["time"]
    date = stamp[:10]
    due = orc.remember("The bill is due soon", attributes={"due": date})
    secret = orc.remember(f"The spare key was hidden on {date} under the pot")
    assert date in [each.canonical_name for each in orc.entities.list()]
    report = orc.erasure.erase(memory_id=secret, reason=WHY, dry_run=False)
    assert report.unfinished == ()
    assert report.files_redacted == ()
    assert orc.get(due).attributes == {"due": date}


@pytest.mark.parametrize(
    ("encoding", "end"),
    [("utf-8", "\n"), ("utf-8", "\x85"), ("utf-16", "\r\n"), ("utf-16-be", "\u2028\n")],
)
def test_lines_are_those_that_were_read(orc: Orchestrator, encoding: str, end: str) -> None:
    start = "\ufeff" if encoding == "utf-16-be" else ""
    text = start + end.join(["# Notes", f"- {BEAM}", f"- {STAYS}", ""])
    orc.paths.ingest.mkdir(parents=True, exist_ok=True)
    (orc.paths.ingest / "notes.md").write_bytes(text.encode(encoding))
    IngestPipeline(orc).run()
    [mine] = [each for each in orc.memories.list() if "zwieback" in each.content]
    report = orc.erasure.erase(memory_id=mine.memory_id, reason=WHY, dry_run=False)
    assert report.unfinished == ()
    left = (orc.paths.processed / "notes.md").read_bytes().decode(encoding)
    assert len(left) == len(text.removeprefix(start if encoding == "utf-16" else ""))
    assert STAYS in left
    assert "# Notes" in left
    assert left.count(end) == text.count(end)
    assert holding(orc, "zwieback") == []


def test_a_link_that_waits_for_what_is_erased_goes(
    service: MemoryService, orc: Orchestrator
) -> None:
    name = "The tin of Quendolin"
    secret, other = orc.remember("It is full", item_id=name), orc.remember(STAYS)
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO ingest_pending_links"
            " (memory_id, target, edge_type, outgoing, weight, partial) VALUES"
            " (?1, ?2, 'RelatedTo', 1, 1.0, 0), (?1, 'deployment', 'RelatedTo', 1, 1.0, 0)",
            (other, name),
        )
    report = orc.erasure.erase(memory_id=secret, reason=WHY, dry_run=False)
    assert report.unfinished == ()
    assert report.rows["ingest_pending_links"] == 1
    with service.opened(orc.name) as opened, opened.database.read() as connection:
        left = connection.exec_driver_sql("SELECT target FROM ingest_pending_links").all()
    assert left == [("deployment",)]


def test_an_erasure_by_name_goes_on_by_name_and_what_came_since_stays(
    service: MemoryService, orc: Orchestrator
) -> None:
    orc.remember(SECRET)
    waits = orc.paths.ingest / "waits.md"
    waits.parent.mkdir(parents=True, exist_ok=True)
    waits.write_text(SECRET, encoding="utf-8")
    first = orc.erasure.erase(entity=NAME, reason=WHY, dry_run=False)
    assert first.unfinished == ("residue.found",)
    assert "erasure.unfinished" in service.health(orc.name)["degraded"]
    waits.unlink()
    since = orc.remember(f"He says it once more: {SECRET}")
    again = orc.erasure.erase(entity=NAME, reason=WHY, dry_run=False)
    assert (again.erasure_id, again.unfinished) == (first.erasure_id, ())
    assert [(each.memory_id, each.why) for each in again.kept] == [(since, "says_it")]
    assert "erasure.unfinished" not in service.health(orc.name)["degraded"]


def test_who_acted_under_the_name_is_told_and_in_nobodys_way(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True, actor=NAME)
    orc.remember(f"Mrs. {NAME} likes tea")
    report = orc.erasure.erase(entity=NAME, reason=WHY, dry_run=False)
    assert report.unfinished == ()
    assert report.searched.shared == 1


def test_a_turn_host_shows_no_bulletin_of_before(tmp_path: Path) -> None:
    with (
        MemoryService(tmp_path, environ={}) as service,
        MemoryHooks(service, "orc-1", deadline_ms=20_000) as hooks,
    ):
        orc = service.orchestrator("orc-1", create=True)
        secret = orc.remember("The oven of Quendolin is hot.", type="Decision")
        assert "Quendolin" in hooks.on_message("What now?", conversation_id="c").bulletin
        with MemoryService(tmp_path, environ={}, background=False) as other:
            other.orchestrator("orc-1").erasure.erase(memory_id=secret, reason=WHY, dry_run=False)
        service.forget("orc-1")
        path = service.paths("orc-1").database
        path.write_bytes(b"no database at all" * 1_000)
        turn = hooks.on_message("What now?", conversation_id="c")
        assert "Quendolin" not in turn.bulletin
        assert "storage.corrupt" in turn.codes


def test_a_file_that_cannot_be_read_is_told(orc: Orchestrator) -> None:
    secret = orc.remember(SECRET)
    kept = orc.paths.processed / "kept.md"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text("nothing of it", encoding="utf-8")

    read = files._whole

    def refused(path: Path) -> bytes:
        if path == kept:
            raise PermissionError(path)
        return read(path)

    with patch.object(files, "_whole", refused):
        report = orc.erasure.erase(memory_id=secret, reason=WHY, dry_run=False)
    assert report.unfinished == ("file.refused",)
    assert report.files_refused == ("memory/ingest/processed/kept.md",)
    assert orc.erasure.erase(memory_id=secret, reason=WHY, dry_run=False).unfinished == ()


def test_every_text_is_searched_but_what_stays(orc: Orchestrator) -> None:
    searched = {f"{table}.{name}" for table, names in searched_columns().items() for name in names}
    assert searched > {
        *("memories.tags", "memories.attributes", "memory_edges.reason", "memory_status.reason"),
        *("recalls.query", "recalls.request", "recall_items.explanation", "bulletins.body"),
        *("entities.summary", "ingest_files.manifest", "job_runs.reason", "memory_metadata.value"),
    }
    assert not searched & {
        *("memories.content", "memories.session_id", "memories.content_hash", "entities.name_key"),
        *("memory_sources.source_path", "audit_log.details", "memory_status.actor"),
    }
