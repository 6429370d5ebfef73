"""A full disk has one name wherever it is met, nothing is half done, and health tells of it.

On a file system of a few megabytes of its own; where none may be mounted the tests are skipped.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from processes import Process
from working import NAME, working

from ingest.drop_zone import stage
from ingest.pipeline import IngestPipeline
from memgraph import MemoryService
from memgraph.errors import DatabaseFull
from memgraph.operations.maintenance.maintenance import restore
from memgraph.paths import OrchestratorPaths
from memgraph.service.access.keys import KeyStore
from memgraph.service.memory_service import CopyLimiter

FILLER = "filler"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if mount is None or os.geteuid() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def service(small: Path) -> Iterator[MemoryService]:
    with working(small / "root") as made:
        made.orchestrator(NAME, create=True)
        yield made


def fill_up(folder: Path) -> None:
    with (folder / FILLER).open("ab", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4_096))
            except OSError:
                return


def test_a_write_and_an_erasure_name_it_and_health_tells_until_there_is_room(
    service: MemoryService, small: Path
) -> None:
    orc = service.orchestrator(NAME)
    kept = orc.remember("Stored while there was room.")
    secret = orc.remember("The canary sings in cage 4711 at night.")
    fill_up(small)
    before = orc.maintenance.journal_state()
    with pytest.raises(DatabaseFull):
        orc.remember_many([{"content": f"number {each} " + "x" * 4_000} for each in range(500)])
    with pytest.raises(DatabaseFull):
        orc.erasure.erase(memory_id=secret, reason="asked for", dry_run=False)
    assert "storage.full" in service.health(NAME)["degraded"]
    assert orc.get(kept).content == "Stored while there was room."
    assert orc.maintenance.journal_state().seq >= before.seq
    (small / FILLER).unlink()
    orc.remember("There is room again.")
    assert "storage.full" not in service.health(NAME)["degraded"]
    # The erasure is finished by the next.
    report = orc.erasure.erase(memory_id=secret, reason="asked for", dry_run=False)
    assert report.complete
    assert report.remains == ()
    assert orc.verify().ok


def test_ingest_names_it_and_goes_on_later(service: MemoryService, small: Path) -> None:
    orc = service.orchestrator(NAME)
    zone = service.paths(NAME).ingest
    for number in range(3):
        lines = (f"- The valve {number}-{line} is checked in May." for line in range(40))
        (zone / f"{number}.md").write_text("# Valves\n" + "\n".join(lines) + "\n")
    fill_up(small)
    with pytest.raises(DatabaseFull):
        IngestPipeline(orc).run()
    (small / FILLER).unlink()
    IngestPipeline(orc).run()
    taken = {each.name for each in service.paths(NAME).processed.rglob("*.md")}
    assert taken == {"0.md", "1.md", "2.md"}
    assert orc.verify().ok


def test_what_makes_files_names_it_and_leaves_nothing_half_made(
    service: MemoryService, small: Path, tmp_path: Path
) -> None:
    orc = service.orchestrator(NAME)
    orc.remember("Stored while there was room.")
    backup, note = (tmp_path / name for name in ("backup", "note.md"))
    orc.exchange.backup(backup)
    note.write_text("- The valve is checked in May.\n" * 200)
    root, keys = service.root, KeyStore(service.root, service.clock)

    def send_a_copy() -> None:
        with CopyLimiter(root).copied(orc.exchange.export):
            pass

    fill_up(small)
    before = files(root)
    makers: list[Callable[[], object]] = [
        lambda: service.create("made"),
        lambda: restore(
            OrchestratorPaths(root, "restored"),
            backup,
            reason="try",
            actor="user",
            origin=NAME,
            clock=service.clock,
        ),
        send_a_copy,
        lambda: orc.exchange.backup(root / "copy"),
        lambda: orc.exchange.export(root / "copy"),
        lambda: keys.create({"name": "late", "permissions": ["read"], "orchestrators": [NAME]}),
        lambda: stage([note], service.paths(NAME).ingest),
    ]
    for make in makers:
        with pytest.raises(DatabaseFull):
            make()
    assert files(root) == before
    (small / FILLER).unlink()
    service.create("made")


def files(folder: Path) -> list[Path]:
    """The files of a folder that hold something; a lock holds nothing."""
    return sorted(each for each in folder.rglob("*") if each.is_file() and each.stat().st_size)


def write_to_the_limit(root: Path, told: Path) -> None:
    """Runs in a process: no file of it may have more than two million bytes for a while."""
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator(NAME, create=True)
        kept = orc.remember("Stored while there was room.")
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
        with pytest.raises(DatabaseFull):
            orc.remember_many({"content": f"{n} " + "x" * 4_000} for n in range(1_000))
        assert "storage.full" in service.health(NAME)["degraded"]
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        orc.remember("There is room again.")
        assert orc.verify().ok
        told.write_text(orc.get(kept).content)


def test_a_file_at_the_limit_of_its_size_is_a_full_disk(tmp_path: Path) -> None:
    told = tmp_path / "told"
    assert Process(write_to_the_limit, tmp_path / "root", told).wait() == 0
    assert told.read_text() == "Stored while there was room."
