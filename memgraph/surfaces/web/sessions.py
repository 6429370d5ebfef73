"""Sign in to the console: the form, sessions in memory, their cookies, and the tokens of forms.

When the server ends, everybody is signed out.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from memgraph.errors import RateLimited, Unauthenticated
from memgraph.model.access import Narrowing
from memgraph.service.access.rates import RateLimit, SharedRates

if TYPE_CHECKING:
    from memgraph.surfaces.web.app import Console

PLACE: Final = "/console"
"""The path of the console."""
MS_PER_MINUTE: Final = 60_000
MOST_SESSIONS: Final = 1_000
"""The maximum of sessions; the least recently used makes room for a new one."""
MOST_ADDRESSES: Final = 10_000
ID_BYTES: Final = 32


@dataclass(slots=True)
class Session:
    """One browser that is signed in.

    Attributes:
        key_id: of the key that it showed, whose secret is not kept; None: no key is required.
        seen_at: when it was used last, milliseconds.
        narrowings: its narrowed views, by orchestrator.
        notice: a message for the next page; empty: none.
    """

    key_id: str | None
    seen_at: int
    narrowings: dict[str, Narrowing] = field(default_factory=dict)
    notice: str = ""


class ConsoleSessions:
    """The sessions of a server, by the digest of their id. Thread-safe.

    Args:
        idle_ms: a session that was not used for so long is over.
    """

    def __init__(self, idle_ms: int) -> None:
        self._idle_ms = idle_ms
        self._known: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, key_id: str | None, now_ms: int) -> tuple[str, Session]:
        """Return a new session and its id, which is kept nowhere else: 256 random bits as text."""
        session_id = secrets.token_urlsafe(ID_BYTES)
        session = Session(key_id, now_ms)
        with self._lock:
            self._known[_digest(session_id)] = session
            if len(self._known) > MOST_SESSIONS:
                self._known.popitem(last=False)
        return session_id, session

    def find(self, session_id: str | None, now_ms: int) -> Session | None:
        """Return the session of an id and mark it as used; None: there is none, or it is over."""
        if not session_id:
            return None
        digest = _digest(session_id)
        with self._lock:
            session = self._known.get(digest)
            if session is None:
                return None
            # A clock that was put back ends none.
            if now_ms - session.seen_at > self._idle_ms:
                del self._known[digest]
                return None
            session.seen_at = now_ms
            self._known.move_to_end(digest)
            return session

    def key_of(self, session_id: str, now_ms: int) -> str | None:
        """Return the key id of a valid session, without marking it as used. None: of no key."""
        with self._lock:
            session = self._known.get(_digest(session_id))
        lasts = session is not None and now_ms - session.seen_at <= self._idle_ms
        return session.key_id if session is not None and lasts else None

    def end(self, session_id: str | None) -> None:
        """End a session, if there is one."""
        with self._lock:
            self._known.pop(_digest(session_id or ""), None)


class SignIns:
    """The sign-in attempts of each address within the last minute. Thread-safe.

    Args:
        per_minute: attempts of one address, whether they succeed or not.
        shared: counts those of all servers, too; None: they are counted in memory only.
    """

    def __init__(self, per_minute: int, shared: SharedRates | None = None) -> None:
        self._per_minute = per_minute
        self._shared = shared
        self._limit = RateLimit.of_minute("sign-ins", per_minute)
        self._tries: OrderedDict[str, list[int]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, address: str, now_ms: int) -> float:
        """Take one attempt; return the seconds to wait when there is none, else 0."""
        with self._lock:
            recent = [
                item for item in self._tries.get(address, ()) if 0 <= now_ms - item < MS_PER_MINUTE
            ]
            if len(recent) >= self._per_minute:
                return (recent[0] + MS_PER_MINUTE - now_ms) / 1_000
            self._tries[address] = [*recent, now_ms]
            self._tries.move_to_end(address)
            if len(self._tries) > MOST_ADDRESSES:
                self._tries.popitem(last=False)
        grant = self._shared and self._shared.take(self._limit, address)
        return grant.wait_s if grant and not grant.tokens else 0.0


def _digest(session_id: str) -> str:
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


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


def cookie_of(request: Request, cookie: Cookie = SESSION) -> str:
    """Return the cookie's value; empty: there is none."""
    return request.cookies.get(cookie.name_at(request), "")


