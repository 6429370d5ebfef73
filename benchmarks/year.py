"""What is still active after a simulated year: ``python -m benchmarks.year [--json]``.

Stores are made through the public interface with the default settings. Then every night of a year
comes with its jobs, on a clock that is moved on, and nobody asks for anything.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ingest.pipeline import IngestPipeline
from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.model.conversation import SpeakerRole, voice_of
from memgraph.model.enums import STORED_STATUSES, CapturedBy, MemoryKind, MemoryStatus, SourceType
from memgraph.model.graph import Trace
from memgraph.model.values import Memory
from memgraph.operations.tools.tools import call_tool

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
JOBS = ("enrichment", "consolidation", "decay")
ALLERGY = "Ann is allergic to peanuts."
FINDINGS = (
    "The build seems to be slower after lunch.",
    "Ann seems to answer mail in the evening.",
    "The staging server looks idle at the weekend.",
    "The desk probably has two printers.",
)
DECAYED = "decayed"


def walk_through(orc: Orchestrator) -> None:
    """The example of the README: typed facts, a correction, a dropped folder, a conversation."""
    old = orc.remember("Backups are kept for 30 days.", type="Decision", tags=["ops"])
    new = orc.correct(old, "Backups are kept for 90 days.", reason="the auditors asked for it")
    cost = orc.remember("Storage costs us 1,150 EUR a month.", type="Observation")
    orc.relate(cost, "CausedBy", new)
    orc.remember(ALLERGY, importance=100)
    drop(orc, EXAMPLES / "story")
    orc.save_episode("I prefer short answers.", session_id="monday", source_role="user")
    orc.sessions.end("monday")


def records(folder: Path) -> Callable[[Orchestrator], None]:
    return lambda orc: drop(orc, folder)


def conversation(path: Path) -> Callable[[Orchestrator], None]:
    """Turns as JSON lines; the facts that rules take from them come in the first night."""

    def fill(orc: Orchestrator) -> None:
        turns = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        orc.save_episodes(turns)
        for session_id in {each["session_id"] for each in turns}:
            orc.sessions.end(session_id)

    return fill


def agent(orc: Orchestrator) -> None:
    """What an agent concluded and stored with its tools: one is confirmed by a person."""
    found = [remembered(orc, each) for each in FINDINGS]
    orc.confirm(found[0])


def remembered(orc: Orchestrator, content: str) -> str:
    """Store a fact as an agent does with its tool; return its id."""
    answer = call_tool(orc, "remember_fact", {"content": content, "confidence": 0.8})
    return str(answer["memory_id"])  # type: ignore[index]


def drop(orc: Orchestrator, folder: Path) -> None:
    shutil.copytree(folder, orc.paths.ingest / "drop" / folder.name)
    IngestPipeline(orc).run()


def everything(orc: Orchestrator) -> Iterator[Memory]:
    last = None
    while page := orc.memories.list(statuses=STORED_STATUSES, limit=1_000, before=last):
        yield from page
        last = page[-1].memory_id


def origin_of(found: Trace) -> str:
    memory, source = found.memory, found.source
    if memory.kind is not MemoryKind.FACT:
        return "turns and reflections"
    if source.source_type is SourceType.INGEST_FILE:
        return "a file or record said"
    if source.captured_by is not CapturedBy.EXTRACTOR:
        return "a person typed"
    by_person = voice_of(memory.attributes.get("speaker")) in (
        SpeakerRole.PERSON,
        SpeakerRole.NAMED,
    )
    if source.source_type is SourceType.CHANNEL_TRANSCRIPT and by_person:
        return "a person said in a conversation"
    return "a machine inferred"


def live(fill: Callable[[Orchestrator], None], days: int) -> list[dict[str, Any]]:
    """Return a row for each origin: how many were stored, and are active, and retired by time."""
    clock = FixedClock()
    with (
        tempfile.TemporaryDirectory() as root,
        MemoryService(root, environ={}, clock=clock, background=False) as service,
    ):
        orc = service.orchestrator("year", create=True)
        fill(orc)
        orc.settle()
        for day in range(days):
            clock.advance(days=1)
            for job in (*JOBS, "reflection") if day % 7 == 6 else JOBS:
                orc.jobs.run(job)
        stored: Counter[str] = Counter()
        active: Counter[str] = Counter()
        retired: Counter[str] = Counter()
        for memory in everything(orc):
            trace = orc.trace(memory.memory_id)
            origin = origin_of(trace)
            stored[origin] += 1
            active[origin] += memory.status is MemoryStatus.ACTIVE
            retired[origin] += trace.status_history[-1].reason == DECAYED
    return [
        {
            "origin": origin,
            "stored": stored[origin],
            "active": active[origin],
            "replaced": stored[origin] - active[origin] - retired[origin],
            "retired_by_time": retired[origin],
        }
        for origin in sorted(stored)
    ]


def simulate(
    days: int = 365,
    folder: Path = EXAMPLES / "story" / "decisions",
    talk: Path = EXAMPLES / "conversations.jsonl",
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each store."""
    stores = {
        "the README's walk-through": walk_through,
        "decision records": records(folder),
        "a conversation, by rules": conversation(talk),
        "an agent's conclusions, one confirmed": agent,
    }
    return {name: live(fill, days) for name, fill in stores.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--records", type=Path, default=EXAMPLES / "story" / "decisions")
    parser.add_argument("--talk", type=Path, default=EXAMPLES / "conversations.jsonl")
    given = parser.parse_args(arguments)
    found = simulate(given.days, given.records, given.talk)
    if given.json:
        print(json.dumps({"days": given.days, "stores": found}, indent=2))
        return
    print("| store | origin | stored | active | replaced | retired by time |")
    print("|---|---|---|---|---|---|")
    for name, rows in found.items():
        for row in rows:
            print("|", " | ".join([name, *map(str, row.values())]), "|")


if __name__ == "__main__":
    main()
