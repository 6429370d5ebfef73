"""The commands of the schedule and of tools, as a person and a program see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from memgraph.errors import ProviderUnavailable

if TYPE_CHECKING:
    from conftest import CommandLine


def owe(cli: CommandLine) -> None:
    """Make it seem as if the orchestrator had been there for ever."""
    from memgraph import MemoryService

    with (
        MemoryService(cli.root, environ={}, background=False) as service,
        service.opened("orc-1") as opened,
        opened.database.write() as connection,
    ):
        connection.exec_driver_sql(
            "UPDATE memory_metadata SET value = '1' WHERE key = 'created_at'"
        )


def test_a_worker_prints_a_line_for_each_run(cli: CommandLine) -> None:
    owe(cli)
    told = cli("worker", "--once")
    assert told.code == 0
    *lines, last = told.out.splitlines()
    assert [line.split()[3:6] for line in lines] == [
        ["orc-1", "enrichment", "skipped"],
        ["orc-1", "consolidation", "done"],
        ["orc-1", "decay", "done"],
        ["orc-1", "reflection", "skipped"],
        ["orc-1", "verification", "done"],
    ]
    assert last == "5 runs, 0 failed"
    assert cli("worker", "--once").out == "0 runs, 0 failed\n"


def test_a_broken_orchestrator_is_told_and_the_others_go_on(cli: CommandLine) -> None:
    assert cli("init", "broken").code == 0
    database = cli.root / "broken" / "memory" / "memory.db"
    for each in database.parent.glob("memory.db*"):
        each.unlink()
    database.write_bytes(b"these bytes are no database at all")
    owe(cli)
    told = cli("worker", "--once")
    assert told.code == 1
    assert "5 runs" in told.out
    assert told.err.splitlines()[0].startswith("broken: error[storage.")


def test_jobs_shows_what_is_due_and_what_ran(cli: CommandLine) -> None:
    owe(cli)
    overdue = cli.json("jobs", "orc-1")["plans"]
    assert all(each["overdue_since"] for each in overdue)
    cli("run", "orc-1", "decay")
    told = cli("jobs", "orc-1").out
    assert "0 3 * * 0" in told
    [row] = [line for line in told.splitlines() if line.startswith("decay") and "manual" in line]
    assert "done" in row
    runs = cli.json("jobs", "orc-1")["runs"]
    assert [(each["job"], each["trigger"], each["due_at"]) for each in runs] == [
        ("decay", "manual", None)
    ]


def test_what_makes_no_sense_is_refused(cli: CommandLine) -> None:
    wrong = cli.error("run", "orc-1", "decay", "--session-id", "s-1")
    assert wrong["code"] == "input.invalid"
    missing = cli.error("run", "orc-1", "consolidation", "--session-id", "s-9")
    assert missing["code"] == "memory.not_found"


def test_a_failed_run_is_an_error(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    from memgraph.service import job_runs as jobs

    def fails(*_: Any) -> None:
        raise ProviderUnavailable("no answer")

    monkeypatch.setattr(jobs, "_work", fails)
    told = cli("run", "orc-1", "consolidation", "--json").error
    run = told["details"]
    assert (run["state"], run["error_code"]) == ("failed", "provider.unavailable")
    assert cli.json("health", "orc-1")["orchestrators"][0]["degraded"] == ["jobs.failing"]
