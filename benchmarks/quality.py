"""Measure what documents become: ``python -m benchmarks.quality documents FOLDER``.

All files of a folder are ingested into one store, and every contradiction and update that is stored
is printed with its reason: those that the files state themselves, too.
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memgraph import MemoryService
from memgraph.model.enums import EdgeType

SHOWN = 10
RUN = "import sys; from memgraph.surfaces.cli import main; sys.exit(main())"
CHANGES = frozenset({EdgeType.UPDATES, EdgeType.CONTRADICTS})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("documents",))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = documents(options.folder)
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


if __name__ == "__main__":
    main()
