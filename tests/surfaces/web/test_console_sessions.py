"""ConsoleSessions, tries to sign in and tokens, by themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memgraph.surfaces.web.sessions import (
    MOST_SESSIONS,
    ConsoleSessions,
    CsrfTokens,
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
    cookie: str, site: str | None, fits: bool, tmp_path: Path
) -> None:
    tokens = CsrfTokens(tmp_path / "key")
    assert tokens.fits(cookie, tokens.of("a"), site=site) is fits
    assert CsrfTokens(tmp_path / "key").fits(cookie, tokens.of("a"), site=site) is fits
    assert not CsrfTokens(tmp_path / "other").fits(cookie, tokens.of("a"), site=site)


def test_sessions_and_keys_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    sessions, _ = ConsoleSessions(tmp_path / "console"), CsrfTokens(tmp_path / "key")
    session_id, session = sessions.open("k", 0)
    sessions.change(session_id, lambda one: replace(one, notice="Done."))
    [file] = (tmp_path / "console").glob("*.json")
    assert session_id not in file.name
    modes = [oct(path.stat().st_mode & 0o777) for path in (file.parent, file, tmp_path / "key")]
    assert modes == ["0o700", "0o600", "0o600"]
    assert sessions.find(session_id, 0) == replace(session, notice="Done.")


def test_a_session_that_was_ended_is_not_brought_back_by_a_page(tmp_path: Path) -> None:
    one, other = ConsoleSessions(tmp_path), ConsoleSessions(tmp_path)
    session_id, _ = one.open("k", 0)
    other.end(session_id)
    assert one.change(session_id, lambda session: replace(session, notice="Done.")) is None
    assert one.find(session_id, 0) is None


@pytest.mark.parametrize("content", [b"", b"{", b'{"other": 1}'])
def test_a_torn_file_is_no_session_and_no_key(content: bytes, tmp_path: Path) -> None:
    sessions = ConsoleSessions(tmp_path)
    session_id, _ = sessions.open("k", 0)
    [file] = tmp_path.glob("*.json")
    file.write_bytes(content)
    assert sessions.find(session_id, 0) is None
    (tmp_path / "key").write_bytes(content)
    assert CsrfTokens(tmp_path / "key").of("a") == CsrfTokens(tmp_path / "key").of("a")
    assert len((tmp_path / "key").read_bytes()) == 32
