"""Measure what the memory says: ``python -m benchmarks.quality MEASURE PATH``.

``everyday FILE`` tells pairs of statements one after the other, each pair in a store of its own,
and counts the changes noticed and the traps taken for one. A line holds ``a``, ``b`` (said a day
later), ``expect`` (``change`` or ``none``) and for some ``q``, a question answered by ``b``.


``documents FOLDER`` ingests all files of a folder into one store and prints every contradiction and
update that is stored, with its reason: those that the files state themselves, too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memgraph import MemoryService
from memgraph.clock import FixedClock
from memgraph.model.enums import EdgeType

SHOWN = 10
RUN = "import sys; from memgraph.surfaces.cli import main; sys.exit(main())"
CHANGES = frozenset({EdgeType.UPDATES, EdgeType.CONTRADICTS})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=tuple(MEASURES))
    parser.add_argument("path", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = MEASURES[options.what](options.path)
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
        return
    for name, value in found.items():
        if isinstance(value, list):
            print(f"{name}: {len(value)}")
            for each in value[:SHOWN]:
                print(f"  {each}")
        else:
            print(f"{name:24} {value}")


def everyday(path: Path) -> dict[str, Any]:
    """Return how many changes were noticed, how many traps were called one, and examples."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    told = [_told(row) for row in rows]
    changes = [each for each in told if each["expect"] == "change"]
    traps = [each for each in told if each["expect"] == "none"]
    asked = [each for each in changes if each["newer_first"] is not None]
    noticed = sum(each["noticed"] for each in changes)
    called = sum(each["noticed"] for each in traps)
    return {
        "changes": len(changes),
        "changes noticed": noticed,
        "share noticed": round(noticed / max(len(changes), 1), 3),
        "traps": len(traps),
        "traps called a change": called,
        "share of traps": round(called / max(len(traps), 1), 3),
        "asked": len(asked),
        "newer first": sum(each["newer_first"] for each in asked),
        "both, unmarked": sum(each["unmarked"] for each in asked),
        "missed": [f"{e['a']} / {e['b']}" for e in changes if not e["noticed"]],
        "wrong": [f"{e['a']} / {e['b']}: {e['reason']}" for e in traps if e["noticed"]],
    }


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with what became of it: noticed, the reason, and how recall orders it."""
    clock = FixedClock()
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-quality-") as root,
        MemoryService(root, environ={}, background=False, clock=clock) as service,
    ):
        orc = service.orchestrator("quality", create=True)
        first = orc.remember(row["a"])
        clock.advance(days=1)
        second = orc.remember(row["b"])
        orc.settle()
        edges = [
            edge
            for edge in orc.graph.subgraph([first, second]).edges
            if edge.edge_type in CHANGES and {edge.from_id, edge.to_id} == {first, second}
        ]
        newer_first, unmarked = None, False
        if row.get("q") and first != second:
            items = orc.recall(row["q"], top_n=5).items
            ids = [item.memory.memory_id for item in items]
            newer_first = second in ids and (
                first not in ids or ids.index(second) < ids.index(first)
            )
            both = first in ids and second in ids
            unmarked = both and not any(item.contradicted_by for item in items)
        reason = edges[0].reason if edges else ""
        return {
            **row,
            "noticed": bool(edges),
            "reason": reason,
            "newer_first": newer_first,
            "unmarked": unmarked,
        }


def documents(folder: Path) -> dict[str, Any]:
    """Return counts of what the files became, and every update and contradiction stored."""
    with tempfile.TemporaryDirectory(prefix="memgraph-quality-") as temporary:
        drops = Path(temporary) / "drops"
        shutil.copytree(folder, drops)
        environ = {**os.environ, "MEMGRAPH_ROOT": str(Path(temporary) / "home")}
        with MemoryService(Path(temporary) / "home", environ={}, background=False) as service:
            service.orchestrator("quality", create=True)
        began = time.perf_counter()
        command = [sys.executable, "-c", RUN, "ingest", "quality", str(drops), "--json"]
        subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
        with MemoryService(Path(temporary) / "home", environ={}, background=False) as service:
            orc = service.orchestrator("quality")
            orc.settle()
            seconds = time.perf_counter() - began
            rows = [json.loads(line) for line in orc.exchange.export_lines()]
    memories = {row["memory_id"]: row for row in rows if row.get("record") == "memory"}
    edges = [
        f"{row['edge_type']}: {_text(memories, row['from_memory_id'])} / "
        f"{_text(memories, row['to_memory_id'])}: {row['reason']}"
        for row in rows
        if row.get("record") == "edge" and row["edge_type"] in CHANGES
    ]
    kinds = Counter(f"{row['kind']} {row['type']}" for row in memories.values())
    return {
        "files": sum(path.is_file() for path in folder.rglob("*")),
        "memories": len(memories),
        "seconds": round(seconds, 1),
        **dict(sorted(kinds.items())),
        "contradictions": [each for each in edges if each.startswith("Contradicts")],
        "updates": [each for each in edges if each.startswith("Updates")],
    }


def _text(memories: Mapping[str, Any], memory_id: str) -> str:
    return str(memories[memory_id]["content"])[:200] if memory_id in memories else memory_id


MEASURES: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    "everyday": everyday,
    "documents": documents,
}

if __name__ == "__main__":
    main()
