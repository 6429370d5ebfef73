"""A worker verifies each database when that is due, and health tells of what was found."""

from __future__ import annotations

import re
from pathlib import Path

from working import NAME, filled, tampering

from memgraph import MemoryService
from memgraph.clock import FixedClock
from memgraph.model.jobs import STOPPED
from memgraph.service.readiness import Readiness
from memgraph.service.worker import Worker
from memgraph.surfaces.metrics import PrometheusMeters


def test_what_a_nightly_audit_finds_is_told_until_it_is_mended(tmp_path: Path) -> None:
    clock = FixedClock()
    with filled(tmp_path, clock=clock) as (service, opened, _):
        with tampering(opened.paths.database) as connection:
            connection.execute("UPDATE memories SET tags = '[\"edited\"]' WHERE pk = 1")
        worker = Worker(service)
        worker.once()
        assert "verify.failed" not in service.health(NAME)["degraded"]
        clock.advance(days=1)
        worker.once()
        assert "verify.failed" in service.health(NAME)["degraded"]
        run = next(
            each for each in service.orchestrator(NAME).jobs.list() if each.job == "verification"
        )
        assert (run.state, run.trigger, run.counts["findings"]) == ("done", "schedule", 1)
        assert run.reason == "found table.edited; run: memgraph verify"
        [standing] = Readiness(service).look().orchestrators or ()
        assert "verify.failed" in standing.codes
        assert unsound(service) == 1
        service.orchestrator(NAME).maintenance.accept_journal(reason="the tag is right")
        assert "verify.failed" not in service.health(NAME)["degraded"]
        clock.advance(days=1)
        worker.once()
        assert "verify.failed" not in service.health(NAME)["degraded"]
        assert unsound(service) == 0


def unsound(service: MemoryService) -> float:
    """How many orchestrators the figures of a server call unsound."""
    text, _ = PrometheusMeters().exposition(Readiness(service).look())
    [told] = re.findall(rb"^memgraph_unsound_orchestrators (\S+)$", text, re.MULTILINE)
    return float(told)


def test_a_verification_is_listed_run_by_hand_and_stopped(tmp_path: Path) -> None:
    with filled(tmp_path) as (service, _, _ids):
        orc = service.orchestrator(NAME)
        assert "verification" in [each.job for each in orc.jobs.plans()]
        done = orc.jobs.run("verification")
        assert (done.state, done.trigger, done.reason) == ("done", "manual", None)
        assert done.counts["memories"] == orc.verify().checked["memories"]
        cut = orc.jobs.run("verification", stop=lambda: True)
        assert (cut.state, cut.error_code) == ("abandoned", STOPPED)
