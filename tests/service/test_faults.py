"""Rows of ``python -m benchmarks.faults``, each for a moment; the others have tests of their own.

What the OpenAPI document allows is asked in ``tests/surfaces/http/test_openapi.py``.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from programs import Program

from benchmarks import attacks, faults
from benchmarks.faults import Row
from ingest import pipeline
from ingest.reasons import RejectionReason, refuse
from ingest.safe_files import FileContent


@pytest.fixture(autouse=True)
def _forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the processes of the rows from one that has loaded memgraph."""

    def start(command: list[str], **given: Any) -> Program:
        return Program(command[1:], **given)

    monkeypatch.setattr(faults, "subprocess", SimpleNamespace(Popen=start, PIPE=subprocess.PIPE))


@pytest.mark.parametrize(
    "run",
    [
        faults.copied_and_restored,
        faults.paths_swapped,
        attacks.logs_torn,
    ],
)
def test_nothing_is_lost_doubled_or_changed(
    tmp_path: Path, run: Callable[[Path, float], Row | None]
) -> None:
    row = run(tmp_path, 0.2)
    assert row is not None
    assert row.times > 0
    assert row.wrong == 0


def test_what_is_lost_counts_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = faults._records
    monkeypatch.setattr(faults, "WRITERS", 2)
    monkeypatch.setattr(faults, "_records", lambda root, kind: list(whole(root, kind))[1:])
    assert faults.load_killed(tmp_path, 0.0).wrong == 1


def test_what_is_led_outside_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that follows links finds what the folder outside holds."""

    def follow(name: str, folder: int, **_limits: int) -> FileContent:
        try:
            data = Path(f"/proc/self/fd/{folder}", name).read_bytes()
        except OSError as error:
            raise refuse(RejectionReason.LINK, "it leads nowhere") from error
        return FileContent(data, hashlib.sha256(data).hexdigest())

    monkeypatch.setattr(pipeline, "read_safely", follow)
    assert faults.paths_swapped(tmp_path, 1.0).wrong > 0
