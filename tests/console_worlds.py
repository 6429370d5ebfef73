"""A browser without a screen for tests of the console: signs in, follows forms, keeps cookies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from serving_worlds import Served, serving

from memgraph.service.access.gate import Gate

if TYPE_CHECKING:
    from starlette.types import ASGIApp

TOKEN = re.compile(r'name="csrf_token" value="([0-9a-f]{64})"')
HOME = "/console/orc-1/"


def whole_app(gate: Gate) -> ASGIApp:
    """All surfaces of a server, as ``memgraph serve`` has them."""
    from memgraph.surfaces.serving import application

    return application(gate, gate.service.settings().memory.server)


@contextmanager
def console_served(root: Path, **options: Any) -> Iterator[Served]:
    """``serving`` with the console, over a root with the orchestrator orc-1."""
    with serving(root, app_of=whole_app, **options) as served:
        served.orchestrator()
        yield served


class Browser:
    """What a person does with a browser: opens pages, and sends their forms.

    Args:
        secret: of the key to sign in with; None: nobody signs in.
    """

    def __init__(self, served: Served, secret: str | None = None) -> None:
        self.client = served.client(headers={"sec-fetch-site": "same-origin"})
        self.origin = served.url
        if secret is not None:
            answer = self.sign_in(secret)
            assert answer.status_code == 303, answer.text

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_error: object) -> None:
        self.client.close()

    def sign_in(self, secret: str, **fields: str) -> httpx.Response:
        """Send the form for signing in, from the page that has it."""
        token = token_of(self.open("/console/login").text)
        return self.post("/console/login", token=token, key=secret, **fields)

    def open(self, address: str) -> httpx.Response:
        """A page; redirects are not followed."""
        return self.client.get(address)

    def page(self, address: str = HOME) -> str:
        """The text of a page that is there."""
        answer = self.open(address)
        assert answer.status_code == 200, (answer.status_code, answer.text)
        return answer.text

    def post(
        self, address: str, *, token: str, origin: str | None = None, **fields: str
    ) -> httpx.Response:
        """Send a form as a browser does."""
        headers = {"origin": origin or self.origin}
        return self.client.post(address, data={"csrf_token": token, **fields}, headers=headers)

    def send(self, address: str, *, page: str = HOME, **fields: str) -> httpx.Response:
        """Send a form of a page, with the token that the page has."""
        return self.post(address, token=token_of(self.page(page)), **fields)


def token_of(page: str) -> str:
    """The token of the forms of a page."""
    found = TOKEN.search(page)
    assert found is not None, "the page has no form"
    return found[1]
