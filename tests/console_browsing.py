"""A browser without a screen for tests of the console: signs in, follows forms, keeps cookies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
from serving_worlds import Served, serving, whole_app

HOME = "/console/orc-1/"


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
        self.client = served.client()
        self.origin = served.url
        if secret is not None and self.sign_in(secret).status_code != 303:
            self.client.close()
            raise AssertionError("this key lets nobody in")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_error: object) -> None:
        self.client.close()

    def sign_in(self, secret: str, **fields: str) -> httpx.Response:
        """Send the form for signing in, from the page that has it."""
        return self.send("/console/login", key=secret, **fields)

    def open(self, address: str) -> httpx.Response:
        """A page; redirects are not followed."""
        return self.client.get(address)

    def page(self, address: str = HOME) -> str:
        """The text of a page that is there."""
        answer = self.open(address)
        assert answer.status_code == 200, (answer.status_code, answer.text)
        return answer.text

    def send(self, address: str, *, origin: str | None = None, **fields: Any) -> httpx.Response:
        """Send a form as a browser does from a page of the console; ``files`` are those chosen."""
        headers = {"origin": self.origin if origin is None else origin}
        files = fields.pop("files", None)
        return self.client.post(address, data=fields, files=files, headers=headers)


class Seen(HTMLParser):
    """A page as a browser takes it apart.

    Attributes:
        tags: of all elements.
        attributes: of all elements: tag, name, value.
        text: what stands between the tags.
        scripted: the text of scripts and styles within the page.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.scripted = ""
        self._within = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self._within = tag

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within in ("script", "style"):
            self.scripted += data
        else:
            self.text += data

    def values(self, *names: str) -> list[str]:
        """The values of all attributes of these names."""
        return [value for _, name, value in self.attributes if name in names]


def harmless(page: str) -> Seen:
    """The page taken apart, once it is seen that it runs and loads nothing but the console's own,
    and that everything a screen reader needs is there.
    """
    seen = Seen(page)
    assert not seen.scripted.strip()
    assert not seen.tags & {"iframe", "object", "embed", "base", "style", "xss"}
    assert not [each for each in seen.attributes if each[1].startswith("on") or each[1] == "style"]
    for address in seen.values("href", "src", "action", "formaction", "xlink:href"):
        assert address.startswith(("/console/", "#")), address
    ids = seen.values("id")
    assert len(ids) == len(set(ids)), sorted(each for each in ids if ids.count(each) > 1)
    assert set(seen.values("for", "aria-labelledby", "aria-describedby")) <= set(ids)
    return seen
