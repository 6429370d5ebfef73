"""The cookies of the console, and the sign-in address."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response

from memgraph.surfaces.web.requests import PLACE


@dataclass(frozen=True, slots=True)
class Cookie:
    """A cookie that browsers send below a path."""

    name: str
    path: str

    def name_at(self, request: Request) -> str:
        """Return its name with the port: browsers separate cookies by host, not by port."""
        server = request.scope.get("server")
        return self.name if server is None or server[1] is None else f"{self.name}_{server[1]}"


SESSION: Final = Cookie("memgraph_console", PLACE)
FORM: Final = Cookie("memgraph_sign_in", f"{PLACE}/login")
"""The cookie that the sign-in form is bound to; it grants no access. A link from another site leads
to that form without the session's cookie, which therefore stays unchanged.
"""


def of(request: Request, cookie: Cookie = SESSION) -> str:
    """Return the cookie's value; empty: there is none."""
    return request.cookies.get(cookie.name_at(request), "")


def keep(request: Request, response: Response, value: str, cookie: Cookie = SESSION) -> None:
    """Set a cookie until the browser is closed: no script reads it, no other site sends it.

    It is limited to encrypted connections when this one is encrypted, to us or to the proxy before
    us.
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
    """Delete a cookie."""
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
    """Return the address of the sign-in form, which leads on to a page."""
    return f"{PLACE}/login?next={quote(target, safe='')}"


def own_target(target: str) -> str:
    """Return the page to go to after signing in: a page of the console, else its first one."""
    # A backslash is a slash for browsers, and two slashes begin another host's address.
    plain = target.isascii() and target.isprintable() and "\\" not in target and "//" not in target
    path = target.partition("#")[0].partition("?")[0]
    # Browsers resolve dot segments, however they are written.
    dots = any(unquote(item) in (".", "..") for item in path.split("/"))
    begins = path.startswith(f"{PLACE}/") and path not in (f"{PLACE}/login", f"{PLACE}/logout")
    return target if plain and begins and not dots else f"{PLACE}/"


def _is_encrypted(request: Request) -> bool:
    # A forged proxy header only makes the sender's own cookie stricter.
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    origin = request.headers.get("origin", "").lower()
    return "https" in (request.url.scheme, forwarded) or origin.startswith("https://")


FIELD: Final = "csrf_token"
"""The name of the hidden field that every form has."""
HEADER: Final = "x-csrf-token"
"""The header in which a script sends the token, with a body that is no form."""
_OWN: Final = frozenset({None, "same-origin", "none"})


class CsrfTokens:
    """Makes and checks tokens; those of an earlier process are invalid.

    A token is the HMAC-SHA-256 of the cookie under a key of this process, so that nothing is kept,
    and a page of another site, which cannot read the cookie, has none.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def of(self, cookie: str) -> str:
        """Return the token for the forms of this cookie's owner."""
        text = cookie.encode("utf-8", "surrogatepass")
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()

    def fits(self, cookie: str, token: str | None, *, site: str | None) -> bool:
        """Return True when a form came from a page of the console.

        Args:
            cookie: of the request; empty: none.
            token: of the form.
            site: the browser's ``Sec-Fetch-Site`` header, if any.
        """
        if not cookie or site not in _OWN:
            return False
        call = (token or "").encode("utf-8", "surrogatepass")
        return hmac.compare_digest(call, self.of(cookie).encode())
