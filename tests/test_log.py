"""Log lines: JSON, one line each, bounded, without an error's text."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from processes import Process

from memgraph.clock import FixedClock, SystemClock
from memgraph.errors import ProviderRejected
from memgraph.log import EventLog, MemorySink, RotatingFile

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def make_log(**arguments: Any) -> tuple[EventLog, MemorySink]:
    sink = MemorySink()
    return EventLog(sink, FixedClock(), **arguments), sink


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def test_a_line_has_event_level_time_and_fields() -> None:
    log, sink = make_log(orchestrator="orc-1")
    log.warning("ingest.rejected", reason="too_large", size=3)
    assert [json.loads(line) for line in sink.lines] == [
        {
            "event": "ingest.rejected",
            "level": "warning",
            "time": "2026-01-01T00:00:00.000Z",
            "orchestrator": "orc-1",
            "reason": "too_large",
            "size": 3,
        }
    ]


def test_what_is_below_the_level_is_not_written() -> None:
    log, sink = make_log(level="warning")
    log.info("a")
    log.warning("a")
    log.error("a")
    assert [json.loads(line)["level"] for line in sink.lines] == ["warning", "error"]


def test_a_failure_tells_class_and_code_never_the_text() -> None:
    log, sink = make_log()
    log.failure("embedding.failed", ProviderRejected("key sk-secret", sent="sk-secret"), memory=1)
    log.failure("embedding.failed", ValueError("sk-secret"), level="warning")
    first, second = (json.loads(line) for line in sink.lines)
    assert (first["error"], first["code"], first["memory"]) == (
        "ProviderRejected", "provider.rejected", 1,
    )  # fmt: skip
    assert (second["error"], second["level"], "code" in second) == ("ValueError", "warning", False)
    assert "secret" not in "".join(sink.lines)


@settings(deadline=None)
@given(st.text(st.characters()), json_values)
def test_every_event_is_one_printable_line_of_valid_json(event: str, value: Any) -> None:
    log, sink = make_log()
    log.info(event, value=value)
    (line,) = sink.lines
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line, parse_constant=pytest.fail)["event"] == event


def test_values_are_bounded_and_unknown_ones_are_named_by_type() -> None:
    class Secretive:
        def __repr__(self) -> str:
            return "sk-secret"

    log, sink = make_log()
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    log.info(
        "e",
        long="x" * 1_000_000,
        many=["y" * 5_000] * 1_000,
        deep=deep,
        odd=Secretive(),
        path=Path("/a/b"),
        keys={(1, 2): 3},
        number=float("inf"),
        huge=10**5_000,
    )
    (line,) = sink.lines
    told = json.loads(line)
    assert len(line) < 120_000
    assert len(told["long"]) == 2_001
    assert len(told["many"]) == 50
    assert (told["odd"], told["path"]) == ("<Secretive>", "/a/b")
    assert (told["keys"], told["number"], told["huge"]) == ({"(1, 2)": 3}, "<float>", "<int>")


def test_a_field_cannot_pass_for_the_stamp() -> None:
    log, sink = make_log()
    log.info("e", time="1970", level="forged")
    told = json.loads(sink.lines[0])
    assert (told["time"], told["level"]) == ("2026-01-01T00:00:00.000Z", "info")


def test_opening_makes_no_file_and_writing_makes_a_private_one(tmp_path: Path) -> None:
    path = tmp_path / "memory.log"
    log = EventLog(RotatingFile(path), SystemClock())
    assert not path.exists()
    log.info("started")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [line["event"] for line in read(path)] == ["started"]


def test_the_file_is_rotated_and_only_some_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "memory.log"
    log = EventLog(RotatingFile(path, max_bytes=1_000, keep_files=2), FixedClock())
    for number in range(100):
        log.info("event", number=number)
    files = sorted(one.name for one in tmp_path.iterdir())
    assert files == ["memory.log", "memory.log.1", "memory.log.2", "memory.log.lock"] or (
        files == ["memory.log.1", "memory.log.2", "memory.log.lock"]
    )
    kept = [
        line["number"]
        for name in ("memory.log.2", "memory.log.1", "memory.log")
        if (tmp_path / name).exists()
        for line in read(tmp_path / name)
    ]
    assert kept == list(range(kept[0], 100))
    assert sum(one.stat().st_size for one in tmp_path.iterdir()) < 3 * 1_200


@pytest.mark.parametrize("obstacle", ["missing folder", "folder", "link", "fifo"])
def test_a_log_that_cannot_be_written_fails_nothing_and_is_counted(
    tmp_path: Path, obstacle: str
) -> None:
    path = tmp_path / "logs" / "memory.log"
    target = tmp_path / "target"
    if obstacle != "missing folder":
        path.parent.mkdir()
    if obstacle == "folder":
        path.mkdir()
    if obstacle == "link":
        path.symlink_to(target)
    if obstacle == "fifo":
        os.mkfifo(path)
    sink = RotatingFile(path)
    log = EventLog(sink, FixedClock())
    log.info("one")
    log.info("two")
    assert sink.dropped == 2
    assert not target.exists()


def _write_many(path: Path, writer: int) -> None:
    log = EventLog(RotatingFile(path, max_bytes=20_000, keep_files=50), SystemClock())
    for number in range(200):
        log.info("event", writer=writer, number=number, text="x" * 200)


def test_processes_share_a_log_and_its_rotation_without_a_lost_or_torn_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.log"
    writers = [Process(_write_many, path, number) for number in range(2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    lines = [
        line for one in tmp_path.glob("memory.log*") if one.suffix != ".lock" for line in read(one)
    ]
    seen = sorted((line["writer"], line["number"]) for line in lines)
    assert seen == [(writer, number) for writer in range(2) for number in range(200)]
