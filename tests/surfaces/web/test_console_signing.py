"""Who is let in, for how long, and what a stranger's page can do with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from console_browsing import HOME, Browser, Seen, console_served, token_of
from serving_worlds import EVERYTHING, Served

from memgraph.clock import FixedClock


def test_a_key_lets_in_and_its_secret_is_nowhere_afterwards(served: Served) -> None:
    secret = served.key()
    with Browser(served) as browser:
        asked = browser.open("/console/orc-1/?x=1")
        assert (asked.status_code, asked.headers["location"]) == (
            303,
            "/console/login?next=%2Fconsole%2Forc-1%2F%3Fx%3D1",
        )
        answer = browser.sign_in(secret, next="/console/orc-1/?x=1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/orc-1/?x=1")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "Path=/console" in cookie
        assert "Secure" not in cookie
        page = browser.page()
        assert "<h1>orc-1</h1>" in page
        assert secret not in page
        assert secret not in str(browser.client.cookies)


def test_a_wrong_key_lets_nobody_in(served: Served) -> None:
    with Browser(served) as browser:
        answer = browser.sign_in("mgk_nobody")
        assert answer.status_code == 401
        assert "Invalid key" in answer.text
        assert browser.open(HOME).status_code == 303


def test_the_id_of_a_session_is_new_at_each_sign_in(served: Served) -> None:
    with Browser(served, served.key()) as other, Browser(served) as browser:
        token = token_of(browser.open("/console/login").text)
        # With the cookie of a session that somebody planted.
        browser.client.cookies.update(other.client.cookies)
        browser.post("/console/login", token=token, key=served.key())
        assert dict(browser.client.cookies) != dict(other.client.cookies)
        assert browser.page()
        assert other.open(HOME).status_code == 303


def test_a_link_from_elsewhere_leaves_the_session_as_it_is(served: Served) -> None:
    with Browser(served, served.key()) as browser, served.client() as linked:
        held = dict(browser.client.cookies)
        # The browser follows it without the cookie, and heeds the cookies of the answers.
        answer = linked.get(linked.get(HOME).headers["location"])
        assert answer.status_code == 200
        browser.client.cookies.update(linked.cookies)
        assert held.items() <= dict(browser.client.cookies).items()
        assert browser.page()


def test_the_cookie_of_the_form_is_for_the_form_alone(served: Served) -> None:
    with Browser(served) as browser:
        cookie = browser.open("/console/login").headers["set-cookie"]
        assert "Path=/console/login" in cookie
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        browser.sign_in(served.key())
        assert len(dict(browser.client.cookies)) == 1


def test_after_a_wrong_key_the_right_one_leads_where_the_first_would_have(served: Served) -> None:
    with Browser(served) as browser:
        page = browser.sign_in("mgk_x", next="/console/orc-1/diff").text
        assert "/console/orc-1/diff" in Seen(page).values("value")


def test_a_session_ends_with_its_key(served: Served) -> None:
    made = served.keys.create({"name": "x", **EVERYTHING})
    with Browser(served, made.secret) as browser:
        browser.page()
        served.keys.revoke(made.key.key_id)
        assert browser.open(HOME).status_code == 303


def test_a_session_ends_after_idle_time_and_not_before(served: Served, clock: FixedClock) -> None:
    with Browser(served, served.key()) as browser:
        for _ in range(3):
            clock.advance(ms=30 * 60_000)
            browser.page()
        clock.advance(ms=30 * 60_000 + 1)
        assert browser.open(HOME).status_code == 303


def test_signing_out_ends_the_session_itself(served: Served) -> None:
    with Browser(served, served.key()) as browser:
        cookies = dict(browser.client.cookies)
        assert browser.send("/console/logout").headers["location"] == "/console/login"
        assert not browser.client.cookies
        browser.client.cookies.update(cookies)
        assert browser.open(HOME).status_code == 303


def test_tries_to_sign_in_are_counted_and_let_in_again_after_a_minute(
    served: Served, clock: FixedClock
) -> None:
    secret = served.key()
    with Browser(served) as browser:
        statuses = [browser.sign_in("mgk_x").status_code for _ in range(10)]
        assert set(statuses) == {401}
        refused = browser.sign_in(secret)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) == 60
        clock.advance(ms=60_000)
        assert browser.sign_in(secret).status_code == 303


@pytest.mark.parametrize("token", ["", "0" * 64, "é"])
def test_a_form_without_its_token_changes_nothing(served: Served, token: str) -> None:
    with Browser(served, served.key()) as browser:
        answer = browser.post("/console/orc-1/view", token=token, agent="someone")
        assert answer.status_code == 403
        assert 'value="someone"' not in browser.page()
        assert browser.post("/console/logout", token=token).status_code == 403
        assert browser.page()


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"]
)
def test_a_page_from_elsewhere_cannot_send_a_form(served: Served, origin: str) -> None:
    with Browser(served, served.key()) as browser:
        token = token_of(browser.page())
        assert browser.post("/console/orc-1/view", token=token, origin=origin).status_code == 403


def test_a_form_that_the_browser_says_is_from_elsewhere_is_refused(served: Served) -> None:
    with Browser(served, served.key()) as browser:
        token = token_of(browser.page())
        browser.client.headers["sec-fetch-site"] = "same-site"
        assert browser.post("/console/orc-1/view", token=token).status_code == 403


def test_a_page_of_ours_may_not_ask_the_api_by_its_origin(served: Served) -> None:
    with served.client(served.key(), headers={"origin": served.url}) as client:
        assert client.get("/v1/orchestrators").status_code == 403
        assert client.get("/consoles/").status_code == 403


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/console/",
        "/console//evil.example",
        "/console/\\evil.example",
        "/v1/orchestrators",
        "/console/logout",
        "javascript:alert(1)",
        "/console/\r\nset-cookie: x=y",
        "/console/../v1/orchestrators",
        "/console/orc-1/%2E%2e/../v1",
        "/console/login?next=/console/",
    ],
)
def test_signing_in_leads_nowhere_else(served: Served, target: str) -> None:
    with Browser(served) as browser:
        answer = browser.sign_in(served.key(), next=target)
        assert answer.headers["location"] == "/console/"


@pytest.mark.parametrize("target", ["/console/logistics/diff?since=2026-01-01", "/console/login/"])
def test_an_orchestrator_may_be_named_like_a_page_for_signing_in(
    served: Served, target: str
) -> None:
    with Browser(served) as browser:
        assert browser.sign_in(served.key(), next=target).headers["location"] == target


def test_behind_a_proxy_that_encrypts_the_cookie_is_for_encrypted_connections(
    served: Served,
) -> None:
    with served.client(headers={"x-forwarded-proto": "https"}) as client:
        assert "Secure" in client.get("/console/login").headers["set-cookie"]


def test_a_page_of_another_scheme_is_not_the_servers_own(served: Served) -> None:
    """A page that this host serves with TLS is none of a server that speaks plain HTTP."""
    for own, other, headers in (
        ("http", "https", {}),
        ("https", "http", {"x-forwarded-proto": "https"}),
    ):
        with served.client(headers=headers) as client:
            host = client.base_url.netloc.decode()
            for scheme, status in ((own, 200), (other, 403)):
                sent = client.get("/console/login", headers={"origin": f"{scheme}://{host}"})
                assert sent.status_code == status


def test_where_no_key_is_asked_for_nobody_signs_in_and_forms_have_tokens_all_the_same(
    tmp_path: Path,
) -> None:
    with console_served(tmp_path / "open", keyless=True) as served, Browser(served) as browser:
        assert browser.open("/console/login").status_code == 303
        assert browser.post("/console/orc-1/view", token="0" * 64).status_code == 303
        page = browser.page()
        assert "Sign out" not in page
        assert browser.post("/console/orc-1/view", token="0" * 64).status_code == 403
        assert browser.send("/console/orc-1/view", agent="one").status_code == 303
        assert 'value="one"' in browser.page()


def test_a_server_can_go_without_a_console(tmp_path: Path) -> None:
    config = {"memory": {"server": {"console": {"enabled": False}}}}
    with console_served(tmp_path / "root", config=config) as served, served.client() as client:
        assert client.get("/console/login").status_code == 404
