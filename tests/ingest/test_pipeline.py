from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from ingest_runs import drop, interrupt, manifest

from ingest.claims import CLAIMS, FileResult, claim
from ingest.pipeline import MAX_ATTEMPTS, IngestPipeline, Progress
from ingest.reasons import RejectionReason, SkippedPart
from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import DatabaseBusy, IngestRejected, MemoryDisabled, StorageError
from memgraph.model.enums import STORED_STATUSES, EdgeType, MemoryStatus, MemoryType
from memgraph.model.sources import Document, DocumentOutcome
from memgraph.operations.ingestion.ingest import ABANDONED_MS
from memgraph.operations.ingestion.operations import LocalIngestion

RECORD = "# {number}. {title}\n\n## Status\n\n{status}\n\n## Decision\n\nWe choose {title}.\n"
LONG_RECORD = f"{RECORD}\n## Consequences\n\nLess coffee.\n".format(
    number=1, title="Tea", status="Accepted"
)
ALL = STORED_STATUSES


def run(orc: Orchestrator, **options: Any) -> list[FileResult]:
    return IngestPipeline(orc, now_ms=lambda: 1_767_225_600_000, **options).run()


def only(report: list[FileResult]) -> FileResult:
    (result,) = report
    return result


def record(number: int, title: str, status: str = "Accepted") -> str:
    return RECORD.format(number=number, title=title, status=status)


def decisions(orc: Orchestrator) -> dict[str, tuple[str, MemoryStatus]]:
    found = orc.memories.list(types=[MemoryType.DECISION], statuses=ALL)
    return {each.attributes["title"]: (each.memory_id, each.status) for each in found}


def edges_between(orc: Orchestrator, ids: list[str]) -> set[tuple[str, str, EdgeType]]:
    graph = orc.graph.subgraph(ids, hops=1)
    return {(edge.from_id, edge.to_id, edge.edge_type) for edge in graph.edges}


def test_a_file_becomes_memories_and_ends_in_processed(orc: Orchestrator) -> None:
    path = drop(orc, "adr/0001-tea.md", record(1, "Tea"))
    result = only(run(orc))
    assert (result.outcome, result.reason) == ("processed", None)
    assert not path.exists()
    kept = orc.paths.processed / "adr" / "0001-tea.md"
    assert kept.read_text() == record(1, "Tea")
    told = manifest(orc, result)
    assert told["outcome"] == "processed"
    assert told["sha256"] == result.sha256
    assert told["memories"] == {"stored": 1}
    (item,) = told["items"]["memories"]
    memory = orc.get(item["memory_id"])
    assert memory.type is MemoryType.DECISION
    source = orc.trace(memory.memory_id).sources[0]
    assert source.captured_by == "extractor"
    assert source.source_path == str(kept)
    assert source.content_sha256 == result.sha256
    assert list((orc.paths.ingest / CLAIMS).glob("[!.]*")) == []


def test_a_line_of_two_files_is_part_of_both(orc: Orchestrator) -> None:
    drop(orc, "a.txt", "The crane is slow.\nMira has the key.\n")
    drop(orc, "b.txt", "We met at noon.\nMira has the key.\n----\n")
    first, second = run(orc)
    assert second.left_out == manifest(orc, second)["left_out"] == {"rule": 1}
    crane, key = (item["memory_id"] for item in manifest(orc, first)["items"]["memories"])
    noon, again = (item["memory_id"] for item in manifest(orc, second)["items"]["memories"])
    assert again == key
    assert edges_between(orc, [key]) == {
        (key, crane, EdgeType.PART_OF),
        (key, noon, EdgeType.PART_OF),
    }
    # The second file is a further source of the line.
    assert "support" in {entry.action for entry in orc.trace(key).journal}


