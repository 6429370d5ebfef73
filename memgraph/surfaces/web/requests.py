"""One request for a page: its principal, its orchestrator, its time; and its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from memgraph.clock import iso, parse_time
from memgraph.errors import InvalidInput
from memgraph.model.access import Narrowing, Permission, Principal
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.scopes import ENTERED
from memgraph.surfaces.web.sessions import Session

if TYPE_CHECKING:
    from memgraph.service.access.gate import Gate
    from memgraph.surfaces.web.app import Console


# The parts of the console, in the order in which the menu has them.


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """An entry of the menu.

    Attributes:
        path: below the orchestrator's own address; empty: that address itself.
        title: the text in the menu.
        permission: the entry is hidden from a principal without it.
    """

    path: str
    title: str
    permission: Permission = Permission.READ


SECTIONS: Final = (
    MenuEntry("", "Overview"),
    MenuEntry("contradictions", "Contradictions"),
    MenuEntry("memories", "Memories"),
    MenuEntry("graph", "Graph"),
    MenuEntry("recall", "Recall"),
    MenuEntry("bulletin", "Bulletin"),
    MenuEntry("diff", "Changes"),
    MenuEntry("stale", "Stale", Permission.AUDIT),
    MenuEntry("receipts", "Receipts", Permission.AUDIT),
    MenuEntry("health", "Health", Permission.AUDIT),
    MenuEntry("ingest", "Files"),
    MenuEntry("jobs", "Jobs"),
)


PLACE: Final = "/console"
"""The path of the console."""
AS_OF: Final = "as_of"
VISIT: Final = "memgraph.console.visit"
"""The scope key of a request's ``Visit``, for the error page."""
MAX_TIME_CHARS: Final = 40


@dataclass
class Visit:
    """A request of a signed-in visitor.

    Attributes:
        cookie: the id of the session, as the browser holds it.
        form: the fields of a form, without its token; a repeated one has its last value.
        timed: True when the page can show its state at ``as_of``.
    """

    console: Console
    request: Request
    session: Session
    cookie: str
    principal: Principal
    form: Mapping[str, str] = field(default_factory=dict)
    timed: bool = False

    @property
    def gate(self) -> Gate:
        return self.console.gate

    @property
    def orchestrator(self) -> str:
        """The name in the address; empty on pages without one."""
        return str(self.request.path_params.get("orchestrator", ""))

    @property
    def narrowing(self) -> Narrowing:
        """The session's narrowing here."""
        return self.session.narrowings.get(self.orchestrator, Narrowing())

    def path(self, name: str) -> str:
        """Return a variable part of the address, such as an id."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """Return a parameter of the address, without white space around it."""
        return self.request.query_params.get(name, default).strip()

    def one_of(self, name: str, known: Sequence[str]) -> str:
        """Return a parameter that has to be one of some words; the first of them by default.

        Raises:
            InvalidInput: it is none of them.
        """
        value = self.query(name) or known[0]
        if value not in known:
            raise InvalidInput(f"{name}: one of {', '.join(known)}", field=name)
        return value

    @cached_property
    def as_of(self) -> int | None:
        """The time as of which a page is shown, milliseconds; None: now.

        Raises:
            InvalidInput: an invalid time.
        """
        text = self.query(AS_OF)
        return parse_time(text[:MAX_TIME_CHARS]) if text else None

    def may(self, permission: Permission) -> bool:
        """Return True when the principal has a permission; for what a page shows, not for what it
        does.
        """
        return permission in self.principal.permissions

    def enter(
        self, permission: Permission = Permission.READ, narrowing: Narrowing | None = None
    ) -> Orchestrator:
        """Return the handle of the address's orchestrator; refusals are journalled.

        Args:
            narrowing: None: that of the session.

        Raises:
            MemgraphError: what ``Gate.enter`` raises.
        """
        chosen = self.narrowing if narrowing is None else narrowing
        handle = self.gate.enter(self.principal, self.orchestrator, permission, chosen)
        # From here on what it does not find is a refusal to be journalled.
        self.request.scope[ENTERED] = (self.principal, handle.name)
        return handle

    def link(self, *parts: str, **query: Any) -> str:
        """Return the address of a page of this orchestrator, as of the same time.

        Args:
            parts: of the path; none of them can lead out of it.
            query: parameters; those that are None or empty are left out.
        """
        asked = {AS_OF: iso(self.as_of)} if self.as_of is not None else {}
        asked |= query
        kept = {name: value for name, value in asked.items() if value not in (None, "", ())}
        path = "/".join(quote(each, safe="") for each in (self.orchestrator, *parts))
        tail = "" if parts else "/"
        return f"{PLACE}/{path}{tail}" + (f"?{urlencode(kept, doseq=True)}" if kept else "")

    def here(self, **query: Any) -> str:
        """Return the address of this page with some parameters changed; None removes one."""
        given = self.request.query_params.multi_items()
        asked = [each for each in given if each[0] not in query] + list(query.items())
        kept = [(name, value) for name, value in asked if value not in (None, "")]
        return self.request.url.path + (f"?{urlencode(kept)}" if kept else "")

    def show(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page.

        Args:
            values: the names in its template; a missing name is an error.
        """
        return self.console.show(template, self, status=status, **values)

    def go(self, address: str, notice: str = "") -> Response:
        """Redirect the browser after a form was processed; the next page shows ``notice``."""
        self.session.notice = notice
        return RedirectResponse(address, 303)

    def take_notice(self) -> str:
        """Return the message of the last form, once."""
        notice, self.session.notice = self.session.notice, ""
        return notice

    def is_in(self, section: MenuEntry) -> bool:
        """Return True when this page belongs to a section."""
        own = f"{PLACE}/{self.orchestrator}/"
        return self.request.url.path.removeprefix(own).partition("/")[0] == section.path

    @property
    def sections(self) -> list[MenuEntry]:
        """Return the parts of the console that the principal may use."""
        return [each for each in SECTIONS if self.may(each.permission)]

    def required(self, name: str) -> str:
        """Return a field of the form. Raises InvalidInput: it is empty or missing."""
        value = self.form.get(name, "").strip()
        if not value:
            raise InvalidInput(f"{name}: is needed", field=name)
        return value


Work = Callable[[Visit], Response]


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """One address of the console, and the function that answers it.

    Attributes:
        path: below ``PLACE``, as Starlette writes it.
        work: makes the answer, in a thread; may raise MemgraphError.
        method: for a POST or PUT the token is checked before ``work`` is called.
        timed: True when it can show its state at ``Visit.as_of``.
        lengthy: True when its answer may take longer than others.
    """

    path: str
    work: Work
    method: str = "GET"
    timed: bool = False
    lengthy: bool = False


@dataclass(frozen=True, slots=True)
class UploadPage:
    """An address of the console to which a script sends a body (PUT), with a token in its header.

    Attributes:
        path: as of ``ConsolePage``.
        take: reads the body as it comes, in the event loop; may raise MemgraphError.
    """

    path: str
    take: Callable[[Visit], Awaitable[Response]]
