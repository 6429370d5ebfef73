"""The cookies of the console, and where a browser is led to get one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response

from memgraph.surfaces.web.visiting import PLACE


@dataclass(frozen=True, slots=True)
class Cookie:
    """One that browsers send below a path."""

    name: str
    path: str

    def name_at(self, request: Request) -> str:
        """Browsers hold cookies by host, not by port: each of several servers has its own."""
        server = request.scope.get("server")
        return self.name if server is None or server[1] is None else f"{self.name}_{server[1]}"


SESSION: Final = Cookie("memgraph_console", PLACE)
FORM: Final = Cookie("memgraph_sign_in", f"{PLACE}/login")
"""What the form for signing in is bound to; it lets nobody in. A link from elsewhere leads to that
form without the cookie of the session, which stays as it is therefore."""


def of(request: Request, cookie: Cookie = SESSION) -> str:
    """What the browser holds; empty: nothing."""
    return request.cookies.get(cookie.name_at(request), "")


def keep(request: Request, response: Response, value: str, cookie: Cookie = SESSION) -> None:
    """Have the browser hold a value until it is closed: no script reads it, no other site sends it.

    It is for encrypted connections alone where this one is, to us or to the proxy before us.
    """
    if of(request, cookie) == value:
        return
    response.set_cookie(
        cookie.name_at(request),
        value,
        path=cookie.path,
        httponly=True,
        samesite="strict",
        secure=_is_encrypted(request),
    )


def drop(request: Request, response: Response, cookie: Cookie = SESSION) -> Response:
    """Have the browser forget what it holds."""
    if of(request, cookie):
        response.delete_cookie(
            cookie.name_at(request),
            path=cookie.path,
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
    path = target.partition("#")[0].partition("?")[0]
    # Browsers take dots away with what stands before them, however they are written.
    dots = any(unquote(each) in (".", "..") for each in path.split("/"))
    begins = path.startswith(f"{PLACE}/") and path not in (f"{PLACE}/login", f"{PLACE}/logout")
    return target if plain and begins and not dots else f"{PLACE}/"


def _is_encrypted(request: Request) -> bool:
    # Who tells a proxy's word falsely makes their own cookie stricter, and nothing else.
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    origin = request.headers.get("origin", "").lower()
    return "https" in (request.url.scheme, forwarded) or origin.startswith("https://")
