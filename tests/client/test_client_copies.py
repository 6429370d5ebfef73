"""Copies that come from a server: whole, durable, or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest
from strangers import SECRET, talking

from memgraph.client import Client
from memgraph.client.files import whole
from memgraph.errors import Conflict, RemoteAnswerInvalid, RemoteUnavailable


def test_a_page_without_end_is_not_kept(tmp_path: Path) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>and so on"
    with talking(page, hold=True) as url, pytest.raises(RemoteAnswerInvalid):
        copied(url, "export", tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


def test_a_copy_that_is_none_leaves_nothing_behind(tmp_path: Path) -> None:
    export = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
    database = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.sqlite3\r\n"
    lines = b'{"record":"header"}\n{"record":"memory"}\n'
    for answer, word, kind in (
        (export + b"Content-Length: 900\r\n\r\n" + lines, "export", RemoteUnavailable),
        (export + b"Content-Length: 40\r\n\r\n" + lines, "export", RemoteAnswerInvalid),
        (export + b"Content-Length: 6\r\n\r\nabc\n[]", "export", RemoteAnswerInvalid),
        (export + b"Content-Length: 0\r\n\r\n", "export", RemoteAnswerInvalid),
        (database + b"Content-Length: 4\r\n\r\nSQLi", "backup", RemoteAnswerInvalid),
        (export + b"Content-Length: 4\r\n\r\nSQLi", "backup", RemoteAnswerInvalid),
    ):
        with talking(answer) as url, pytest.raises(kind):
            copied(url, word, tmp_path / "copy")
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        copied("http://127.0.0.1:9", "export", tmp_path / "no" / "copy")


EXPORT = (
    b'{"record":"header"}\n{"record":"end","sha256":"%s"}\n' % hashlib.sha256().hexdigest().encode()
)
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s"


def test_a_copy_is_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    with talking(WHOLE % (len(EXPORT), EXPORT)) as url:
        copied(url, "export", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == EXPORT
    assert len(flushed) == 1


def test_a_copy_comes_to_a_disk_without_links_and_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_self: Path, _target: Path) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(Path, "hardlink_to", none)
    with talking(WHOLE % (len(EXPORT), EXPORT)) as url:
        copied(url, "export", tmp_path / "copy")
        with pytest.raises(Conflict), whole(tmp_path / "other", force=False):
            (tmp_path / "other").write_bytes(b"somebody's")
    assert (tmp_path / "copy").read_bytes() == EXPORT
    assert (tmp_path / "other").read_bytes() == b"somebody's"
    assert len(list(tmp_path.iterdir())) == 2


def copied(url: str, word: str, target: Path) -> None:
    with Client(url, key=SECRET, retries=0) as client:
        getattr(client.orchestrator("orc-1").exchange, word)(target)