def test_a_corrected_date_counts_when_the_file_was_retracted(orc: Orchestrator) -> None:
    def times(day: str) -> set[int | None]:
        drop(orc, "note.md", f"# Stall\n\n## {day}\n\nThe crane is slow.\n\nThe till is empty.\n")
        run(orc)
        return {memory.event_time for memory in orc.memories.list()}

    assert times("03/05/2026") == {None}
    # What is stored already stays as it is, whatever another file says of it.
    assert times("2026-05-02") == {None}
    report = orc.sources.retract(path="note.md", reason="no date", dry_run=False)
    [other] = report.same_name
    assert other == str(orc.paths.processed / "note~2.md")
    report = orc.sources.retract(path=other, reason="a wrong date", dry_run=False)
    assert report.same_name == ()
    assert times("2026-05-03") == {1_777_766_400_000}
    assert orc.verify().ok


def test_the_same_content_again_is_a_duplicate(orc: Orchestrator) -> None:
    drop(orc, "a.md", record(1, "Tea"))
    run(orc)
    drop(orc, "b.md", record(1, "Tea"))
    drop(orc, "a.md", record(1, "Tea"))
    report = run(orc)
    assert [each.outcome for each in report] == ["duplicate", "duplicate"]
    told = manifest(orc, report[1])
    assert told["first"] == {"path": "a.md", "stored_as": "processed/a.md"}
    assert told["message"] == report[0].message
    assert told["message"] == "the same content as processed/a.md (processed/a.md.manifest.json)"
    assert len(decisions(orc)) == 1
    names = sorted(each.name for each in orc.paths.processed.glob("*.md"))
    assert names == ["a.md", "a~2.md", "b.md"]


