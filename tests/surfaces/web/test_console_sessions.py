"""ConsoleSessions, tries to sign in and tokens, by themselves."""

from __future__ import annotations

import pytest

from memgraph.surfaces.web.sessions import (
    MOST_ADDRESSES,
    MOST_SESSIONS,
    SIGN_INS_PER_MINUTE,
    ConsoleSessions,
    CsrfTokens,
    SignIns,
)


def test_the_session_that_was_unused_longest_makes_room() -> None:
    sessions = ConsoleSessions(idle_ms=1_000)
    ids = [sessions.open("k", 0)[0] for _ in range(MOST_SESSIONS)]
    assert sessions.find(ids[0], 1) is not None
    sessions.open("k", 2)
    assert sessions.find(ids[0], 3) is not None
    assert sessions.find(ids[1], 3) is None
    assert len(set(ids)) == MOST_SESSIONS


@pytest.mark.parametrize("session_id", [None, "", "x", "\udc80"])
def test_what_is_no_id_finds_nothing(session_id: str | None) -> None:
    sessions = ConsoleSessions(idle_ms=1_000)
    sessions.open("k", 0)
    assert sessions.find(session_id, 0) is None
    sessions.end(session_id)


def test_tries_are_each_addresses_own_and_come_back_one_by_one() -> None:
    tries = SignIns()
    for second in range(SIGN_INS_PER_MINUTE):
        assert tries.take("one", second * 1_000) == 0.0
    assert tries.take("one", 20_000) == 40.0
    assert tries.take("other", 20_000) == 0.0
    assert tries.take("one", 60_000) == 0.0
    assert tries.take("one", 60_000) == 1.0


def test_many_addresses_are_forgotten_again() -> None:
    tries = SignIns()
    for _ in range(SIGN_INS_PER_MINUTE):
        assert tries.take("0", 0) == 0.0
    assert tries.take("0", 0) > 0
    for number in range(MOST_ADDRESSES):
        assert tries.take(str(number + 1), 0) == 0.0
    assert tries.take("0", 0) == 0.0


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
    tokens = CsrfTokens()
    assert tokens.fits(cookie, tokens.of("a"), site=site) is fits
    assert not CsrfTokens().fits(cookie, tokens.of("a"), site=site)
