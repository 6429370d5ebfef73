"""A store that says one text in every place it can be said, and a look for what is left of it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from ingest.pipeline import IngestPipeline
from memgraph import MemoryService, Orchestrator
from memgraph.model.enums import EdgeType, MemoryType

NAME = "Quendolin Xaverskyan"
# The title tells that it is a name: two capitalised words that open a sentence do not.
SECRET = f'Mrs. {NAME} keeps the "vault" combination\nunder the zwieback tin at Pfützenstraße'
LINE = f"Fact: Mrs. {NAME} moved the zwieback tin to the attic on Whitmonday"
OTHER = "The deployment window is every second Tuesday in the evening"
CANARIES = ("Xaverskyan", "xaverskyan", "zwieback", "Pfützenstra", "Quendolin", "quendolin")


@dataclass(frozen=True)
class Filled:
    """Ids: of the secret, of what was derived from it alone and with others, of what stays."""

    secret: str
    alone: str
    shared: str
    other: str
    rival: str


def filled(orc: Orchestrator) -> Filled:
    """Say the secret in rows, edges, the journal, receipts, bulletins, logs, and copies."""
    other = orc.remember(OTHER, type=MemoryType.FACT)
    secret = orc.remember(
        SECRET,
        type=MemoryType.FACT,
        tags=["zwieback", "home"],
        attributes={"quote": SECRET},
        item_id="zwieback-item-of-Quendolin",
    )
    alone = orc.remember(f"So {NAME} hides it well", derived_from=[secret])
    shared = orc.remember("A tin and a window were talked about", derived_from=[secret, other])
    rival = orc.remember("The vault has no combination at all", type=MemoryType.FACT)
    edge = orc.relate(rival, EdgeType.CONTRADICTS, secret, reason=f"against: {SECRET}")
    orc.contradictions.resolve(edge, winner=rival, reason=f"because {SECRET} is wrong")
    orc.relate(other, EdgeType.RELATED_TO, rival, reason=f"quotes: {SECRET}")
    orc.retract(rival, reason=f"it quoted {SECRET}")
    orc.recall(SECRET)
    orc.recall("combination of the vault")
    orc.bulletin()
    orc.ingestion.log_event("said", text=SECRET)
    return Filled(secret, alone, shared, other, rival)


def dropped(orc: Orchestrator, name: str, text: str) -> None:
    """Ingest a file."""
    orc.paths.ingest.mkdir(parents=True, exist_ok=True)
    (orc.paths.ingest / name).write_text(text, encoding="utf-8")
    IngestPipeline(orc).run()


def copied(orc: Orchestrator) -> Path:
    """A copy of the database in the folder of backups."""
    folder = orc.paths.memory / "backups"
    folder.mkdir(exist_ok=True)
    target = folder / "before-1.db"
    orc.exchange.backup(folder.parent.parent / "copy.db")
    shutil.move(folder.parent.parent / "copy.db", target)
    return target


def left(service: MemoryService, folder: Path, canaries: tuple[str, ...] = CANARIES) -> list[str]:
    """Where a canary stands still, in any spelling; the service is closed for it."""
    service.close()
    found = []
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        data = path.read_bytes()
        for canary in canaries:
            spellings = (canary.encode(), json.dumps(canary)[1:-1].encode())
            if any(each in data for each in spellings):
                found.append(f"{path.relative_to(folder)}: {canary}")
    return found
