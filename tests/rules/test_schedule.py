"""When jobs are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings, strategies as st

from memgraph.clock import iso, parse_time
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import LEASE_LOST, STOPPED, JobRun
from memgraph.rules.schedule import MAX_KILLED, latest_due, next_due, retry_at

BERLIN = "Europe/Berlin"
DAY = 86_400_000


def at(text: str) -> int:
    return parse_time(text)


def test_sunday_is_zero_and_seven() -> None:
    for sunday in ("0 3 * * 0", "0 3 * * 7", "0 3 * * SUN"):
        found = next_due(sunday, "UTC", at("2026-11-16T12:00:00Z"))
        assert found == at("2026-11-22T03:00:00Z")


def test_an_hour_that_a_day_skips_is_due_at_the_end_of_the_gap() -> None:
    gap = at("2026-03-29T01:00:00Z")
    assert next_due("30 2 * * *", BERLIN, at("2026-03-28T12:00:00Z")) == gap
    assert latest_due("30 2 * * *", BERLIN, gap) == gap
    assert latest_due("30 2 * * *", BERLIN, gap - 1) == at("2026-03-28T01:30:00Z")
    assert next_due("30 2 * * *", BERLIN, gap) == at("2026-03-30T00:30:00Z")


@pytest.mark.parametrize("minutes", [0, 45, 105])
def test_an_hour_that_a_day_has_twice_is_due_once(minutes: int) -> None:
    first = at("2026-10-25T00:30:00Z")
    now = first + minutes * 60_000
    assert latest_due("30 2 * * *", BERLIN, now) == first
    assert next_due("30 2 * * *", BERLIN, now) == at("2026-10-26T01:30:00Z")


def test_an_expression_that_never_comes_true_is_never_due() -> None:
    now = at("2026-01-01T00:00:00Z")
    assert next_due("0 0 29 2 *", "UTC", now) == at("2028-02-29T00:00:00Z")
    # The 31st, and only when it is the fifth Monday of a February: every year has none.
    assert next_due("0 0 * 2 1#5", "UTC", now) == at("2044-02-29T00:00:00Z")


def _slow(zone: str, start: int, wanted: tuple[int, int]) -> list[int]:
    """Every minute of some days that shows the wanted hour and minute on a clock of the zone."""
    moments = [
        datetime.fromtimestamp(start / 1000, UTC) + timedelta(minutes=n) for n in range(5_000)
    ]
    seen: dict[tuple[int, int], int] = {}
    for each in moments:
        local = each.astimezone(ZoneInfo(zone))
        if (local.hour, local.minute) == wanted:
            seen.setdefault((local.month, local.day), round(each.timestamp()) * 1000)
    return sorted(seen.values())


@settings(max_examples=30)
@given(
    zone=st.sampled_from([BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
    day=st.sampled_from(["2026-03-27", "2026-10-23", "2026-04-03", "2026-11-20"]),
    hour=st.integers(4, 23),
    minute=st.integers(0, 59),
    offset=st.integers(24 * 60, 48 * 60),
)
def test_moments_are_those_that_a_clock_on_the_wall_shows(
    zone: str, day: str, hour: int, minute: int, offset: int
) -> None:
    start = at(f"{day}T00:00:00Z")
    now = start + offset * 60_000
    known = _slow(zone, start, (hour, minute))
    assert latest_due(f"{minute} {hour} * * *", zone, now) == max(t for t in known if t <= now)
    assert next_due(f"{minute} {hour} * * *", zone, now) == min(t for t in known if t > now)


@given(
    expression=st.sampled_from(
        ["*/7 * * * *", "0 3 * * *", "15,45 1-3 * * *", "0 0 1 * *", "30 2 * * 0", "5 0 * 8 *"]
    ),
    zone=st.sampled_from(["UTC", BERLIN, "America/Sao_Paulo", "Africa/Casablanca"]),
    now=st.integers(at("2025-01-01"), at("2027-12-31")),
)
def test_latest_and_next_stand_on_both_sides_of_now_with_nothing_between(
    expression: str, zone: str, now: int
) -> None:
    latest, following = latest_due(expression, zone, now), next_due(expression, zone, now)
    assert latest is not None
    assert following is not None
    assert latest <= now < following
    assert next_due(expression, zone, latest) == following, iso(now)
    assert latest_due(expression, zone, following - 1) == latest


@pytest.mark.parametrize("day", ["2026-04-04", "2026-10-03"])
def test_no_moment_is_missed_where_the_clock_moves_by_half_an_hour(day: str) -> None:
    zone = "Australia/Lord_Howe"
    now, end = at(f"{day}T00:00:00Z"), at(f"{day}T00:00:00Z") + 2 * DAY
    hours = []
    while (now := next_due("0 */6 * * *", zone, now) or end) < end:
        hours.append(datetime.fromtimestamp(now / 1000, ZoneInfo(zone)).hour)
    assert hours == [12, 18, 0, 6, 12, 18, 0, 6]


NOW = 10


def run(state: JobState, code: str | None = None) -> JobRun:
    return JobRun(
        run_id="run_1",
        job=JobName.DECAY,
        trigger="schedule",
        due_at=9,
        started_at=9,
        ended_at=None if state is JobState.RUNNING else 10,
        state=state,
        holder="h",
        counts={},
        rejected=(),
        error_code=code,
        reason=None,
    )


def test_a_moment_is_served_by_a_run_that_runs_or_ended_by_itself() -> None:
    for state in (JobState.DONE, JobState.SKIPPED, JobState.RUNNING, JobState.FAILED):
        assert retry_at([run(state)], NOW) is None


def test_a_killed_run_is_taken_over_at_once_but_not_for_ever_and_a_stopped_one_does_not_count() -> (
    None
):
    killed, stopped = (run(JobState.ABANDONED, code) for code in (LEASE_LOST, STOPPED))
    assert retry_at([killed], NOW) == retry_at([stopped] * 9, NOW) == NOW
    assert retry_at([killed] * MAX_KILLED, NOW) is None


def test_a_run_that_met_a_full_disk_is_tried_again_after_a_pause_that_grows_to_an_hour() -> None:
    full = run(JobState.FAILED, "storage.full")
    assert [retry_at([full] * times, 10) for times in (1, 2, 3, 99)] == [
        10 + minutes * 60_000 for minutes in (1, 2, 4, 60)
    ]
    assert retry_at([full], 9) == 9  # the clock was set back
    assert retry_at([full, run(JobState.DONE)], 10) is None
