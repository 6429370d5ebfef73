from __future__ import annotations

import threading

import pytest

from ingest.command import watch
from ingest.pipeline import IngestPipeline
from memgraph import Orchestrator


@pytest.mark.parametrize("nested", ["", "notes/"])
def test_watching_takes_what_is_there_and_what_comes(orc: Orchestrator, nested: str) -> None:
    zone = orc.paths.ingest
    (zone / "there.txt").write_text("# 8 May 2023\nAnn: I was here.\nBob: Me too.\n")
    stop = threading.Event()
    seen: list[tuple[str, str]] = []
    # Ends the test rather than hanging it when nothing is ever seen.
    limit = threading.Timer(60, stop.set)
    limit.start()
    try:
        for report in watch(IngestPipeline(orc), stop, retry_seconds=1, debounce_ms=50):
            seen += [(each.path, each.outcome) for each in report.results]
            if len(seen) == 1:
                fresh = zone / ".coming.tmp"
                fresh.write_text("# 9 May 2023\nAnn: I came.\nBob: So did I.\n")
                (zone / nested).mkdir(exist_ok=True)
                fresh.rename(zone / nested / "later.txt")
            else:
                stop.set()
    finally:
        limit.cancel()
    assert seen == [("there.txt", "processed"), (f"{nested}later.txt", "processed")]
