"""The mistakes of a newcomer: each says what to do, in one line, and ends with 1 or 2."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memgraph.surfaces.cli import screen

if TYPE_CHECKING:
    from conftest import CommandLine

KEY = ("--orchestrator", "orc-1", "--permission", "read")
MISTAKES = [
    (["recal", "orc-1", "x"], 2, "Did you mean 'recall'?"),
    (["recall", "orc-1", "x", "--limt", "3"], 2, "No such option: --limt"),
    (["recall", "orc-1", "x", "--as-of", "soon"], 2, "--as-of: not an ISO 8601 time, e.g. 2026-"),
    (["remember", "orc-1"], 2, "memgraph remember ORC CONTENT"),
    (["remember", "orc-1", ""], 2, "CONTENT: is empty"),
    (["remember", "orc-1", "x", "--type", "Opinion"], 2, "'fact', 'preference', 'decision'"),
    (["remember", "orc-1", "x", "--importance", "900"], 2, "--importance: "),
    ([], 2, "Usage: memgraph"),
    (["get", "orc-1", "fact_0"], 1, "memgraph list orc-1"),
    (["grounds", "orc-1", "--workflow-run-id", "r"], 1, ". Try: memgraph receipts orc-1"),
    (
        ["retract", "orc-1", "fact_0"],
        2,
        "Missing option '--reason'. Try: memgraph retract ORC MEMORY --reason TEXT, or",
    ),
    (["ingest", "orc-1", "no-such-file"], 2, "'no-such-file' does not exist"),
    (["ingest", "orc-1", "--watch", "--dry-run"], 2, "cannot be combined with --watch"),
    (["init", "orc-1"], 1, "--exist-ok"),
    (["restore", "orc-1", "no-such-file"], 1, "there is no file"),
    (["recall", "nobody", "x"], 1, " has orc-1\n"),
    (["export", "orc-1", "no-such-folder/x.jsonl"], 1, "the folder does not exist: "),
    (["restore", "orc-1", "{notes}"], 1, "restore needs a file of memgraph backup"),
    (["backup", "orc-1", "{notes}"], 1, "--force"),
    (["key", "create", "a", *KEY, "-o", "{notes}"], 1, "name a new file"),
    (["key", "create", "a", *KEY, "--expires", "soon"], 2, "90d, 12h, 30m"),
    (["erase", "orc-1", "--reason", "x"], 2, "exactly one of: --memory-id, --entity, --text,"),
    (["export", "orc-1", "-"], 2, "name a file"),
    (["ask", "orc-1", "x"], 1, "in the root's memgraph.toml"),
    (["entity", "orc-1", "Bob"], 1, "memgraph entities orc-1"),
    (["worker", "--once", "--orchestrator", "nobody"], 1, "memgraph init nobody"),
    (["key", "create", "desk", "--orchestrator", "orc-1"], 2, "Choose from: read, write"),
    (["--server", "localhost:1", "list", "orc-1"], 2, "http://127.0.0.1:8420"),
    (["--server", "http://127.0.0.1:9", "list", "orc-1"], 1, "is the server running?"),
]


@pytest.mark.parametrize(("arguments", "code", "says"), MISTAKES, ids=lambda each: str(each)[:50])
def test_a_mistake_is_answered_with_what_to_do(
    cli: CommandLine, tmp_path: Path, arguments: list[str], code: int, says: str
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("We decided to dig.\n", encoding="utf-8")
    ran = cli(*(each.format(notes=notes) if "{" in each else each for each in arguments))
    assert ran.code == code
    assert says in ran.err
    if arguments:
        assert ran.err.startswith("error[")
        assert ran.err.count("\n") == 1
    error = cli.error(*(each.format(notes=notes) if "{" in each else each for each in arguments))
    assert ran.err.startswith(f"error[{error['code']}]: ") or not arguments
    assert "Try: " not in error["message"]
    assert not Path("no-such-folder").exists()


def test_a_backup_is_restored_under_another_name_when_that_is_asked_for(
    cli: CommandLine, tmp_path: Path
) -> None:
    kept = cli.remember("The shop sells bread.")
    file = str(tmp_path / "orc-1.backup")
    assert cli("backup", "orc-1", file).code == 0
    assert "memgraph restore orc-1 FILE --as NAME" in cli("restore", "orc-2", file).err
    assert cli("restore", "orc-3", file, "--as", "orc-2").code == 1
    assert cli.json("restore", "orc-1", file, "--as", "orc-2")["orchestrator"] == "orc-2"
    assert cli.json("get", "orc-2", kept)["content"] == "The shop sells bread."
    assert "orc-2 already has a database" in cli("restore", "orc-1", file, "--as", "orc-2").err
    lines = str(tmp_path / "orc-1.jsonl")
    assert cli("export", "orc-1", lines).code == 0
    assert (
        "restore needs a file of memgraph backup"
        in cli("restore", "orc-1", lines, "--as", "orc-4").err
    )
    assert not (cli.root / "orc-4").exists()


@pytest.mark.parametrize("storage_url", ["postgresql"], indirect=True)
def test_a_backup_is_restored_where_the_settings_of_the_new_name_point(
    cli: CommandLine, storage_url: str, tmp_path: Path
) -> None:
    kept, file = cli.remember("The shop sells bread."), str(tmp_path / "orc-1.backup")
    assert cli("migrate-store", "orc-1", "--to", storage_url).code == 0
    assert cli("backup", "orc-1", file).code == 0
    assert cli("restore", "orc-1", file, "--as", "orc-2").code == 0
    placement = f'[memory.storage]\nplacement = ["orc-3={storage_url}"]\n'
    (cli.root / "memgraph.toml").write_text(placement)
    assert cli("restore", "orc-1", file, "--as", "orc-3").code == 0
    for name in ("orc-1", "orc-2", "orc-3"):
        assert [item["memory_id"] for item in cli.json("list", name)["items"]] == [kept]
        assert cli.database(name).exists() is (name == "orc-2")
    listed = cli.json("health")["orchestrators"]
    stores = {item["orchestrator"]: item["store"] for item in listed}
    assert stores["orc-2"] == str(cli.database("orc-2"))
    assert stores["orc-1"] == stores["orc-3"] != stores["orc-2"]


def test_a_narrow_output_wraps_the_text_and_no_ids(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "The shop in the old town opens at nine on Mondays, and at ten on every other day."
    kept = cli.remember(text)
    cli.json("recall", "orc-1", "when does the shop open?")
    monkeypatch.setenv("COLUMNS", "80")

    def lines(*command: str) -> list[str]:
        return cli(*command).out.splitlines()

    listed = lines("list", "orc-1")
    assert listed[2].split()[:3] == [kept[-6:].lower(), "Fact", "active"]
    assert text in " ".join(" ".join(listed[2:]).split())
    receipts = lines("receipts", "orc-1")
    assert receipts[0].split() == ["id", "query", "at", "memories", "purpose"]
    assert receipts[2].startswith("rcl_")
    assert len(receipts[2].split()[0]) == len("rcl_") + 26
    assert max(map(len, (*listed, *receipts))) <= 80


def test_times_are_shown_in_the_zone_of_this_machine(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = cli.remember("The oven is on.", "--event-time", "2026-07-01T10:00:00Z")
    date = cli.remember("The fair opens.", "--event-time", "2026-07-01")
    cli.remember("The plumber comes tomorrow.", "--event-time", "2026-07-01T20:00:00Z")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert "  2026-07-01 19:00:00 JST\n" in cli("get", "orc-1", moment).out
        assert "event time    2026-07-01\n" in cli("get", "orc-1", date).out
        asked = "When does the plumber come? When does the fair open?"
        for command in ("context", "recall"):
            lines = cli(command, "orc-1", asked).out
            assert "Thu 2026-07-02, Fact: The plumber comes tomorrow." in lines
            assert "Wed 2026-07-01, Fact: The fair opens." in lines
        monkeypatch.setenv("MEMGRAPH_MEMORY__SCHEDULE__TIMEZONE", "UTC")
        assert "Wed 2026-07-01, Fact: The plumber" in cli("context", "orc-1", "The plumber?").out
        told = cli.json("get", "orc-1", moment)["event_time"]
        assert told == "2026-07-01T10:00:00.000Z"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_progress_in_a_pipe_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = io.StringIO()
    now = [100.0]
    monkeypatch.setattr("sys.stderr", error)
    monkeypatch.setattr(screen.time, "monotonic", lambda: now[0])
    with screen.stages("ingesting", lines_every_s=5.0) as told:
        for seconds, done in ((0.0, 0), (10.0, 5), (20.0, 400), (30.0, 1_000)):
            now[0] = 100.0 + seconds
            told("a.md", done, 1_000)
    assert error.getvalue().splitlines() == [
        "ingesting: 5 of 1000, a.md",
        "ingesting: 400 of 1000, a.md",
        "ingesting: 1000 of 1000, a.md",
    ]
