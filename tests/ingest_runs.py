"""Runs of the ingest pipeline in tests: files to drop, interruptions, and what became of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ingest.claims import FileResult, claims
from ingest.pipeline import MAX_ATTEMPTS, IngestPipeline, Progress
from ingest.reasons import RejectionReason
from memgraph import Orchestrator


def drop(orc: Orchestrator, name: str, content: str | bytes) -> Path:
    """Write a file into the drop zone."""
    path = orc.paths.ingest / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def ingest(orc: Orchestrator, name: str, content: str | bytes) -> FileResult:
    """Drop a file, and return the result of a run that finds no other."""
    drop(orc, name, content)
    (result,) = IngestPipeline(orc).run()
    return result


def manifest(orc: Orchestrator, result: FileResult) -> dict[str, Any]:
    """Return the manifest beside a file."""
    told: dict[str, Any] = json.loads((orc.paths.ingest / str(result.manifest)).read_bytes())
    return told


def interrupt(orc: Orchestrator, parts: int = 1) -> None:
    """Run until so many parts of the only file are stored."""
    told: list[Progress] = []

    def progress(at: Progress) -> None:
        told.extend([at] * (at.steps > 0))

    run = IngestPipeline(orc, progress=progress, stop=lambda: len(told) >= parts)
    (result,) = run.run()
    assert (result.outcome, result.reason) == ("skipped", RejectionReason.INTERRUPTED)


def exhaust(orc: Orchestrator) -> None:
    """Make it seem as if the claimed file had killed its reader again and again."""
    (claimed,) = claims(orc.paths.ingest)
    claimed.attempts = MAX_ATTEMPTS
    claimed.save()
