"""The records of runs, of which a running one is a lease."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings, strategies as st

from memgraph import MemoryService, Orchestrator
from memgraph.errors import Conflict
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import LEASE_LOST, JobReport
from memgraph.model.tables import JobRunRow
from memgraph.store import jobs
from memgraph.store.snapshot import Transaction

LEASE_MS = jobs.LEASE_MS


def begin(connection: Transaction, run_id: str, at: int, **fields: object) -> None:
    values = {
        "job": JobName.DECAY.value,
        "trigger": "schedule",
        "due_at": at,
        "state": JobState.RUNNING,
        "holder": f"holder of {run_id}",
        "renewed_at": at,
    } | fields
    jobs.abandon_left(connection, at=at, wall_ms=int(str(values["renewed_at"])))
    jobs.begin(connection, JobRunRow(run_id=run_id, started_at=at, **values))


def is_taken(connection: Transaction, run_id: str, wall_ms: int) -> bool:
    try:
        begin(connection, run_id, wall_ms)
    except Conflict:
        return False
    return True


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["take", "renew", "end"]),
            st.sampled_from("abc"),
            st.integers(0, LEASE_MS * 7 // 10),
        ),
        max_size=30,
    )
)
def test_nobody_else_has_a_job_that_somebody_holds(
    service: MemoryService, orc: Orchestrator, steps: list[tuple[str, str, int]]
) -> None:
    # The run of the last holder, and until when nobody else may take its job.
    holder, run_id, until, now = "", "", 0, 1_000
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM job_runs")
        for number, (what, who, passed) in enumerate(steps):
            now += passed
            if what == "take":
                assert is_taken(connection, f"{who}{number}", now) == (until <= now)
                if until <= now:
                    holder, run_id, until = who, f"{who}{number}", now + LEASE_MS
            elif who != holder:
                assert not jobs.renew(connection, "none", wall_ms=now)
            elif what == "renew":
                # One that was silent for too long has it as long as nobody else took it.
                assert jobs.renew(connection, run_id, wall_ms=now)
                until = now + LEASE_MS
            else:
                assert jobs.end(connection, run_id, JobReport.done({}), ended_at=now)[1]
                holder, until = "", 0


def test_a_run_without_a_lease_is_abandoned(service: MemoryService, orc: Orchestrator) -> None:
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        begin(connection, "run_1", 10, renewed_at=1_000)
        assert not jobs.left(connection, wall_ms=999 + LEASE_MS)
        left = jobs.left(connection, wall_ms=1_000 + LEASE_MS)
        assert [run.run_id for run in left] == ["run_1"]
        [run] = jobs.abandon_left(connection, at=20, wall_ms=1_000 + LEASE_MS)
        assert not jobs.left(connection, wall_ms=1_000 + LEASE_MS)
        late = JobReport.skipped("late")
        assert jobs.end(connection, "run_1", late, ended_at=21) == (run, False)
    assert (run.state, run.error_code, run.ended_at) == (JobState.ABANDONED, LEASE_LOST, 20)


def test_old_runs_go_but_those_of_the_last_moment_stay(
    service: MemoryService, orc: Orchestrator
) -> None:
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        for number, due_at in enumerate([10, 20, 30, 30, None, None, None]):
            begin(connection, f"run_{number}", number, due_at=due_at)
            jobs.end(connection, f"run_{number}", JobReport.done({}), ended_at=number)
        begin(connection, "run_now", 0, due_at=None)
        jobs.prune(connection, 2, 40)
        run_ids = [run.run_id for run in jobs.latest(connection, 100)]
    assert run_ids == ["run_6", "run_5", "run_3", "run_2", "run_now"]


def test_the_last_run_is_none_from_the_future(service: MemoryService, orc: Orchestrator) -> None:
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        for number, due_at in enumerate([10, 900, 901]):
            begin(connection, f"run_{number}", due_at)
            jobs.end(connection, f"run_{number}", JobReport.done({}), ended_at=due_at)
        last = jobs.last_ended(connection, JobName.DECAY, 40)
    assert last is not None
    assert last.run_id == "run_0"


def test_a_lease_from_a_clock_that_was_ahead_holds_nobody_up(
    service: MemoryService, orc: Orchestrator
) -> None:
    ahead = 1_000_000_000
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        begin(connection, "run_1", 10, renewed_at=ahead)
        assert not jobs.left(connection, wall_ms=ahead - jobs.SLACK_MS)
        assert [run.run_id for run in jobs.left(connection, wall_ms=1_060)] == ["run_1"]
        assert is_taken(connection, "b", 1_060)
        assert not jobs.renew(connection, "run_1", wall_ms=1_060)
