"""The web console: pages that a server mounts at ``/console``."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any, Final, cast

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memgraph import __version__
from memgraph.errors import InvalidInput, MemgraphError, RequestRefused, Unauthenticated
from memgraph.model.access import Principal
from memgraph.service.access.gate import KEYLESS, Gate
from memgraph.service.sanitizer import sanitized_error
from memgraph.surfaces.asgi import CODE, ENTERED, UNTIMED, Headers, Pages, error_headers, settle
from memgraph.surfaces.web import sessions
from memgraph.surfaces.web.pages import PAGES
from memgraph.surfaces.web.render import Assets, environment
from memgraph.surfaces.web.requests import VISIT, ConsolePage, Visit
from memgraph.surfaces.web.sessions import (
    PLACE,
    ConsoleSessions,
    Session,
    SignIns,
    cookie_of,
    drop_cookie,
    keep_cookie,
    login_address,
    require_own_page,
)

# Headers of every response. Pages can load and run only files of the console.


POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)

HEADERS: Final[Headers] = [
    (b"content-security-policy", POLICY.encode()),
    # With no-referrer, browsers would send forms with ``Origin: null``.
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), usb=()"),
]


class SecurityHeaders:
    """ASGI middleware that adds ``HEADERS`` to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        await self._app(scope, receive, guarded)


# Error pages.


def failure_page(console: Console, request: Request, error: MemgraphError, status: int) -> Response:
    """Return the page for an error, with the orchestrator's menu if the visitor has access."""
    visit = _visit(request)
    request.scope[CODE] = error.code
    fields = {
        "error": error,
        "title": HTTPStatus(status).phrase,
        "back": f"{PLACE}/" if visit is None else visit.link(),
    }
    answer = console.show("failure.html", visit, status=status, **fields)
    answer.headers.update(error_headers(error))
    return answer


def _visit(request: Request) -> Visit | None:
    """Return the visit if the visitor has access to the orchestrator.

    Otherwise the menu of the error page would reveal that the orchestrator exists.
    """
    visit: Visit | None = request.scope.get(VISIT)
    if visit is None or ENTERED not in request.scope:
        return None
    try:
        visit.as_of  # noqa: B018 - validate and cache the time, which the page's links carry
    except InvalidInput:
        visit.as_of = None
    return visit


MAX_FIELDS: Final = 100
_FILES: Final = re.compile(rf"{PLACE}/[^/]+/activity/files")
SAFE: Final = ("GET", "HEAD")
"""Methods that do not change anything."""


