"""Who is let in, for how long, and what a stranger's page can do with it."""

from __future__ import annotations

from pathlib import Path

from console_browsing import HOME, Browser, Seen, console_served
from serving_worlds import Served

from memgraph.clock import FixedClock

VIEW = f"{HOME}view"
LOGIN = "/console/login"


def test_a_key_lets_in_and_its_secret_is_nowhere_afterwards(served: Served) -> None:
    secret = served.key()
    with Browser(served) as browser:
        asked = browser.open("/console/orc-1/?x=1")
        assert (asked.status_code, asked.headers["location"]) == (
            303,
            "/console/login?next=%2Fconsole%2Forc-1%2F%3Fx%3D1",
        )
        # A link from another site is followed without the cookie, and must not replace it.
        assert "set-cookie" not in browser.open(asked.headers["location"]).headers
        answer = browser.sign_in(secret, next="/console/orc-1/?x=1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/orc-1/?x=1")
        cookie = answer.headers["set-cookie"]
        for attribute in ("HttpOnly", "SameSite=strict", "Path=/console"):
            assert attribute in cookie
        assert "Secure" not in cookie
        page = browser.page()
        assert "<h1>orc-1</h1>" in page
        assert secret not in page
        assert secret not in str(browser.client.cookies)


def test_a_wrong_key_lets_nobody_in_and_keeps_where_the_right_one_leads(served: Served) -> None:
    with Browser(served) as browser:
        answer = browser.sign_in("mgk_nobody", next="/console/orc-1/diff")
        assert answer.status_code == 401
        assert "Invalid key" in answer.text
        assert "/console/orc-1/diff" in Seen(answer.text).values("value")
        assert browser.open(HOME).status_code == 303


def test_the_id_of_a_session_is_new_at_each_sign_in_and_ends_by_signing_out(served: Served) -> None:
    with Browser(served, served.key()) as other, Browser(served) as browser:
        # With the cookie of a session that somebody planted.
        browser.client.cookies.update(other.client.cookies)
        browser.sign_in(served.key())
        assert dict(browser.client.cookies) != dict(other.client.cookies)
        assert browser.page()
        assert other.open(HOME).status_code == 303
        cookies = dict(browser.client.cookies)
        assert browser.send("/console/logout").headers["location"] == LOGIN
        assert not browser.client.cookies
        browser.client.cookies.update(cookies)
        assert browser.open(HOME).status_code == 303


def test_a_session_ends_after_idle_time_and_not_before(served: Served, clock: FixedClock) -> None:
    with Browser(served, served.key()) as browser:
        for _ in range(3):
            clock.advance(ms=30 * 60_000)
            browser.page()
        clock.advance(ms=30 * 60_000 + 1)
        assert browser.open(HOME).status_code == 303


def test_only_so_many_tries_to_sign_in_are_let_in_within_any_minute(
    served: Served, clock: FixedClock
) -> None:
    secret = served.key()
    with Browser(served) as browser:
        clock.advance(ms=59_000 - clock.now_ms() % 60_000)
        assert {browser.sign_in("mgk_x").status_code for _ in range(9)} == {401}
        # The minute of the clock ends, and this one is still the tenth.
        clock.advance(ms=20_000)
        assert browser.sign_in("mgk_x").status_code == 401
        for _ in range(2):
            refused = browser.sign_in(secret)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "40")
        clock.advance(ms=40_000)
        assert browser.sign_in(secret).status_code == 303


def test_only_a_page_of_the_console_sends_a_form(served: Served) -> None:
    elsewhere = ("", "https://evil.example", "null", "http://127.0.0.1:1", "http://localhost")
    with Browser(served, served.key()) as browser:
        for origin in elsewhere:
            for address in (VIEW, LOGIN, "/console/logout"):
                sent = browser.send(address, origin=origin, agent="someone", key=served.key())
                assert sent.status_code == 403, (origin, address)
        # As no browser sends one.
        for address in (VIEW, LOGIN, "/console/logout"):
            assert browser.client.post(address, data={"agent": "someone"}).status_code == 403
        assert 'value="someone"' not in browser.page()


def test_a_page_of_ours_may_not_ask_the_api_by_its_origin(served: Served) -> None:
    with served.client(served.key(), headers={"origin": served.url}) as client:
        assert client.get("/v1/orchestrators").status_code == 403
        assert client.get("/consoles/").status_code == 403


def test_signing_in_leads_to_a_page_of_the_console_and_nowhere_else(
    served: Served, clock: FixedClock
) -> None:
    elsewhere = (
        *("https://evil.example/", "//evil.example/console/", "/console//evil.example"),
        *("/console/\\evil.example", "/v1/orchestrators", "/console/logout"),
        *("javascript:alert(1)", "/console/\r\nset-cookie: x=y", "/console/../v1/orchestrators"),
        *("/console/orc-1/%2E%2e/../v1", "/console/login?next=/console/"),
    )
    # An orchestrator may be named like a page for signing in.
    own = ("/console/logistics/diff?since=2026-01-01", "/console/login/")
    secret = served.key()
    for target in (*elsewhere, *own):
        clock.advance(ms=60_000)
        with Browser(served) as browser:
            leads = browser.sign_in(secret, next=target).headers["location"]
        assert leads == (target if target in own else "/console/")


def test_a_page_of_another_scheme_is_not_the_servers_own(served: Served) -> None:
    """A page that this host serves with TLS is none of a server that speaks plain HTTP."""
    for own, other, headers in (
        ("http", "https", {}),
        ("https", "http", {"x-forwarded-proto": "https"}),
    ):
        with served.client(headers=headers) as client:
            host = client.base_url.netloc.decode()
            form = {"key": served.key()}
            refused = client.post(LOGIN, data=form, headers={"origin": f"{other}://{host}"})
            assert refused.status_code == 403
            let_in = client.post(LOGIN, data=form, headers={"origin": f"{own}://{host}"})
            assert let_in.status_code == 303
            # Behind a proxy that encrypts, the cookie is for encrypted connections alone.
            assert ("Secure" in let_in.headers["set-cookie"]) is (own == "https")


def test_where_no_key_is_asked_for_nobody_signs_in_and_forms_are_the_consoles_own(
    tmp_path: Path,
) -> None:
    off = {"memory": {"server": {"console": {"enabled": False}}}}
    with console_served(tmp_path / "off", config=off) as served, served.client() as client:
        assert client.get(LOGIN).status_code == 404
    with console_served(tmp_path / "open", keyless=True) as served, Browser(served) as browser:
        assert browser.open(LOGIN).status_code == 303
        assert browser.send(VIEW).status_code == 303
        assert "Sign out" not in browser.page()
        assert browser.client.post(VIEW, data={"agent": "one"}).status_code == 403
        assert browser.send(VIEW, agent="one").status_code == 303
        assert 'value="one"' in browser.page()
