"""Sign in to the console: the form, sessions and cookies.

Sessions are small files in a folder of the root: every server process of the root knows them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from anyio.to_thread import run_sync
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from memgraph.errors import AccessDenied, RateLimited, Unauthenticated
from memgraph.model.access import Narrowing
from memgraph.paths import naming_full_disk
from memgraph.surfaces.asgi import is_encrypted, is_own_origin

if TYPE_CHECKING:
    from memgraph.surfaces.web.app import Console

PLACE: Final = "/console"
"""The URL path of the console."""
COOKIE: Final = "memgraph_console"
MS_PER_MINUTE: Final = 60_000
IDLE_MS: Final = 30 * MS_PER_MINUTE
"""The time after which an unused session expires."""
MOST_SESSIONS: Final = 1_000
"""The maximum number of sessions; a new one replaces the least recently used."""
SIGN_INS_PER_MINUTE: Final = 10
"""The maximum number of sign-in attempts of an IP address in a minute, successful or not."""
ID_BYTES: Final = 32
SUFFIX: Final = ".json"
NS_PER_MS: Final = 1_000_000
NEVER_MS: Final = -(2**60)


@dataclass(frozen=True, slots=True)
class Session:
    """The session of a signed-in browser.

    Attributes:
        key_id: the id of the key (its secret is not kept); None: no key is required.
        narrowings: the narrowed views, by orchestrator.
        notice: a message for the next page; may be empty.
    """

    key_id: str | None
    narrowings: dict[str, Narrowing] = field(default_factory=dict)
    notice: str = ""


_SESSION: Final = TypeAdapter(Session)


class ConsoleSessions:
    """The sessions of a root: a file each, named by the digest of the session's id.

    The time of a file is that of the last request. A lock guards them, also between processes.

    Args:
        folder: the folder of the files, created if it is missing, readable by its owner alone.
        idle_ms: the time after which an unused session expires, in milliseconds.
    """

    def __init__(self, folder: Path, idle_ms: int = IDLE_MS) -> None:
        self._folder = folder
        self._idle_ms = idle_ms
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def open(self, key_id: str | None, now_ms: int) -> tuple[str, Session]:
        """Create a session and return it with its id, 256 random bits; only a digest is stored."""
        session_id, session = secrets.token_urlsafe(ID_BYTES), Session(key_id)
        with self._locked():
            used = sorted((_used_ms(path), path) for path in self._folder.glob(f"*{SUFFIX}"))
            spare = max(0, len(used) + 1 - MOST_SESSIONS)
            for at, (used_ms, path) in enumerate(used):
                if at < spare or now_ms - used_ms > self._idle_ms:
                    path.unlink(missing_ok=True)
            self._write(self._path(session_id), session, now_ms)
        return session_id, session

    def change(self, session_id: str, change: Callable[[Session], Session]) -> Session | None:
        """Store a changed session and return it; None if it was ended meanwhile."""
        path = self._path(session_id)
        with self._locked():
            session = self._read(path)
            if session is None:
                return None
            changed = change(session)
            self._write(path, changed, _used_ms(path))
            return changed

    def find(self, session_id: str | None, now_ms: int) -> Session | None:
        """Return the session with an id and mark it as used; None if missing or expired."""
        if not session_id:
            return None
        path = self._path(session_id)
        with self._locked():
            session = self._read(path) if self.lasts(session_id, now_ms) else None
            if session is not None:
                _mark_used(path, now_ms)
        return session

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with naming_full_disk(self._folder), (self._folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @staticmethod
    def _read(path: Path) -> Session | None:
        try:
            return _SESSION.validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            # Torn by a power failure, or of another version.
            path.unlink(missing_ok=True)
            return None

    def _write(self, path: Path, session: Session, used_ms: int) -> None:
        # One at a time, under the lock: on a full disk, or after a kill, the old session stays.
        draft = self._folder / "draft"
        draft.touch(mode=0o600)
        draft.write_bytes(_SESSION.dump_json(session))
        _mark_used(draft, used_ms)
        draft.replace(path)

    def lasts(self, session_id: str, now_ms: int) -> bool:
        """Return True if there is such a session, without marking it as used."""
        # A clock that is set back does not expire sessions.
        return now_ms - _used_ms(self._path(session_id)) <= self._idle_ms

    def end(self, session_id: str | None) -> None:
        """End a session if it exists."""
        with self._locked():
            self._path(session_id or "").unlink(missing_ok=True)

    def _path(self, session_id: str) -> Path:
        digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / f"{digest}{SUFFIX}"


def _mark_used(path: Path, now_ms: int) -> None:
    os.utime(path, ns=(now_ms * NS_PER_MS,) * 2)


def _used_ms(path: Path) -> int:
    """Return the time of the last request of a session; long ago if there is no such session."""
    try:
        return path.stat().st_mtime_ns // NS_PER_MS
    except FileNotFoundError:
        return NEVER_MS


class SignIns:
    """Limits the sign-in attempts of each IP address in any 60 seconds. Thread-safe."""

    def __init__(self) -> None:
        # The times of the attempts, by address; the address that tried last is at the end.
        self._tries: dict[str, list[int]] = {}
        self._lock = threading.Lock()

    def take(self, address: str, now_ms: int) -> float:
        """Count an attempt; return 0, or the seconds to wait if the limit is reached.

        A refused attempt is not counted, so that waiting always helps.
        """
        with self._lock:
            for other in list(takewhile(lambda name: not self._recent(name, now_ms), self._tries)):
                del self._tries[other]
            recent = self._recent(address, now_ms)
            if len(recent) >= SIGN_INS_PER_MINUTE:
                return (recent[0] + MS_PER_MINUTE - now_ms) / 1_000
            self._tries.pop(address, None)
            self._tries[address] = [*recent, now_ms]
        return 0.0

    def _recent(self, address: str, now_ms: int) -> list[int]:
        """Return the attempts of the last minute; a clock that was set back forgets later ones."""
        times = self._tries.get(address, ())
        return [time_ms for time_ms in times if now_ms - MS_PER_MINUTE < time_ms <= now_ms]


def cookie_of(request: Request) -> str:
    """Return the id of the session in a request's cookie; empty if it has none."""
    return request.cookies.get(_cookie_name(request), "")


