"""Leases and the records of runs."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memgraph import MemoryService, Orchestrator
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import LEASE_LOST, JobReport, RejectedItem
from memgraph.store import jobs
from memgraph.store.snapshot import Snapshot


def take(connection: Snapshot, holder: str, wall_ms: int) -> str | None:
    return jobs.acquire(connection, "job:decay", holder, wall_ms=wall_ms, lease_ms=100)


def test_a_lease_is_one_holders_until_it_expires(service: MemoryService, orc: Orchestrator) -> None:
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        assert take(connection, "a", 1_000) is None
        assert take(connection, "b", 1_099) == "a"
        assert jobs.renew(connection, "job:decay", "a", wall_ms=1_050, lease_ms=100)
        assert take(connection, "b", 1_149) == "a"
        assert take(connection, "b", 1_150) is None
        assert take(connection, "a", 1_151) == "b"


def test_what_expired_is_not_renewed_and_anothers_is_not_released(
    service: MemoryService, orc: Orchestrator
) -> None:
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        take(connection, "a", 1_000)
        assert not jobs.renew(connection, "job:decay", "a", wall_ms=1_100, lease_ms=100)
        assert not jobs.renew(connection, "job:decay", "b", wall_ms=1_050, lease_ms=100)
        jobs.release(connection, "job:decay", "b")
        assert take(connection, "b", 1_050) == "a"
        jobs.release(connection, "job:decay", "a")
        assert take(connection, "b", 1_050) is None


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["take", "renew", "release"]),
            st.sampled_from("abc"),
            st.integers(0, 70),
        ),
        max_size=30,
    )
)
def test_nobody_else_has_a_lease_that_somebody_holds(
    service: MemoryService, orc: Orchestrator, steps: list[tuple[str, str, int]]
) -> None:
    holds: dict[str, int] = {}
    now = 1_000
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM leases")
        for what, who, passed in steps:
            now += passed
            live = {item for item, until in holds.items() if until > now}
            assert len(live) <= 1
            if what == "take":
                is_taken = take(connection, who, now) is None
                assert is_taken == (not live)
                if is_taken:
                    holds = {who: now + 100}
            elif what == "renew":
                remaining = jobs.renew(connection, "job:decay", who, wall_ms=now, lease_ms=100)
                assert remaining == (who in live)
                if remaining:
                    holds[who] = now + 100
            else:
                jobs.release(connection, "job:decay", who)
                holds.pop(who, None)


def begin(connection: Snapshot, run_id: str, at: int, **fields: object) -> None:
    values = {"trigger": "schedule", "due_at": at, "holder": f"holder of {run_id}"} | fields
    jobs.begin(connection, run_id, JobName.DECAY, started_at=at, **values)  # type: ignore[arg-type]  # plain values, as a row has them


def test_a_run_is_told_as_it_was(service: MemoryService, orc: Orchestrator) -> None:
    report = JobReport.done({"retired": 2}, [RejectedItem(code="input.invalid", where="item 3")])
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        begin(connection, "run_1", 10)
        assert jobs.get(connection, "run_1").state is JobState.RUNNING
        assert jobs.end(connection, "run_1", report, ended_at=15)
        assert not jobs.end(connection, "run_1", JobReport.skipped("late"), ended_at=16)
        run = jobs.get(connection, "run_1")
        assert jobs.latest_due_at(connection, JobName.DECAY, 10) == 10
        assert jobs.latest_due_at(connection, JobName.DECAY, 9) is None
        assert jobs.latest_due_at(connection, JobName.REFLECTION, 10) is None
    assert (run.state, run.due_at, run.ended_at) == (JobState.DONE, 10, 15)
    assert run.counts == {"rejected": 1, "retired": 2}
    assert run.rejected == report.rejected


def test_a_run_without_a_lease_is_abandoned(service: MemoryService, orc: Orchestrator) -> None:
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        begin(connection, "run_1", 10, holder="a")
        take(connection, "a", 1_000)
        assert not any(jobs.left(connection, wall_ms=1_099))
        leases, runs = jobs.left(connection, wall_ms=1_100)
        assert [lease.holder for lease in leases] == ["a"]
        assert [run.run_id for run in runs] == ["run_1"]
        jobs.remove_left(connection, at=20, wall_ms=1_100)
        assert not any(jobs.left(connection, wall_ms=1_100))
        run = jobs.get(connection, "run_1")
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


def test_runs_from_the_future_go_first_and_the_last_moment_until_now_stays(
    service: MemoryService, orc: Orchestrator
) -> None:
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        for number, due_at in enumerate([10, 900, 901]):
            begin(connection, f"run_{number}", due_at)
            jobs.end(connection, f"run_{number}", JobReport.done({}), ended_at=due_at)
        assert jobs.is_any_ahead(connection, 40)
        last = jobs.last_ended(connection, JobName.DECAY, 40)
        assert last is not None
        assert last.run_id == "run_0"
        jobs.prune(connection, 1, 40)
        run_ids = [run.run_id for run in jobs.latest(connection, 100)]
    assert run_ids == ["run_0"]


def test_a_lease_from_a_clock_that_was_ahead_holds_nobody_up(
    service: MemoryService, orc: Orchestrator
) -> None:
    ahead = 1_000_000_000
    with service.opened(orc.name) as opened, opened.database.write() as connection:
        begin(connection, "run_1", 10, holder="a")
        take(connection, "a", 1_000)
        assert jobs.renew(connection, "job:decay", "a", wall_ms=1_050, lease_ms=ahead)
        assert take(connection, "b", 1_040) == "a"
        assert jobs.renew(connection, "job:decay", "a", wall_ms=ahead, lease_ms=100)
        assert [run.run_id for run in jobs.left(connection, wall_ms=1_060)[1]] == ["run_1"]
        assert take(connection, "b", 1_060) is None
        assert not jobs.renew(connection, "job:decay", "a", wall_ms=1_060, lease_ms=100)
