"""Large files: stored in parts beside others, interrupted, gone on with, bounded, given up."""

from __future__ import annotations

import threading
import time

from ingest_runs import drop, exhaust, interrupt, manifest
from sqlmodel import col, select

from ingest.claims import CLAIMS
from ingest.pipeline import IngestPipeline, Progress
from ingest.reasons import RejectionReason
from memgraph import MemoryService, Orchestrator
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.model.tables import AuditRow

TODOS = 400


def notes(count: int = TODOS) -> str:
    return "# Keys\n\n" + "\n".join(f"- [ ] Ask Ann for the key of room {n}." for n in range(count))


def todos(orc: Orchestrator) -> list[str]:
    return [each.content for each in orc.memories.list(types=[MemoryType.TODO], limit=1000)]


def test_an_interrupted_file_goes_on_where_it_was(orc: Orchestrator) -> None:
    drop(orc, "keys.md", notes())
    interrupt(orc, 2)
    before = set(todos(orc))
    assert 0 < len(before) < TODOS
    told: list[Progress] = []
    (result,) = IngestPipeline(orc, progress=told.append).run()
    assert (result.outcome, result.resumed) == ("processed", True)
    assert len(todos(orc)) == len(set(todos(orc))) == TODOS
    steps = [(each.steps_done, each.steps) for each in told if each.steps]
    assert len(before) <= steps[0][0] <= steps[-1][0] <= steps[-1][1]
    written = manifest(orc, result)
    assert written["memories"]["stored"] == len(written["items"]["memories"])
    recorded = orc.ingestion.get(str(result.sha256)).manifest
    assert recorded is not None
    assert recorded["items"] == written["items"]
    assert orc.verify().totals == {}


def test_new_files_come_before_interrupted_ones(orc: Orchestrator) -> None:
    drop(orc, "keys.md", notes())
    interrupt(orc, 1)
    drop(orc, "z.md", "The key of the shed is with Bo.\n")
    drop(orc, "a-large.txt", f"Ann: {'word ' * 4_000}\nBo: Hello.\n" * 60)
    paths = [each.path for each in IngestPipeline(orc).run()]
    assert paths == ["z.md", "a-large.txt", "keys.md"]


def test_a_claim_whose_folder_was_deleted_is_taken_over_at_once(orc: Orchestrator) -> None:
    drop(orc, "keys.md", notes())
    interrupt(orc, 1)
    (claim,) = (orc.paths.ingest / CLAIMS).glob("[0-9]*")
    for each in claim.iterdir():
        each.unlink()
    claim.rmdir()
    drop(orc, "keys.md", notes())
    (result,) = IngestPipeline(orc).run()
    assert result.outcome == "processed"
    assert len(todos(orc)) == TODOS


def journalled(service: MemoryService) -> list[str]:
    """What the journal says became of files, in its order."""
    with service.session("orc-1") as session:
        entries = select(AuditRow).where(col(AuditRow.action).startswith("ingest"))
        return [each.action for each in session.exec(entries.order_by(col(AuditRow.seq)))]


def test_a_held_file_waits_for_an_operator_and_others_go_on(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    drop(orc, "keys.md", notes())
    interrupt(orc, 1)
    exhaust(orc)
    (result,) = IngestPipeline(orc).run()
    assert (result.outcome, result.reason) == ("held", RejectionReason.HELD)
    # Nothing of it is half visible.
    assert todos(orc) == []
    assert orc.memories.list(statuses=[MemoryStatus.RETRACTED])
    assert "ingest.held" in service.health("orc-1")["degraded"]
    assert orc.ingestion.get(str(result.sha256)).status == "held"
    assert journalled(service) == ["ingest_held"]
    assert orc.verify().totals == {}
    drop(orc, "z.md", "The key of the shed is with Bo.\n")
    told = [(each.path, each.outcome, each.reason) for each in IngestPipeline(orc).run()]
    assert told == [("z.md", "processed", None), ("keys.md", "skipped", RejectionReason.HELD)]
    (result,) = IngestPipeline(orc, retry=True).run()
    assert result.outcome == "processed"
    assert len(todos(orc)) == TODOS
    assert "ingest.held" not in service.health("orc-1")["degraded"]
    assert orc.ingestion.get(str(result.sha256)).status == "processed"
    assert orc.verify().totals == {}


def test_a_held_file_that_fails_again_is_held_again(orc: Orchestrator) -> None:
    drop(orc, "keys.md", notes())
    interrupt(orc)
    exhaust(orc)
    IngestPipeline(orc).run()
    told: list[Progress] = []
    pipeline = IngestPipeline(
        orc, progress=told.append, stop=lambda: any(at.steps for at in told), retry=True
    )
    (result,) = pipeline.run()
    assert (result.outcome, result.reason) == ("skipped", RejectionReason.INTERRUPTED)
    exhaust(orc)
    # A pipeline that follows the drop zone takes up once what it was asked for.
    told.clear()
    (result,) = pipeline.run()
    assert (result.outcome, result.reason) == ("held", RejectionReason.HELD)
    assert todos(orc) == []


def test_a_held_content_that_is_dropped_again_is_taken(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    drop(orc, "keys.md", notes())
    interrupt(orc, 1)
    exhaust(orc)
    IngestPipeline(orc).run()
    drop(orc, "again.md", notes())
    told = {each.path: each.outcome for each in IngestPipeline(orc).run()}
    assert told == {"again.md": "processed", "keys.md": "duplicate"}
    assert "ingest.held" not in service.health("orc-1")["degraded"]
    assert len(todos(orc)) == TODOS


def test_links_that_waited_for_a_file_are_made_in_parts(orc: Orchestrator) -> None:
    for number in range(60):
        text = f"The key of room {number} is with Bo. It is on [the list](hub.md).\n"
        drop(orc, f"room-{number}.md", text)
    IngestPipeline(orc).run()
    drop(orc, "hub.md", "The list of the keys is with Ann.\n")
    (result,) = IngestPipeline(orc).run()
    assert (result.counts["links_made"], result.counts["links_rejected"]) == (60, [])
    assert orc.verify().totals == {}


def test_a_write_beside_a_large_file_waits_little(orc: Orchestrator) -> None:
    turns = "\n".join(
        f"Ann: The gauge of hall {n} shows {n} bar.\nBo: Noted." for n in range(2_000)
    )
    drop(orc, "talk.txt", turns)
    results = []
    worker = threading.Thread(target=lambda: results.extend(IngestPipeline(orc).run()))
    waits = []
    worker.start()
    while worker.is_alive():
        begun = time.monotonic()
        orc.remember(f"The lamp number {len(waits)} burns.")
        waits.append(time.monotonic() - begun)
        time.sleep(0.02)
    worker.join()
    assert [each.outcome for each in results] == ["processed"]
    assert len(orc.memories.list(kinds=[MemoryKind.EPISODE], limit=1000)) == 1_000
    # On a loaded machine too; in one transaction all of them wait for seconds.
    assert sorted(waits)[len(waits) // 2] < 0.5
