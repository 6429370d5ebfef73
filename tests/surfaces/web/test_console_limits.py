"""The bounds of a server as a person with a browser meets them: told on pages, by session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from console_browsing import HOME, Browser, console_served, harmless
from serving_worlds import Served

from memgraph.clock import FixedClock
from memgraph.surfaces.web.sessions import SIGN_INS_PER_MINUTE

VIEW = "/console/orc-1/view"
LARGE = "x" * 100_000
"""More than is read of somebody whose key is not known."""


@contextmanager
def limited(root: Path, **settings: Any) -> Iterator[Served]:
    config = {"memory": {"server": settings}}
    with console_served(root, clock=FixedClock(), config=config) as served:
        yield served


def told(answer: httpx.Response) -> str:
    """What a page says went wrong; the answer is a page of the console, like all others."""
    assert answer.headers["content-type"].startswith("text/html")
    assert "form-action 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    harmless(answer.text)
    return answer.text


def test_a_large_form_is_read_of_a_session_and_of_nobody_else(served: Served) -> None:
    made = served.keys.create({"name": "x", "orchestrators": ("orc-1",), "permissions": {"read"}})
    with Browser(served, made.secret) as browser:
        answer = browser.send(VIEW, agent=LARGE)
        assert answer.status_code == 422
        assert "agent_id" in told(answer)
        served.keys.revoke(made.key.key_id)
        # The bounds look at no file; the session ends with the request that does.
        assert browser.open(HOME).status_code == 303
        answer = browser.send(VIEW, agent=LARGE)
        assert (answer.status_code, answer.headers["connection"]) == (303, "close")
        assert answer.headers["location"] == "/console/login?next=%2Fconsole%2F"


def test_a_form_that_is_too_large_for_everybody_says_so_on_a_page(tmp_path: Path) -> None:
    with limited(tmp_path / "root", max_body_bytes=2_000) as served:
        with Browser(served, served.key()) as browser:
            answer = browser.send(VIEW, agent="x" * 3_000)
        assert answer.status_code == 413
        assert "a request may have at most 2,000 bytes" in told(answer)


def test_files_have_the_limit_of_ingest_and_only_a_session_sends_them(tmp_path: Path) -> None:
    config = {"memory": {"server": {"max_body_bytes": 2_000}, "ingest": {"max_file_size_mb": 1}}}

    def sent(who: Browser, size: int) -> httpx.Response:
        file = ("notes.md", b"A note." + b"\n" * size, "text/markdown")
        return who.send(f"{HOME}activity/files", files=[("files", file)])

    with console_served(tmp_path / "root", config=config) as served:
        with Browser(served, served.key()) as browser:
            assert "together below 1,000,000 bytes" in browser.page(f"{HOME}activity")
            assert sent(browser, 900_000).status_code == 303
            refused = sent(browser, 1_100_000)
            assert refused.status_code == 413
            assert "a request may have at most 1,000,000 bytes" in told(refused)
        with Browser(served) as nobody:
            answer = sent(nobody, 900_000)
            assert (answer.status_code, answer.headers["connection"]) == (413, "close")


def test_files_that_do_not_come_are_not_waited_for(tmp_path: Path) -> None:
    with limited(tmp_path / "root", request_timeout_s=0.5) as served:
        with Browser(served, served.key()) as browser:
            cookies = "; ".join(f"{name}={sent}" for name, sent in browser.client.cookies.items())
        place = served.url.removeprefix("http://")
        head = [
            f"POST {HOME}activity/files HTTP/1.1",
            *(f"Host: {place}", f"Origin: {served.url}", f"Cookie: {cookies}"),
            *("Content-Type: multipart/form-data; boundary=b", "Content-Length: 900", "", ""),
        ]
        with served.connect() as connection:
            connection.sendall("\r\n".join(head).encode() + b"--b\r\n")
            assert connection.recv(12) == b"HTTP/1.1 504"


@contextmanager
def from_behind(served: Served, chain: str) -> Iterator[Browser]:
    """A browser of somebody who comes through a proxy."""
    with Browser(served) as browser:
        browser.client.headers["x-forwarded-for"] = chain
        yield browser


def spend(browser: Browser) -> None:
    """Use up all tries of an address."""
    statuses = [browser.sign_in("mgk_x").status_code for _ in range(SIGN_INS_PER_MINUTE + 1)]
    assert statuses == [401] * SIGN_INS_PER_MINUTE + [429]


def test_behind_a_trusted_proxy_each_address_has_its_own_tries(tmp_path: Path) -> None:
    with limited(tmp_path / "root", trusted_proxies=("127.0.0.0/8",)) as served:
        with from_behind(served, "10.9.9.1, 10.0.0.1") as one:
            spend(one)
            # What somebody says of themselves to the proxy is not believed.
            one.client.headers["x-forwarded-for"] = "10.9.9.2, 10.0.0.1"
            assert one.sign_in("mgk_x").status_code == 429
        with from_behind(served, "10.0.0.2") as other:
            assert other.sign_in(served.key()).status_code == 303


def test_nobody_is_believed_who_is_not_trusted(tmp_path: Path) -> None:
    with limited(tmp_path / "root") as served:
        with from_behind(served, "10.0.0.1") as one:
            spend(one)
        with from_behind(served, "10.0.0.2") as other:
            assert other.sign_in("mgk_x").status_code == 429
