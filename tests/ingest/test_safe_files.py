from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.reasons import RejectionReason
from ingest.safe_files import (
    FileContent,
    FileVanished,
    StillBeingWritten,
    open_directory,
    read_safely,
)
from memgraph.errors import IngestRejected

LIMIT = 1000


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    with open_directory(os.fspath(tmp_path)) as descriptor:
        yield descriptor


def read(name: str, folder: int) -> FileContent:
    return read_safely(name, folder, max_bytes=LIMIT)


def refused(name: str, folder: int) -> str:
    with pytest.raises(IngestRejected) as caught:
        read(name, folder)
    return str(caught.value.details["reason"])


def test_a_second_name_is_refused(tmp_path: Path, folder: int) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    os.link(tmp_path / "secret", tmp_path / "a.txt")
    assert refused("a.txt", folder) == RejectionReason.HARD_LINK


def test_pipes_sockets_and_folders_are_refused_at_once(tmp_path: Path, folder: int) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "folder.txt").mkdir()
    assert refused("pipe.txt", folder) == RejectionReason.NOT_REGULAR_FILE
    assert refused("folder.txt", folder) == RejectionReason.NOT_REGULAR_FILE
    with socket.socket(socket.AF_UNIX) as listening:
        # A socket's name must be short, whatever the test's folder is called.
        listening.bind(f"/proc/self/fd/{folder}/s.txt" if sys.platform == "linux" else "s.txt")
        assert refused("s.txt", folder) == RejectionReason.NOT_REGULAR_FILE


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_file_open_for_writing_is_left_alone(tmp_path: Path, folder: int) -> None:
    with (tmp_path / "a.txt").open("wb") as file:
        file.write(b"half")
        file.flush()
        with pytest.raises(StillBeingWritten):
            read("a.txt", folder)
    assert read("a.txt", folder).data == b"half"


def test_without_leases_a_file_must_have_settled(
    tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.safe_files.sys.platform", "other")
    monkeypatch.setattr("ingest.safe_files.SETTLE_SECONDS", 3600)
    path = tmp_path / "a.txt"
    path.write_bytes(b"words")
    with pytest.raises(StillBeingWritten):
        read("a.txt", folder)
    os.utime(path, (1, 1))
    assert read("a.txt", folder).data == b"words"


def test_a_file_that_changes_under_the_reader(
    tmp_path: Path, folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.safe_files.sys.platform", "other")
    path = tmp_path / "a.txt"
    path.write_bytes(b"words")
    os.utime(path, (1, 1))
    real = os.read

    def grow(descriptor: int, size: int) -> bytes:
        with path.open("ab") as file:
            file.write(b"!")
        return real(descriptor, size)

    monkeypatch.setattr("ingest.safe_files.os.read", grow)
    with pytest.raises(StillBeingWritten):
        read("a.txt", folder)


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_writer_that_comes_during_the_read_ends_nobody(tmp_path: Path) -> None:
    """Breaking a lease signals its holder; with the default signal that would kill it."""
    (tmp_path / "a.txt").write_bytes(b"words")
    program = (
        "import os, subprocess, sys, ingest.safe_files as s\n"
        "real = s._read_capped\n"
        "def read(fd, size):\n"
        "    p = subprocess.Popen([sys.executable, '-c', 'open(\"a.txt\", \"ab\").close()'])\n"
        "    try: p.wait(1)\n"
        "    except subprocess.TimeoutExpired: pass\n"
        "    return real(fd, size)\n"
        "s._read_capped = read\n"
        "with s.open_directory('.') as fd:\n"
        "    print(s.read_safely('a.txt', fd, max_bytes=100).data)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != -signal.SIGIO, done.stderr
    assert (done.returncode, done.stdout.strip()) == (0, "b'words'"), done.stderr


def test_swapping_a_file_for_a_link_leaks_nothing(tmp_path: Path, folder: int) -> None:
    secret, good = tmp_path / "secret", tmp_path / "a.txt"
    secret.write_bytes(b"secret")
    good.write_bytes(b"words")
    stop = threading.Event()

    def swap() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            fresh = tmp_path / f".{number % 2}"
            fresh.unlink(missing_ok=True)
            if number % 2:
                fresh.symlink_to(secret)
            else:
                fresh.write_bytes(b"words")
            fresh.rename(good)

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: set[bytes] = set()
    refusals: set[str] = set()
    try:
        for _ in range(2000):
            try:
                seen.add(read("a.txt", folder).data)
            except IngestRejected as error:
                refusals.add(str(error.details["reason"]))
            except (StillBeingWritten, FileVanished):
                continue
    finally:
        stop.set()
        swapper.join()
    assert seen <= {b"words"}
    assert refusals <= {RejectionReason.LINK.value}
    assert seen | refusals


def test_the_lease_is_given_back(tmp_path: Path, folder: int) -> None:
    (tmp_path / "a.txt").write_bytes(b"words")
    read("a.txt", folder)
    descriptor = os.open(tmp_path / "a.txt", os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert os.write(descriptor, b"more") == 4
    finally:
        os.close(descriptor)
