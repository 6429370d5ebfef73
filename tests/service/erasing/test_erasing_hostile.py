"""Erasure where something stands in the way, and what it must not touch."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from erasing_worlds import LINE, NAME, OTHER, SECRET, dropped, filled, left

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import InvalidConfig
from memgraph.ids import CountingIds
from memgraph.paths import ERASURE_KEY_NAME
from memgraph.providers.fake import FakeEmbedding

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
    orc.maintenance.embed_pending()
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
    assert orc.maintenance.embed_pending().ready == 0
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
