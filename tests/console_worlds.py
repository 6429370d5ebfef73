"""Stores that are looked at in a browser: a print shop with an open question, and a hostile one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ingest.pipeline import IngestPipeline
from memgraph import MemoryService, Orchestrator
from memgraph.model.access import ANY, Permission
from memgraph.model.enums import EdgeType, MemoryType, Sensitivity
from memgraph.model.values import MemoryInput, Source
from memgraph.service.access.keys import KeyStore

NAME = "print-shop"
OLD_LINE = "The shop closes at 20:00 on weekdays."
NEW_LINE = "The shop closes at 22:00 on weekdays."
FILES = {
    "opening-hours.md": f"# Opening hours\n\n{OLD_LINE}\n\nThe counter is staffed from 9:00.\n",
    "notice.md": f"# Notice of May\n\nFrom May on much is new.\n\n{NEW_LINE}\n",
}
HOSTILE = (
    '<img src=x onerror="window.broken=1"><script>window.broken=1</script>'
    "\"'><svg onload=window.broken=1></bdi></style>javascript:window.broken=1{{7*7}}"
)


@dataclass(frozen=True)
class World:
    """An orchestrator in a root.

    Attributes:
        secret: of a key that may do everything in it.
        name: of the orchestrator.
        case: the open contradiction between ``OLD_LINE`` and ``NEW_LINE``; empty in a hostile one.
    """

    root: Path
    secret: str
    name: str = NAME
    case: str = ""


def shop(root: Path, name: str = NAME) -> World:
    """Two files that contradict each other, what stands on one of them, and some work."""
    environ = {
        "MEMGRAPH_MEMORY__RECEIPTS__QUERY_TEXT": "true",
        "MEMGRAPH_MEMORY__COMPARISON__READER": "none",
    }
    with MemoryService(root, environ=environ, background=False) as service:
        orc = service.orchestrator(name, create=True, actor="anna")
        for file, text in FILES.items():
            _drop(orc, file, text)
        orc.settle()
        [old, new] = (
            next(each.memory_id for each in orc.memories.list() if line in each.content)
            for line in (OLD_LINE, NEW_LINE)
        )
        case = orc.relate(new, EdgeType.CONTRADICTS, old, reason="two hours")
        _work(orc)
        return World(root, _key(service), name, case)


def _drop(orc: Orchestrator, name: str, text: str) -> None:
    orc.paths.ingest.mkdir(parents=True, exist_ok=True)
    (orc.paths.ingest / name).write_text(text, encoding="utf-8")
    IngestPipeline(orc).run()


def _work(orc: Orchestrator) -> None:
    """A decision that stands on a plan, which was replaced, a goal, and a probable change."""
    plan = orc.remember("The festival wants 400 posters on recycled paper.", type="Goal")
    decision = orc.remember(
        "We order four reams of recycled paper.", type="Decision", derived_from=(plan,)
    )
    orc.remember("The reams are delivered on 12 June.", type="Event", derived_from=(decision,))
    later = orc.remember("The festival wants 600 posters on coated paper.", type="Goal")
    orc.relate(later, EdgeType.UPDATES, plan, reason="a later mail")
    orc.remember("Damp paper jams in the risograph.", type="Observation")
    orc.remember("Mira Lindholm paints the signs for the festival.", type="Decision")
    staffed = next(each for each in orc.memories.list() if "9:00" in each.content)
    earlier = orc.remember("The counter is staffed from 8:30.")
    why = "the same counter, another time"
    orc.relate(earlier, EdgeType.UPDATES, staffed.memory_id, weight=0.87, reason=why)
    orc.recall("When does the shop close?")
    orc.bulletin()


def hostile(root: Path, name: str = NAME) -> World:
    """Markup in every field that a text can be put into."""
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator(name, create=True, actor=HOSTILE[:200])
        source = Source(
            source_path=str(orc.paths.ingest / "processed" / HOSTILE.replace("/", "-")[:180]),
            conversation_id=HOSTILE,
            workflow_run_id=HOSTILE,
            step_id=HOSTILE,
            locator=HOSTILE,
        )
        ids = [
            orc.remember(
                f"{each}: Ada Lovelace {HOSTILE}",
                type=MemoryType.FACT,
                summary=f"{each} {HOSTILE}",
                tags=(HOSTILE,),
                attributes={HOSTILE: HOSTILE},
                item_id=f"{each}{HOSTILE}",
                source=source,
            )
            for each in ("one", "two", "three", "four")
        ]
        case = orc.relate(ids[1], EdgeType.CONTRADICTS, ids[0], reason=HOSTILE)
        orc.relate(ids[2], EdgeType.UPDATES, ids[3], reason=HOSTILE)
        orc.relate(ids[2], EdgeType.UPDATES, ids[1], reason=HOSTILE, weight=0.8)
        orc.remember(f"on it: {HOSTILE}", derived_from=(ids[3],))
        _drop(
            orc, f"{HOSTILE.replace('/', '-')[:150]}.md", f"# {HOSTILE}\n\n{HOSTILE} is closed.\n"
        )
        orc.recall(HOSTILE)
        orc.bulletin()
        return World(root, _key(service, HOSTILE[:60]), name, case)


RECORD = """# {number}. {title}

## Status

Accepted

## Context

{context}

## Decision

We will use {choice} for the {title}.

## Consequences

The team has to learn {choice} within a month.
"""


def documents(root: Path, name: str) -> World:
    """Two decision records, and a memory that was derived from a part of each."""
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator(name, create=True)
        for number, title, context, choice in (
            (1, "Storage", "The disks are full every Friday.", "PostgreSQL"),
            (2, "Queue", "Jobs are lost when a worker ends.", "RabbitMQ"),
        ):
            text = RECORD.format(number=number, title=title, context=context, choice=choice)
            _drop(orc, f"{number:04}-{title.lower()}.md", text)
        decisions = [each.memory_id for each in orc.memories.list(types=(MemoryType.DECISION,))]
        orc.remember("Two services are to be run.", derived_from=decisions)
        return World(root, _key(service), name)


def crowd(root: Path, name: str, count: int) -> tuple[World, list[str]]:
    """So many memories, each joined to some before it, the same ones every time; and their ids."""
    with MemoryService(root, environ={}, background=False) as service:
        ids = _crowd(service.orchestrator(name, create=True), count)
        return World(root, _key(service), name), ids


def _crowd(orc: Orchestrator, count: int) -> list[str]:
    types = list(MemoryType)
    stored = orc.remember_many(
        MemoryInput(
            content=f"Machine {number} of hall {number % 17} runs at setting {number * 7 % 101}.",
            type=types[number % len(types)],
            importance=number * 13 % 101,
        )
        for number in range(count)
    )
    ids = [each.memory_id for each in stored if each.memory_id is not None]
    kinds = (EdgeType.RELATED_TO, EdgeType.PART_OF, EdgeType.RELATED_TO, EdgeType.CAUSED_BY)
    for number in range(1, len(ids)):
        orc.relate(ids[number], kinds[number % 4], ids[number - 1 - number * 5 % min(number, 9)])
    return ids


def _key(service: MemoryService, name: str = "Anna, auditor") -> str:
    granted = {
        "name": name,
        "orchestrators": (ANY,),
        "permissions": frozenset(Permission),
        "clearance": Sensitivity.RESTRICTED,
        "project_ids": (ANY,),
        "session_ids": (ANY,),
    }
    return KeyStore(service.root, service.clock).create(granted).secret
