"""The cookie of the console, and where a browser is led to get one."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from memgraph.surfaces.web.visiting import PLACE

_NAME: Final = "memgraph_console"


def _name(request: Request) -> str:
    """Browsers hold cookies by host, not by port: each of several servers has one of its own."""
    server = request.scope.get("server")
    return _NAME if server is None or server[1] is None else f"{_NAME}_{server[1]}"


def of(request: Request) -> str:
    """What the browser holds; empty: nothing."""
    return request.cookies.get(_name(request), "")


def keep(request: Request, response: Response, value: str) -> None:
    """Have the browser hold a value until it is closed: no script reads it, no other site sends it.

    It is for encrypted connections alone where this one is, to us or to the proxy before us.
    """
    if of(request) == value:
        return
    response.set_cookie(
        _name(request),
        value,
        path=PLACE,
        httponly=True,
        samesite="strict",
        secure=_is_encrypted(request),
    )


def drop(request: Request, response: Response) -> Response:
    """Have the browser forget what it holds."""
    if of(request):
        response.delete_cookie(
            _name(request),
            path=PLACE,
            httponly=True,
            samesite="strict",
            secure=_is_encrypted(request),
        )
    return response


def login_address(target: str) -> str:
    """The form for signing in, which leads on to a page."""
    return f"{PLACE}/login?next={quote(target, safe='')}"


def own_target(target: str) -> str:
    """Where to go on after signing in: a page of the console, else its first one."""
    # A backslash is a slash for browsers, and two slashes begin another host's address.
    plain = target.isascii() and target.isprintable() and "\\" not in target and "//" not in target
    begins = target.startswith(f"{PLACE}/") and not target.startswith(f"{PLACE}/log")
    return target if plain and begins else f"{PLACE}/"


def _is_encrypted(request: Request) -> bool:
    # Who tells a proxy's word falsely makes their own cookie stricter, and nothing else.
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    origin = request.headers.get("origin", "").lower()
    return "https" in (request.url.scheme, forwarded) or origin.startswith("https://")
