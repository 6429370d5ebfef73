from __future__ import annotations

import threading

from ingest.command import watch
from ingest.pipeline import IngestPipeline
from memgraph import Orchestrator


def test_watching_takes_what_is_there_and_what_comes(orc: Orchestrator) -> None:
    zone = orc.paths.ingest
    (zone / "there.txt").write_text("# 8 May 2023\nAnn: I was here.\nBob: Me too.\n")
    stop = threading.Event()
    seen: list[tuple[str, str]] = []
    # Ends the test rather than hanging it when nothing is ever seen.
    limit = threading.Timer(60, stop.set)
    limit.start()
    try:
        for report in watch(IngestPipeline(orc), stop, every_s=0.1):
            seen += [(each.path, each.outcome) for each in report]
            if len(seen) == 1:
                fresh = zone / ".coming.tmp"
                fresh.write_text("# 9 May 2023\nAnn: I came.\nBob: So did I.\n")
                (zone / "notes").mkdir()
                fresh.rename(zone / "notes" / "later.txt")
            else:
                stop.set()
    finally:
        limit.cancel()
    assert seen == [("there.txt", "processed"), ("notes/later.txt", "processed")]
