"""The sessions of a root by themselves: files that every process of the root knows."""

from __future__ import annotations

import resource
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from memgraph.errors import DatabaseFull
from memgraph.surfaces.web import sessions as module
from memgraph.surfaces.web.sessions import ConsoleSessions


def test_the_session_that_was_unused_longest_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SESSIONS", 20)
    sessions = ConsoleSessions(tmp_path, idle_ms=10_000)
    ids = [sessions.open("k", number)[0] for number in range(20)]
    assert sessions.find(ids[0], 2_000) is not None
    sessions.open("k", 2_001)
    assert sessions.find(ids[0], 2_002) is not None
    assert sessions.find(ids[1], 2_002) is None
    assert len(set(ids)) == 20


def test_sessions_are_readable_by_their_owner_alone_and_a_torn_one_is_none(tmp_path: Path) -> None:
    sessions = ConsoleSessions(tmp_path / "console")
    session_id, session = sessions.open("k", 0)
    sessions.change(session_id, lambda one: replace(one, notice="Done."))
    [file] = (tmp_path / "console").glob("*.json")
    assert session_id not in file.name
    assert [oct(path.stat().st_mode & 0o777) for path in (file.parent, file)] == ["0o700", "0o600"]
    assert sessions.find(session_id, 0) == replace(session, notice="Done.")
    assert [sessions.find(wrong, 0) for wrong in (None, "", "x", "\udc80")] == [None] * 4
    file.write_bytes(b"{")
    assert sessions.find(session_id, 0) is None


def test_a_session_that_was_ended_is_not_brought_back_by_a_page(tmp_path: Path) -> None:
    one, other = ConsoleSessions(tmp_path), ConsoleSessions(tmp_path)
    session_id, _ = one.open("k", 0)
    other.end(session_id)
    assert one.change(session_id, lambda session: replace(session, notice="Done.")) is None
    assert one.find(session_id, 0) is None


def test_a_session_that_could_not_be_written_stays_as_it_was(tmp_path: Path) -> None:
    sessions = ConsoleSessions(tmp_path)
    session_id, session = sessions.open("k", 0)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(DatabaseFull):
            sessions.change(session_id, lambda one: replace(one, notice="x" * 200))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sessions.find(session_id, 0) == session
    changed = sessions.change(session_id, lambda one: replace(one, notice="Done."))
    assert sessions.find(session_id, 0) == changed != session


def test_no_change_is_lost_where_several_processes_change_a_session(tmp_path: Path) -> None:
    session_id, _ = ConsoleSessions(tmp_path).open("k", 0)

    def change(letter: str) -> None:
        sessions = ConsoleSessions(tmp_path)
        for _ in range(50):
            sessions.change(session_id, lambda one: replace(one, notice=one.notice + letter))
            assert sessions.find(session_id, 0) is not None

    with ThreadPoolExecutor() as pool:
        list(pool.map(change, "abcd"))
    session = ConsoleSessions(tmp_path).find(session_id, 0)
    assert session is not None
    assert Counter(session.notice) == dict.fromkeys("abcd", 50)
