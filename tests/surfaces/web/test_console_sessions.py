"""ConsoleSessions, tries to sign in and tokens, by themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memgraph.surfaces.web.sessions import (
    MOST_SESSIONS,
    ConsoleSessions,
    csrf_token,
    token_fits,
)


def test_the_session_that_was_unused_longest_makes_room(tmp_path: Path) -> None:
    sessions = ConsoleSessions(tmp_path, idle_ms=10_000)
    ids = [sessions.open("k", number)[0] for number in range(MOST_SESSIONS)]
    assert sessions.find(ids[0], 2_000) is not None
    sessions.open("k", 2_001)
    assert sessions.find(ids[0], 2_002) is not None
    assert sessions.find(ids[1], 2_002) is None
    assert len(set(ids)) == MOST_SESSIONS


@pytest.mark.parametrize("session_id", [None, "", "x", "\udc80"])
def test_what_is_no_id_finds_nothing(session_id: str | None, tmp_path: Path) -> None:
    sessions = ConsoleSessions(tmp_path, idle_ms=1_000)
    sessions.open("k", 0)
    assert sessions.find(session_id, 0) is None
    sessions.end(session_id)


@pytest.mark.parametrize(
    ("cookie", "site", "fits"),
    [
        ("a", None, True),
        ("a", "same-origin", True),
        ("a", "none", True),
        ("b", None, False),
        ("", None, False),
        ("a", "cross-site", False),
        ("a", "same-site", False),
    ],
)
def test_a_token_fits_its_cookie_and_its_own_pages(
    cookie: str, site: str | None, fits: bool
) -> None:
    assert token_fits(cookie, csrf_token("a"), site=site) is fits


def test_sessions_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    sessions = ConsoleSessions(tmp_path / "console")
    session_id, session = sessions.open("k", 0)
    sessions.change(session_id, lambda one: replace(one, notice="Done."))
    [file] = (tmp_path / "console").glob("*.json")
    assert session_id not in file.name
    assert [oct(path.stat().st_mode & 0o777) for path in (file.parent, file)] == ["0o700", "0o600"]
    assert sessions.find(session_id, 0) == replace(session, notice="Done.")


def test_a_session_that_was_ended_is_not_brought_back_by_a_page(tmp_path: Path) -> None:
    one, other = ConsoleSessions(tmp_path), ConsoleSessions(tmp_path)
    session_id, _ = one.open("k", 0)
    other.end(session_id)
    assert one.change(session_id, lambda session: replace(session, notice="Done.")) is None
    assert one.find(session_id, 0) is None


@pytest.mark.parametrize("content", [b"", b"{", b'{"other": 1}'])
def test_a_torn_file_is_no_session(content: bytes, tmp_path: Path) -> None:
    sessions = ConsoleSessions(tmp_path)
    session_id, _ = sessions.open("k", 0)
    [file] = tmp_path.glob("*.json")
    file.write_bytes(content)
    assert sessions.find(session_id, 0) is None
