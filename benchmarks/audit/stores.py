"""An orchestrator with a year behind it: filled once, kept, and copied for each measurement.

Turns became facts, facts became summaries; files, conversations and runs said them; some were
replaced, contradicted or taken back; contexts, bulletins and recalls handed them out.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.audit import receipts
from benchmarks.synthetic import Corpus, corpus
from memgraph.clock import MS_PER_DAY, FixedClock
from memgraph.model.enums import CapturedBy, EdgeType, MemoryKind, MemoryType, SourceType
from memgraph.model.values import EdgeInput, MemoryInput, Source
from memgraph.operations.orchestrator import Orchestrator
from memgraph.paths import OrchestratorPaths
from memgraph.service.memory_service import MemoryService
from memgraph.store.sqlite.engine import ENGINE

NAME = "bench"
ROOT, KNOWN = "root", "store.json"
# Of what is filled: one of another version is not taken.
VERSION = 4
STARTS_AT = 1_735_689_600_000
DAYS = 365
# Of a thousand memories, which are stored at once.
BLOCK, TURNS, FACTS, SUMMARIES = 1_000, 700, 220, 80
FILES, RUNS = 500, 1_000
RECEIPTS = 10_000
# Of each block: edges by type, contradictions that are decided, and facts that are taken back.
CAUSES, PARTS, REPLACED, DISPUTED, RELATED, DECIDED, TAKEN_BACK = 40, 40, 20, 6, 200, 3, 4
# What very much stands on is asked about as well: so many facts of each block rest on it.
ON_THE_HUB = 2

Tell = Callable[[str, int, int], None]


@dataclass(slots=True)
class Store:
    """What a filled root holds; ids are told so that a measurement can ask about them.

    Attributes:
        hub: the fact that the most stands on, directly or not.
        facts, summaries: oldest first; some are replaced or taken back by now.
        disputes: edge ids of contradictions, open and decided.
        first_at, last_at: milliseconds; open it with a ``FixedClock(last_at)``.
    """

    root: str
    size: int
    hub: str = ""
    facts: list[str] = field(default_factory=list)
    summaries: list[str] = field(default_factory=list)
    disputes: list[str] = field(default_factory=list)
    first_at: int = STARTS_AT
    last_at: int = STARTS_AT + DAYS * MS_PER_DAY

    def service(self, **more: Any) -> MemoryService:
        """A service on it, at the end of its year."""
        clock = FixedClock(self.last_at)
        return MemoryService(self.root, clock=clock, environ={}, background=False, **more)


def kept(folder: Path, size: int, tell: Tell) -> Store:
    """The store of ``size`` memories under ``folder``, filled if no earlier run did.

    Measurements that write work on a ``copied`` one.
    """
    place = folder / f"year-{size}-{VERSION}-{_schema()}"
    known = place / KNOWN
    if not known.exists():
        shutil.rmtree(place, ignore_errors=True)
        store = _filled(place / ROOT, size, tell)
        known.write_text(json.dumps(asdict(store)), encoding="utf-8")
    return Store(**{**json.loads(known.read_text(encoding="utf-8")), "root": str(place / ROOT)})


def _schema() -> str:
    """Tells schemas apart: what was filled under another one is not taken either."""
    statements = json.dumps(ENGINE.expected_schema(), sort_keys=True)
    return hashlib.sha256(statements.encode()).hexdigest()[:8]


def copied(store: Store, target: Path) -> Store:
    """The same in another folder, which must not be there yet."""
    shutil.copytree(store.root, target)
    os.sync()
    return Store(**{**asdict(store), "root": str(target)})


def _filled(root: Path, size: int, tell: Tell) -> Store:
    clock = FixedClock(STARTS_AT)
    store = Store(str(root), size)
    blocks = max(size // BLOCK, 1)
    with MemoryService(root, clock=clock, environ={}, background=False) as service:
        memory = service.orchestrator(NAME, create=True, actor="bench")
        for block in range(blocks):
            tell("a year of memories", block, blocks)
            clock.advance(days=DAYS / blocks / 2)
            _remember(memory, store, block, len(range(block * BLOCK, size)))
            clock.advance(days=DAYS / blocks / 2)
            _relate(service, memory, store, block)
        store.last_at = clock.now_ms()
        with service.opened(NAME) as opened, opened.database.write() as transaction:
            tell("receipts", 0, RECEIPTS)
            receipts.hand_out(transaction, store, RECEIPTS)
        memory.settle()
        with service.opened(NAME) as opened:
            opened.database.cut(wait_ms=5_000)
    return store


def _remember(memory: Orchestrator, store: Store, block: int, left: int) -> None:
    given = list(_memories(memory, store, block))[:left]
    found = memory.remember_many(given)
    if any(each.memory_id is None for each in found):
        raise RuntimeError(next(each.message for each in found if each.memory_id is None))
    ids = [each.memory_id or "" for each in found]
    store.facts += ids[TURNS : TURNS + FACTS]
    store.summaries += ids[TURNS + FACTS :]
    store.hub = store.hub or store.facts[0]


def _memories(memory: Orchestrator, store: Store, block: int) -> Iterator[MemoryInput]:
    """A block: turns, facts of them, and summaries of the facts and of older ones."""
    chance = random.Random(f"block-{block}")
    text = corpus()
    turns = list(text.turns(block * TURNS, TURNS))
    for place, turn in enumerate(turns):
        yield turn.model_copy(update={"key": f"turn-{place}"})
    for place in range(FACTS):
        rests_on = [f"#turn-{chance.randrange(TURNS)}" for _ in range(chance.randint(1, 3))]
        if place < ON_THE_HUB and store.hub:
            rests_on.append(store.hub)
        source = _source(memory, chance, turns)
        yield _said(text, block * BLOCK + place, f"fact-{place}", source, rests_on)
    for place in range(SUMMARIES):
        rests_on = [f"#fact-{chance.randrange(FACTS)}" for _ in range(chance.randint(2, 4))]
        if store.summaries:
            rests_on.append(chance.choice(store.summaries[-500:]))
        yield _said(text, block * BLOCK + FACTS + place, None, Source(), rests_on)


def _said(
    text: Corpus, number: int, key: str | None, source: Source, rests_on: Sequence[str]
) -> MemoryInput:
    return MemoryInput(
        key=key,
        # Other texts than those of the turns, and no two alike.
        content=f"{text.text(1_000_000 + number)} Note {number}.",
        kind=MemoryKind.FACT,
        type=list(MemoryType)[number % len(MemoryType)],
        importance=number % 101,
        confidence=0.6 + 0.4 * (number % 5) / 4,
        source=source,
        derived_from=tuple(dict.fromkeys(rests_on)),
    )


def _source(memory: Orchestrator, chance: random.Random, turns: Sequence[MemoryInput]) -> Source:
    """Of a file, a run or the conversation of one of the turns."""
    drawn = chance.random()
    if drawn < 0.4:
        folder = OrchestratorPaths(memory._service.root, memory.name).processed
        number, line = chance.randrange(FILES), chance.randrange(1, 200)
        return Source(
            source_type=SourceType.INGEST_FILE,
            source_path=str(folder / f"notes-{number}.md"),
            locator=f"L{line}-L{line + 2}",
            content_sha256=f"{number:064x}",
            captured_by=CapturedBy.SYSTEM,
        )
    if drawn < 0.7:
        return Source(
            source_type=SourceType.WORKFLOW_OUTPUT,
            workflow_run_id=f"run-{chance.randrange(RUNS)}",
            step_id=f"step-{chance.randrange(4)}",
            captured_by=CapturedBy.EXTRACTOR,
        )
    return chance.choice(turns).source


def _relate(service: MemoryService, memory: Orchestrator, store: Store, block: int) -> None:
    chance = random.Random(f"edges-{block}")
    new, old = store.facts[-FACTS:], store.facts[:-FACTS] or store.facts[:FACTS]
    wanted = [(EdgeType.CAUSED_BY, CAUSES), (EdgeType.PART_OF, PARTS)]
    wanted += [(EdgeType.UPDATES, REPLACED), (EdgeType.CONTRADICTS, DISPUTED)]
    edges = {
        (chance.choice(new), chance.choice(old), kind)
        for kind, count in wanted
        for _ in range(count)
    }
    edges |= {
        (chance.choice(new), chance.choice(store.facts), EdgeType.RELATED_TO)
        for _ in range(RELATED)
    }
    given = [
        EdgeInput(from_id=one, to_id=other, edge_type=kind, weight=0.5)
        for one, other, kind in sorted(edges)
        if one != other and other != store.hub
    ]
    with service.opened(NAME) as opened, opened.transaction("bench") as transaction:
        written = opened.writer.store(transaction, [], given)
        transaction.record(written.entries)
    disputed = [
        (each, outcome.edge_id)
        for each, outcome in zip(given, written.edges, strict=True)
        if each.edge_type is EdgeType.CONTRADICTS and outcome.edge_id is not None
    ]
    store.disputes += [edge_id for _, edge_id in disputed]
    for each, edge_id in disputed[:DECIDED]:
        memory.contradictions.resolve(edge_id, winner=each.from_id, reason="it is newer")
    for one in chance.sample(new, k=TAKEN_BACK):
        if memory.get(one).status == "active" and one != store.hub:
            memory.retract(one, reason="it was a mistake")