class Console:
    """The state that all pages share. Created by ``console_pages``."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.sessions = ConsoleSessions(gate.service.root / "logs" / "console")
        self.sign_ins = SignIns()
        self.assets = Assets()
        address = f"{PLACE}/-/static/{self.assets.version}/"
        self._templates = environment(
            {
                "asset": lambda name: f"{address}{name}",
                "place": PLACE,
                "version": __version__,
            },
            gate.service.root,
        )

    def now_ms(self) -> int:
        return self.gate.service.clock.now_ms()

    def text(self, template: str, **values: Any) -> str:
        """Return a rendered template."""
        return self._templates.get_template(template).render(**values)

    def show(
        self, template: str, visit: Visit | None, *, status: int = 200, **values: Any
    ) -> Response:
        """Return a page; ``visit`` is None for a visitor who is not signed in."""
        return Response(self.text(template, visit=visit, **values), status, media_type="text/html")

    def principal(self, session: Session) -> Principal | None:
        """Return the principal of a session; None if its key is no longer valid."""
        if session.key_id is None:
            return KEYLESS if self.gate.keyless else None
        try:
            return self.gate.keys.holder(session.key_id)
        except Unauthenticated:
            return None

    def visit(self, request: Request, form: FormData) -> Visit:
        """Return the visit of a request.

        Raises:
            Unauthenticated: the request has no session (in keyless mode, a GET creates one).
            AccessDenied: a request that changes something was not sent by a page of the console.
        """
        cookie = cookie_of(request)
        session = self.sessions.find(cookie, self.now_ms())
        principal = None if session is None else self.principal(session)
        if session is not None and principal is None:
            self.sessions.end(cookie)
            session = None
        if session is None and self.gate.keyless and request.method in SAFE:
            cookie, session = self.sessions.open(None, self.now_ms())
            principal = KEYLESS
        if session is None or principal is None:
            raise Unauthenticated("not signed in")
        fields = {name: item for name, item in form.items() if isinstance(item, str)}
        marked = tuple(item for item in form.getlist("chosen") if isinstance(item, str))
        files = tuple(item for item in form.getlist("files") if isinstance(item, UploadFile))
        if request.method not in SAFE:
            require_own_page(request)
        return Visit(self, request, session, cookie, principal, fields, marked, files)

    def knows(self, scope: Scope) -> bool:
        """Return True if a request has a session."""
        cookie = cookie_of(Request(scope))
        return bool(cookie) and self.sessions.lasts(cookie, self.now_ms())

    def refusal(self, scope: Scope, error: MemgraphError, status: int) -> ASGIApp:
        """Return the page for a request that is refused before its body was read completely."""
        request = Request(scope)
        if isinstance(error, Unauthenticated):
            answer = _sign_in(request)
        else:
            answer = failure_page(self, request, error, status)
        answer.headers["Connection"] = "close"
        return SecurityHeaders(answer)


def console_pages(gate: Gate) -> Pages:
    """Return the console, to be mounted inside the middleware of the HTTP API."""
    console = Console(gate)
    app = Starlette(
        routes=[
            *sessions.routes(console),
            *(_route(console, item) for item in PAGES),
        ],
        exception_handlers={
            MemgraphError: _on_error,
            HTTPException: _on_http_error,
            Exception: _on_bug,
        },
    )
    app.state.console = console
    # Outermost, so that the page for an internal error also has the headers.
    return Pages(PLACE, SecurityHeaders(app), console.knows, console.refusal, takes_files)


def takes_files(scope: Scope) -> bool:
    """Return True for a request to the page that takes files."""
    return scope["method"] == "POST" and _FILES.fullmatch(scope["path"]) is not None


def console_of(request: Request) -> Console:
    return cast(Console, request.app.state.console)


def _route(console: Console, page: ConsolePage) -> Route:
    async def endpoint(request: Request) -> Response:
        # ``RequestLimits`` has limited the size already, and limits the time that a form may take.
        async with request.form(max_files=MAX_FIELDS, max_fields=MAX_FIELDS) as form:
            if page.lengthy:
                request.scope.get(UNTIMED, lambda: None)()
            return await run_sync(answer, request, form)

    def answer(request: Request, form: FormData) -> Response:
        visit = console.visit(request, form)
        visit.timed = page.timed
        request.scope[VISIT] = visit
        response = page.work(visit)
        keep_cookie(request, response, visit.cookie)
        return response

    return Route(page.path, endpoint, methods=[page.method])


async def _on_error(request: Request, error: Any) -> Response:
    console = console_of(request)
    if isinstance(error, Unauthenticated):
        return _sign_in(request)
    await settle(console.gate, request.scope, error)
    shown_error = sanitized_error(error, console.gate.service.root)
    return failure_page(console, request, shown_error, error.status)


def _sign_in(request: Request) -> Response:
    """Redirect to the sign-in form, which leads back to the requested page."""
    target = f"{PLACE}/"
    if request.method in SAFE:
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return drop_cookie(request, RedirectResponse(login_address(target), 303))


async def _on_http_error(request: Request, error: Any) -> Response:
    messages = {404: "page not found", 405: "this address does not accept this method"}
    text = messages.get(error.status_code, "the request cannot be read")
    answer = failure_page(console_of(request), request, RequestRefused(text), error.status_code)
    # For example Allow, with the methods of the address.
    answer.headers.update(error.headers or {})
    return answer


async def _on_bug(request: Request, _error: Exception) -> Response:
    """Show an unexpected error without details, which are only in the server's log."""
    error = MemgraphError("internal error; see the server log")
    return failure_page(console_of(request), request, error, 500)
