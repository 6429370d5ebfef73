"""Rows whose values damage has changed are told as damage, whoever reads them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from working import tampering

from memgraph import MemoryService, Orchestrator
from memgraph.errors import DatabaseCorrupt


def _receipts(orc: Orchestrator) -> object:
    return orc.receipts.list(), orc.recall("lamp")


CASES: dict[str, tuple[str, Callable[[Orchestrator], object]]] = {
    "job": ("UPDATE job_runs SET job = 'decoy'", lambda orc: orc.jobs.list()),
    "state": ("UPDATE job_runs SET state = 'dome'", lambda orc: orc.jobs.list()),
    "start": ("UPDATE job_runs SET started_at = 'soon'", lambda orc: orc.jobs.list()),
    "counts": ("UPDATE job_runs SET counts = '{'", lambda orc: orc.jobs.list()),
    "time": ("UPDATE memories SET created_at = 'soon'", lambda orc: orc.memories.list()),
    "viewer": ("UPDATE recalls SET viewer = '{}'", _receipts),
    "request": ("UPDATE recalls SET request = '['", _receipts),
    "legs": ("UPDATE recall_items SET explanation = '{}'", _receipts),
}


@pytest.mark.parametrize("case", CASES)
def test_a_changed_value_is_damage(service: MemoryService, orc: Orchestrator, case: str) -> None:
    change, read = CASES[case]
    orc.remember("The lamp is green.")
    orc.jobs.run("decay")
    read(orc)
    path = service.paths("orc-1").database
    service.forget("orc-1")
    with tampering(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(change)
    with pytest.raises(DatabaseCorrupt) as raised:
        read(orc)
    assert raised.value.details["row"]
    assert isinstance(service.pool.failure("orc-1"), DatabaseCorrupt)
