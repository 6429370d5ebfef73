"""Type checkers see the arguments of the library, the client and the asynchronous faces."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """
from memgraph import AsyncOrchestrator, Orchestrator
from memgraph.client import AsyncRemoteOrchestrator, RemoteOrchestrator


def library(orc: Orchestrator) -> None:
    orc.remember("Tea.", tags=["drinks"], importance=60, event_time="2026-01-01")
    orc.remember("Tea.", importence=60)
    orc.recall("tea", top_n="5")


def client(orc: RemoteOrchestrator) -> None:
    orc.correct("fact_1", "Green tea.", reason="asked", tags=("drinks",))
    orc.save_episode("Tea.", session="monday", session_id="monday", source_role="user")


async def awaited(orc: AsyncRemoteOrchestrator, aio: AsyncOrchestrator) -> None:
    await orc.memories.list(limit=5)
    await orc.memories.list(limits=5)
    await aio.get("fact_1", as_of=0)
    (await aio.memories.store("Tea.")).memory_ids
"""


def test_five_typos_are_five_errors(tmp_path: Path) -> None:
    script = tmp_path / "typos.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        # The options of the project, so that the cache of its own check serves.
        [sys.executable, "-m", "mypy", str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    found = [int(line) for line in re.findall(r"typos\.py:(\d+): error", done.stdout)]
    lines = SCRIPT.splitlines()
    wrong = ("importence=", 'top_n="5"', "session=", "limits=", "memory_ids")
    expected = [
        number for number, line in enumerate(lines, 1) if any(each in line for each in wrong)
    ]
    assert found == expected, done.stdout + done.stderr
    assert len(expected) == 5
