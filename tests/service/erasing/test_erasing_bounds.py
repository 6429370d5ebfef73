"""What an erasure must not spare, and what it must not take with it."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import pytest
from erasing_worlds import NAME, SECRET

from ingest.pipeline import IngestPipeline
from memgraph import MemoryHooks, MemoryService, Orchestrator
from memgraph.errors import NotFound
from memgraph.operations.erasure import files
from memgraph.store.erasure import searched_columns

WHY = "asked for"
LINE = "Fact: The zwieback lies in the attic of the house, behind the beam"
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
    text = start + end.join(["# Notes", f"- {LINE}", f"- {STAYS}", ""])
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