def keep_cookie(request: Request, response: Response, session_id: str) -> None:
    """Set the cookie until the browser is closed, as HttpOnly and SameSite=Strict.

    It is also Secure if the connection to the server, or to a proxy before it, is encrypted.
    """
    if cookie_of(request) != session_id:
        response.set_cookie(_cookie_name(request), session_id, **_attributes(request))


def drop_cookie(request: Request, response: Response) -> Response:
    """Delete the cookie."""
    if cookie_of(request):
        response.delete_cookie(_cookie_name(request), **_attributes(request))
    return response


def _cookie_name(request: Request) -> str:
    """Return the cookie's name with the port: browsers separate cookies by host only."""
    server = request.scope.get("server")
    port = None if server is None else server[1]
    return COOKIE if port is None else f"{COOKIE}_{port}"


def _attributes(request: Request) -> dict[str, Any]:
    # Forging these headers only makes the sender's own cookie stricter.
    origin = request.headers.get("origin", "").lower()
    secure = is_encrypted(request.scope) or origin.startswith("https://")
    return {"path": PLACE, "httponly": True, "samesite": "strict", "secure": secure}


def login_address(target: str) -> str:
    """Return the URL of the sign-in form that leads on to a page."""
    return f"{PLACE}/login?next={quote(target, safe='')}"


def own_target(target: str) -> str:
    """Return ``target`` if it is a page of the console, else the console's home page."""
    # Browsers treat a backslash as a slash, and two slashes begin the name of another host.
    is_plain = (
        target.isascii() and target.isprintable() and "\\" not in target and "//" not in target
    )
    path = target.partition("#")[0].partition("?")[0]
    # Browsers resolve dot segments even if they are percent-encoded.
    has_dots = any(unquote(item) in (".", "..") for item in path.split("/"))
    is_console_page = path.startswith(f"{PLACE}/") and path not in (
        f"{PLACE}/login",
        f"{PLACE}/logout",
    )
    return target if is_plain and is_console_page and not has_dots else f"{PLACE}/"


def require_own_page(request: Request) -> None:
    """Raise AccessDenied unless the browser says that a page of the console sent a form."""
    if not is_own_origin(request.scope, request.headers.get("origin", "")):
        raise AccessDenied("only pages of the console may send forms")


MAX_SECRET_CHARS: Final = 200


def routes(console: Console) -> list[BaseRoute]:
    """Return the routes that require no session: the sign-in form, signing out, static files."""

    async def form(request: Request) -> Response:
        if console.gate.keyless or console.sessions.find(cookie_of(request), console.now_ms()):
            return RedirectResponse(own_target(request.query_params.get("next", "")), 303)
        return _form_page(console, request.query_params.get("next", ""))

    async def sign_in(request: Request) -> Response:
        require_own_page(request)
        fields = await request.form(max_files=0)
        texts = {name: field for name, field in fields.items() if isinstance(field, str)}
        return await run_sync(_signed_in, console, request, texts)

    async def sign_out(request: Request) -> Response:
        require_own_page(request)
        console.sessions.end(cookie_of(request))
        return drop_cookie(request, RedirectResponse(f"{PLACE}/login", 303))

    return [
        Route("/login", form, methods=["GET"]),
        Route("/login", sign_in, methods=["POST"]),
        Route("/logout", sign_out, methods=["POST"]),
        Mount(f"/-/static/{console.assets.version}", console.assets),
    ]


def _form_page(console: Console, target: str, *, wrong: str = "", status: int = 200) -> Response:
    """Return the sign-in form, which leads on to a page."""
    return console.show("login.html", None, status=status, next=own_target(target), wrong=wrong)


def _signed_in(console: Console, request: Request, call: dict[str, str]) -> Response:
    target = call.get("next", "")
    now = console.now_ms()
    address = request.client.host if request.client else ""
    wait_s = console.sign_ins.take(address, now)
    if wait_s > 0:
        raise RateLimited("too many sign-in attempts; wait a minute", retry_after_s=wait_s)
    try:
        principal = console.gate.authenticate(call.get("key", "").strip()[:MAX_SECRET_CHARS])
    except Unauthenticated:
        return _form_page(console, target, wrong="Invalid key.", status=401)
    # Always create a new id, to prevent session fixation.
    console.sessions.end(cookie_of(request))
    session_id, _ = console.sessions.open(principal.key_id, now)
    response = RedirectResponse(own_target(target), 303)
    keep_cookie(request, response, session_id)
    return response
