"""Signing in with a key, and out."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from memgraph.errors import RateLimited, Unauthenticated
from memgraph.surfaces.web import cookies
from memgraph.surfaces.web.cookies import FIELD
from memgraph.surfaces.web.requests import PLACE

if TYPE_CHECKING:
    from memgraph.surfaces.web.app import Console

MAX_SECRET_CHARS = 200


def routes(console: Console) -> list[Route]:
    """Return the routes before signing in: the form, its assets, and signing out."""

    async def form(request: Request) -> Response:
        if console.gate.keyless or console.sessions.find(cookies.of(request), console.now_ms()):
            return RedirectResponse(cookies.own_target(request.query_params.get("next", "")), 303)
        return _form(console, request, request.query_params.get("next", ""))

    async def sign_in(request: Request) -> Response:
        fields = await request.form(max_files=0)
        given = {name: field for name, field in fields.items() if isinstance(field, str)}
        return await run_sync(_signed_in, console, request, given)

    async def sign_out(request: Request) -> Response:
        fields = await request.form(max_files=0)
        token, cookie = fields.get(FIELD), cookies.of(request)
        console.require_token(request, cookie, token if isinstance(token, str) else None)
        console.sessions.end(cookie)
        return cookies.drop(request, RedirectResponse(f"{PLACE}/login", 303))

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


def _form(
    console: Console, request: Request, target: str, *, wrong: str = "", status: int = 200
) -> Response:
    """Return the form, with a token bound to a cookie that grants no access."""
    cookie = cookies.of(request, cookies.FORM) or secrets.token_urlsafe(32)
    page = console.show(
        "login.html",
        None,
        status=status,
        token=console.tokens.of(cookie),
        next=cookies.own_target(target),
        wrong=wrong,
    )
    cookies.keep(request, page, cookie, cookies.FORM)
    return page


def _signed_in(console: Console, request: Request, call: dict[str, str]) -> Response:
    console.require_token(request, cookies.of(request, cookies.FORM), call.get(FIELD))
    target = call.get("next", "")
    now = console.now_ms()
    address = request.client.host if request.client else ""
    wait_s = console.sign_ins.take(address, now)
    if wait_s > 0:
        raise RateLimited("too many attempts to sign in; wait a minute", retry_after_s=wait_s)
    try:
        principal = console.gate.authenticate(call.get("key", "").strip()[:MAX_SECRET_CHARS])
    except Unauthenticated:
        return _form(console, request, target, wrong="This is no valid key.", status=401)
    # Whatever id the browser came with: one that others may know lets nobody in.
    console.sessions.end(cookies.of(request))
    session_id, _ = console.sessions.open(principal.key_id, now)
    response = RedirectResponse(cookies.own_target(target), 303)
    cookies.keep(request, response, session_id)
    return cookies.drop(request, response, cookies.FORM)