def keep_cookie(request: Request, response: Response, value: str, cookie: Cookie = SESSION) -> None:
    """Set a cookie until the browser is closed: no script reads it, no other site sends it.

    It is limited to encrypted connections when this one is encrypted, to us or to the proxy before
    us.
    """
    if cookie_of(request, cookie) == value:
        return
    response.set_cookie(
        cookie.name_at(request),
        value,
        path=cookie.path,
        httponly=True,
        samesite="strict",
        secure=_is_encrypted(request),
    )


def drop_cookie(request: Request, response: Response, cookie: Cookie = SESSION) -> Response:
    """Delete a cookie."""
    if cookie_of(request, cookie):
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
        token_bytes = (token or "").encode("utf-8", "surrogatepass")
        return hmac.compare_digest(token_bytes, self.of(cookie).encode())


MAX_SECRET_CHARS: Final = 200


def routes(console: Console) -> list[Route]:
    """Return the routes before signing in: the form, its assets, and signing out."""

    async def form(request: Request) -> Response:
        if console.gate.keyless or console.sessions.find(cookie_of(request), console.now_ms()):
            return RedirectResponse(own_target(request.query_params.get("next", "")), 303)
        return _form_page(console, request, request.query_params.get("next", ""))

    async def sign_in(request: Request) -> Response:
        fields = await request.form(max_files=0)
        given = {name: field for name, field in fields.items() if isinstance(field, str)}
        return await run_sync(_signed_in, console, request, given)

    async def sign_out(request: Request) -> Response:
        fields = await request.form(max_files=0)
        token, cookie = fields.get(FIELD), cookie_of(request)
        console.require_token(request, cookie, token if isinstance(token, str) else None)
        console.sessions.end(cookie)
        return drop_cookie(request, RedirectResponse(f"{PLACE}/login", 303))

    async def asset(request: Request) -> Response:
        result = console.assets.find(request.path_params["name"])
        if result is None or request.path_params["version"] != console.assets.version:
            return Response(status_code=404)
        forever = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(result[0], media_type=result[1], headers=forever)

    return [
        Route("/login", form, methods=["GET"]),
        Route("/login", sign_in, methods=["POST"]),
        Route("/logout", sign_out, methods=["POST"]),
        Route("/-/static/{version}/{name:path}", asset, methods=["GET"]),
    ]


def _form_page(
    console: Console, request: Request, target: str, *, wrong: str = "", status: int = 200
) -> Response:
    """Return the form, with a token bound to a cookie that grants no access."""
    cookie = cookie_of(request, FORM) or secrets.token_urlsafe(32)
    page = console.show(
        "login.html",
        None,
        status=status,
        token=console.tokens.of(cookie),
        next=own_target(target),
        wrong=wrong,
    )
    keep_cookie(request, page, cookie, FORM)
    return page


def _signed_in(console: Console, request: Request, call: dict[str, str]) -> Response:
    console.require_token(request, cookie_of(request, FORM), call.get(FIELD))
    target = call.get("next", "")
    now = console.now_ms()
    address = request.client.host if request.client else ""
    wait_s = console.sign_ins.take(address, now)
    if wait_s > 0:
        raise RateLimited("too many sign-in attempts; wait a minute", retry_after_s=wait_s)
    try:
        principal = console.gate.authenticate(call.get("key", "").strip()[:MAX_SECRET_CHARS])
    except Unauthenticated:
        return _form_page(console, request, target, wrong="Invalid key.", status=401)
    # Whatever id the browser came with: one that others may know lets nobody in.
    console.sessions.end(cookie_of(request))
    session_id, _ = console.sessions.open(principal.key_id, now)
    response = RedirectResponse(own_target(target), 303)
    keep_cookie(request, response, session_id)
    return drop_cookie(request, response, FORM)
