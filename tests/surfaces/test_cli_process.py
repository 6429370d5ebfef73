"""The installed command as a process of its own: streams, exit codes, signals, completion."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from programs import Program

from memgraph import MemoryService, __version__

NO_READER = {"MEMGRAPH_MEMORY__COMPARISON__READER": "none"}
SESSIONS = 120
PROGRAM = Path(sys.executable).with_name("memgraph")
MAIN = "from memgraph.surfaces.cli import run_and_exit as run; raise SystemExit(run())"
START = [str(PROGRAM)] if PROGRAM.exists() else [sys.executable, "-c", MAIN]


def environment(root: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMGRAPH_")}
    return {**kept, **NO_READER, "MEMGRAPH_ROOT": str(root), **more}


def run(root: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*START, *arguments],
        capture_output=True,
        text=True,
        env=environment(root, **more),
        stdin=subprocess.DEVNULL,
        check=False,
    )


def unread(pipe: int) -> int:
    """Bytes in a pipe that nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with orc-1 and one memory; the tests of this module only read it."""
    made = tmp_path_factory.mktemp("process") / "root"
    with MemoryService(made, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        orc.remember("Grüße from 日本, the shop closes at 20:00.")
    return made


def test_answers_and_errors_go_to_their_streams(root: Path) -> None:
    good = run(root, "recall", "orc-1", "shop", "--json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["data"]["items"][0]["memory"]["content"].startswith("Grüße")
    refused = run(root, "get", "orc-1", "fact_0")
    assert (refused.returncode, refused.stdout) == (1, "")
    told = "error[memory.not_found]: no memory 'fact_0'. Try: memgraph list orc-1\n"
    assert refused.stderr == told


def test_help_goes_to_standard_output_and_names_every_command(root: Path) -> None:
    told = run(root, "--help")
    assert (told.returncode, told.stderr) == (0, "")
    assert {"recall", "ingest"} <= {*told.stdout.split()}
    assert json.loads(run(root, "--json", "--version").stdout)["data"] == {"version": __version__}


def test_an_encoding_that_cannot_show_a_memory_gets_escapes(root: Path) -> None:
    shown = run(root, "list", "orc-1", PYTHONIOENCODING="ascii")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Gr\\xfc\\xdfe" in shown.stdout
    told = run(root, "list", "orc-1", "--json", PYTHONIOENCODING="ascii")
    assert json.loads(told.stdout)["data"]["items"][0]["content"].startswith("Grüße")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_reader_that_goes_away_is_no_crash_and_a_full_disk_is_told(root: Path) -> None:
    reading, gone = os.pipe()
    os.close(reading)
    full = os.open("/dev/full", os.O_WRONLY)
    for out, told in ((gone, ""), (full, "error[cli.system]: No space left on device\n")):
        done = subprocess.run(
            [*START, "list", "orc-1"],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(root),
            check=False,
        )
        os.close(out)
        assert (done.returncode, done.stderr) == (1, told)


@contextmanager
def begun(root: Path, *arguments: str) -> Iterator[Program]:
    """A command that runs on."""
    with Program(
        ["-c", MAIN, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(root),
    ) as process:
        yield process


def wait(process: Program, done: Callable[[], bool]) -> None:
    """Wait for something that a running command does."""
    deadline = time.monotonic() + 60
    while not done():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_followed_drop_zone_is_worked_off_until_it_is_interrupted(tmp_path: Path) -> None:
    with MemoryService(tmp_path, environ={}, background=False) as service:
        zone = service.orchestrator("orc-1", create=True).paths.ingest
    with begun(tmp_path, "ingest", "orc-1", "--watch", "--json") as process:
        fresh = zone / ".notes.md"
        fresh.write_text("- [ ] Water the plants\n", encoding="utf-8")
        fresh.rename(zone / "notes.md")
        wait(process, (zone / "processed" / "notes.md.manifest.json").exists)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert [each["path"] for each in json.loads(out)["data"]["files"]] == ["notes.md"]


def test_an_interrupted_command_says_so_and_ends_with_130(root: Path) -> None:
    with begun(root, "remember", "orc-1", "-") as process:
        assert process.stdin is not None
        pipe = process.stdin.fileno()
        process.stdin.write("The shop")
        process.stdin.flush()
        # What is there has been read: the command waits for the end of standard input.
        wait(process, lambda: not unread(pipe))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)
    assert out == ""
    if process.returncode == 130:
        assert err == "error[cli.interrupted]: interrupted\n"


def test_values_of_options_are_completed(root: Path) -> None:
    place = {"COMP_WORDS": "memgraph remember orc-1 x --kind ", "COMP_CWORD": "5"}
    bash = run(root, _MEMGRAPH_COMPLETE="complete_bash", **place)
    kinds = {"episode", "fact", "preference", "reflection"}
    assert (bash.returncode, set(bash.stdout.split())) == (0, kinds)


def test_the_process_of_a_command_flushes_its_output_and_runs_what_waits_for_its_end() -> None:
    program = (
        "import atexit, sys; atexit.register(print, 'closed')\n"
        "from memgraph.surfaces.cli import run_and_exit; sys.exit(run_and_exit())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "recall"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "closed\n")
    assert done.stderr.startswith("error[cli.usage]")


def test_a_terminated_run_leaves_no_lease(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        turn = {"source_role": "user", "content": "I keep bees behind the house in Leeds."}
        orc.save_episodes({**turn, "session_id": f"s-{at}"} for at in range(SESSIONS))
        for at in range(SESSIONS):
            orc.sessions.end(f"s-{at}")
    with begun(root, "run", "orc-1", "consolidation", "--json") as process:
        wait(process, lambda: _at_work(root))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 130
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        again = orc.jobs.run("consolidation", session_id=f"s-{SESSIONS - 1}")
        before = orc.jobs.list(limit=2)[1]
    assert again.state == "done"
    assert before.state in ("failed", "abandoned")


def _at_work(root: Path) -> bool:
    with MemoryService(root, environ={}, background=False) as service:
        runs = service.orchestrator("orc-1").jobs.list(limit=1)
    return bool(runs) and runs[0].state == "running"
