"""Copies that come from a server: whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from strangers import SECRET, talking

from memgraph.client import Client
from memgraph.errors import RemoteAnswerInvalid, RemoteUnavailable


def test_a_page_without_end_is_not_kept(tmp_path: Path) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>and so on"
    with talking(page, hold=True) as url, pytest.raises(RemoteAnswerInvalid):
        copied(url, "export", tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


def test_half_a_copy_or_something_else_leaves_nothing_behind(tmp_path: Path) -> None:
    export = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
    for answer, word, kind in (
        (export + b"Content-Length: 900\r\n\r\n{}\n", "export", RemoteUnavailable),
        (export + b"Content-Length: 4\r\n\r\nSQLi", "backup", RemoteAnswerInvalid),
    ):
        with talking(answer) as url, pytest.raises(kind):
            copied(url, word, tmp_path / "copy")
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        copied("http://127.0.0.1:9", "export", tmp_path / "no" / "copy")


def copied(url: str, word: str, target: Path) -> None:
    with Client(url, key=SECRET, retries=0) as client:
        getattr(client.orchestrator("orc-1").exchange, word)(target)
