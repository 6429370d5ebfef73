"""A run by hand that is told to end gives its job back."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

from test_cli_process import START, environment, run

from memgraph import MemoryService

SESSIONS = 120


def test_a_terminated_run_leaves_no_lease(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        turn = {"source_role": "user", "content": "I keep bees behind the house in Leeds."}
        orc.save_episodes({**turn, "session_id": f"s-{at}"} for at in range(SESSIONS))
        for at in range(SESSIONS):
            orc.sessions.end(f"s-{at}")
    command = [*START, "run", "orc-1", "consolidation", "--json"]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(root),
    ) as process:
        deadline = time.monotonic() + 60
        while not _at_work(root):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 130
    again = run(root, "run", "orc-1", "consolidation", "--json")
    assert again.returncode == 0, again.stderr
    told = json.loads(run(root, "jobs", "orc-1", "--json").stdout)["data"]["runs"]
    assert told[0]["state"] == "done"
    assert told[1]["state"] in ("failed", "abandoned")


def _at_work(root: Path) -> bool:
    with MemoryService(root, environ={}, background=False) as service:
        runs = service.orchestrator("orc-1").jobs.list(limit=1)
    return bool(runs) and runs[0].state == "running"