@pytest.mark.parametrize(
    ("folder", "content"), [("processed", "nothing of use"), ("rejected", b"\xff\xfe\x00")]
)
def test_nothing_goes_through_a_link_that_was_set_aside(
    orc: Orchestrator, tmp_path: Path, folder: str, content: str | bytes
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (orc.paths.ingest / "sub").symlink_to(outside)
    assert only(run(orc)).reason == RejectionReason.LINK
    if folder == "processed":
        (orc.paths.rejected / "sub").rename(orc.paths.processed / "sub")
    dropped = [drop(orc, "sub/a.md", content), drop(orc, "sub/a.exe", b"x")]
    results = run(orc)
    assert [each.exists() for each in dropped] == [False, False]
    assert list(outside.iterdir()) == []
    assert len(results) == 2
    for result in results:
        assert manifest(orc, result)["stored_as"] == result.stored_as
        assert (orc.paths.ingest / str(result.stored_as)).is_file()


def test_a_file_in_the_way_of_a_folder_stops_nothing(orc: Orchestrator) -> None:
    drop(orc, "sub.md", "We close at six on Fridays.")
    assert only(run(orc)).outcome == "processed"
    drop(orc, "sub.md/a.md", "We open at nine on Mondays.")
    result = only(run(orc))
    assert (result.outcome, result.stored_as) == ("processed", "processed/a.md")


@pytest.mark.parametrize("own", [CLAIMS, "processed", "rejected"])
def test_a_link_in_the_place_of_an_own_folder_is_refused(
    orc: Orchestrator, tmp_path: Path, own: str
) -> None:
    outside, place = tmp_path / "outside", orc.paths.ingest / own
    outside.mkdir()
    if place.exists():
        place.rmdir()
    place.symlink_to(outside)
    dropped = drop(orc, "a.md", "We close at six on Fridays.")
    with pytest.raises(IngestRejected):
        run(orc)
    assert dropped.exists()
    assert list(outside.iterdir()) == []


def test_a_file_that_is_being_written_is_left_alone(orc: Orchestrator) -> None:
    path = drop(orc, "a.md", "")
    with path.open("w") as file:
        file.write(record(1, "Tea")[:20])
        file.flush()
        result = only(run(orc))
        assert (result.outcome, result.reason) == ("skipped", RejectionReason.STILL_BEING_WRITTEN)
        assert path.exists()
        file.write(record(1, "Tea")[20:])
    assert only(run(orc)).outcome == "processed"
    assert list(decisions(orc)) == ["Tea"]


def test_a_part_that_was_left_out_is_counted_and_nothing_else(orc: Orchestrator) -> None:
    tea = {"content": "Tea is served at four.", "type": "Fact"}
    items = [tea | {"key": "a"}, tea | {"key": "b"}, tea | {"weight": 3}]
    ends = [("a", "nowhere"), ("a", "b")]
    edges = [{"from": start, "to": end, "type": "RelatedTo"} for start, end in ends]
    drop(orc, "m.json", json.dumps({"memories": items, "edges": edges}))
    drop(orc, "n.json", json.dumps({"memories": [tea | {"importance": 95}]}))
    first, second = run(orc)
    # Two items with one content are one memory, which cannot be joined with itself.
    assert first.counts["rejected_items"] == {"memories": 1, "edges": 2}
    assert first.counts["memories"] == {"duplicate": 1, "stored": 1}
    assert (second.partial, second.reason) == (False, None)
    assert second.findings == {SkippedPart.IMPORTANCE_CAPPED: 1}
    assert second.as_dict()["partial"] is False


@pytest.mark.parametrize(("name", "hours"), [("a.json", 0), ("b.txt", 2)])
def test_a_copy_waits_for_an_interrupted_file_and_nothing_of_it_is_retracted(
    orc: Orchestrator, clock: FixedClock, name: str, hours: int
) -> None:
    turns = 200
    talk = "\n".join(f"{'Ann' if n % 2 else 'Bo'}: Noted, hall {n}." for n in range(turns))
    drop(orc, "a.txt", talk)
    interrupt(orc)
    before = {each.memory_id for each in orc.memories.list(limit=1000)}
    assert 0 < len(before) < turns
    orc.confirm(min(before))
    clock.advance(ms=hours * ABANDONED_MS)
    drop(orc, name, talk)
    told = {each.path: (each.outcome, each.reason, each.resumed) for each in run(orc)}
    assert told == {
        name: ("skipped", RejectionReason.BEING_STORED, False),
        "a.txt": ("processed", None, True),
    }
    assert only(run(orc)).outcome == "duplicate"
    stored = orc.memories.list(statuses=ALL, limit=1000)
    assert before < {each.memory_id for each in stored}
    assert [each.status for each in stored] == [MemoryStatus.ACTIVE] * turns


@contextmanager
def failing(error: BaseException, *, after: bool) -> Iterator[None]:
    """The next file is stored and then fails, or fails at once."""
    really, errors = LocalIngestion.store, [error]

    def store(self: Any, document: Document, **options: Any) -> DocumentOutcome:
        if errors and not after:
            raise errors.pop()
        outcome = really(self, document, **options)
        if errors:
            raise errors.pop()
        return outcome

    with patch.object(LocalIngestion, "store", store):
        yield


@pytest.mark.parametrize("after", [True, False])
def test_a_run_that_dies_is_ended_by_the_next_with_the_same_manifest(
    service: MemoryService, after: bool
) -> None:
    calm_one, dying = (service.orchestrator(name, create=True) for name in ("calm", "dying"))
    for each in (calm_one, dying):
        drop(each, "a.md", LONG_RECORD)
    with failing(KeyboardInterrupt(), after=after), pytest.raises(KeyboardInterrupt):
        run(dying)
    assert list(dying.paths.processed.iterdir()) == []
    results = [only(run(each)) for each in (calm_one, dying)]
    assert (results[1].outcome, results[1].resumed) == ("processed", after)
    assert run(dying) == []
    calm, died = manifests = [manifest(calm_one, results[0]), manifest(dying, results[1])]
    ids = [each["memory_id"] for each in died["items"]["memories"]]
    edges = {each["edge_id"] for each in died["items"]["edges"]}
    assert {each.memory_id for each in dying.memories.list()} == set(ids)
    assert {each.edge_id for each in dying.graph.subgraph(ids).edges} == edges
    for told in manifests:
        for each in (*told["items"]["memories"], *told["items"]["edges"]):
            each.pop("memory_id", None)
            each.pop("edge_id", None)
        for name in ("claim", "started_at", "ended_at", "resumed"):
            told.pop(name)
    assert calm == died


def test_a_busy_database_costs_one_file_one_run(orc: Orchestrator) -> None:
    drop(orc, "a.md", record(1, "Tea"))
    drop(orc, "b.md", record(2, "Juice"))
    with failing(DatabaseBusy("busy"), after=False):
        report = run(orc)
    assert [(each.outcome, each.reason) for each in report] == [
        ("failed", "storage.busy"),
        ("processed", None),
    ]
    assert only(run(orc)).outcome == "processed"
    assert len(decisions(orc)) == 2


def test_a_broken_database_stops_the_run_and_loses_nothing(orc: Orchestrator) -> None:
    drop(orc, "a.md", record(1, "Tea"))
    drop(orc, "b.md", record(2, "Juice"))
    with failing(StorageError("broken"), after=False), pytest.raises(StorageError):
        run(orc)
    assert [each.outcome for each in run(orc)] == ["processed", "processed"]


def test_a_file_that_always_kills_its_reader_is_set_aside(orc: Orchestrator) -> None:
    drop(orc, "a.md", record(1, "Tea"))
    taken = claim(orc.paths.ingest, "a.md", at=1)
    assert taken is not None
    for _ in range(MAX_ATTEMPTS):
        taken.begin(at=1)
    assert [only(run(orc)).outcome for _ in range(2)] == ["held", "skipped"]
    assert taken.file.exists()


def test_progress_is_told_before_and_after(orc: Orchestrator) -> None:
    drop(orc, "a.md", record(1, "Tea"))
    drop(orc, "b.md", "")
    told: list[Progress] = []
    run(orc, progress=told.append)
    assert [(each.done, each.total, each.path) for each in told] == [
        (0, 2, "a.md"),
        (1, 2, "a.md"),
        (1, 2, "b.md"),
        (2, 2, "b.md"),
    ]
    assert [each.result.outcome for each in told if each.result] == ["processed", "rejected"]


def test_ingestion_can_be_switched_off(tmp_path: Path) -> None:
    with MemoryService(
        tmp_path / "r", config={"memory.ingest.enabled": False}, environ={}, background=False
    ) as service:
        orc = service.orchestrator("orc-1", create=True)
        (orc.paths.ingest / "a.md").write_text("words")
        with pytest.raises(MemoryDisabled):
            run(orc)
        assert (orc.paths.ingest / "a.md").exists()


def test_every_file_is_logged(orc: Orchestrator) -> None:
    drop(orc, "a.md", record(1, "Tea"))
    drop(orc, "b.md", "")
    run(orc)
    lines = [json.loads(line) for line in orc.paths.log_file.read_text().splitlines()]
    told = {each["event"]: each["reason"] for each in lines if each["event"].startswith("ingest.")}
    assert told == {"ingest.processed": None, "ingest.rejected": RejectionReason.EMPTY}


def test_a_date_is_read_as_those_of_the_other_records_are(orc: Orchestrator) -> None:
    def dated(number: int, day: str) -> str:
        text = record(number, f"Use queue {number}")
        return text.replace("## Status", f"Date: {day}\n\n## Status", 1)

    drop(orc, "adr/0001-q.md", dated(1, "05/06/2023"))
    drop(orc, "adr/0002-q.md", dated(2, "13/06/2023"))
    drop(orc, "other/0001-q.md", dated(9, "05/06/2023"))
    run(orc)
    days = {
        each.attributes["title"]: each.event_time
        for each in orc.memories.list(types=[MemoryType.DECISION])
    }
    assert days == {
        "Use queue 1": 1685923200000,
        "Use queue 2": 1686614400000,
        "Use queue 9": None,
    }
