"""One request for a page: who asks, for which orchestrator, as of when; and its answer."""

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
from memgraph.service.orchestrator import Orchestrator
from memgraph.surfaces.scopes import ENTERED
from memgraph.surfaces.web.sessions import Session

if TYPE_CHECKING:
    from memgraph.service.access.gate import Gate
    from memgraph.surfaces.web.app import Console


# The parts of the console, in the order in which the menu has them.


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of the menu.

    Attributes:
        path: below the orchestrator's own address; empty: that address itself.
        title: what the menu says.
        permission: whoever lacks it is not shown the entry.
    """

    path: str
    title: str
    permission: Permission = Permission.READ


SECTIONS: Final = (
    Section("", "Overview"),
    Section("contradictions", "Contradictions"),
    Section("memories", "Memories"),
    Section("graph", "Graph"),
    Section("recall", "Recall"),
    Section("bulletin", "Bulletin"),
    Section("diff", "Changes"),
    Section("stale", "Stale", Permission.AUDIT),
    Section("receipts", "Receipts", Permission.AUDIT),
    Section("health", "Health", Permission.AUDIT),
    Section("ingest", "Files"),
    Section("jobs", "Jobs"),
)


PLACE: Final = "/console"
"""Where the console is served."""
AS_OF: Final = "as_of"
VISIT: Final = "memgraph.console.visit"
"""In the scope of a request: its ``Visit``, for the page that tells why it failed."""
MAX_TIME_CHARS: Final = 40


@dataclass
class Visit:
    """A request of somebody who was let in.

    Attributes:
        cookie: the id of the session, as the browser holds it.
        form: the fields of a form that was sent, without its token; one that comes several times
            has its last value.
        timed: whether the page can show how it was at ``as_of``.
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
        """The name in the address; empty on pages that are of none."""
        return str(self.request.path_params.get("orchestrator", ""))

    @property
    def narrowing(self) -> Narrowing:
        """What the session chose to look at here."""
        return self.session.narrowings.get(self.orchestrator, Narrowing())

    def path(self, name: str) -> str:
        """A variable part of the address, such as an id."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """A parameter of the address, without white space around it."""
        return self.request.query_params.get(name, default).strip()

    def one_of(self, name: str, known: Sequence[str]) -> str:
        """A parameter that has to be one of some words; the first of them where it is not given.

        Raises:
            InvalidInput: it is none of them.
        """
        value = self.query(name) or known[0]
        if value not in known:
            raise InvalidInput(f"{name}: one of {', '.join(known)}", field=name)
        return value

    @cached_property
    def as_of(self) -> int | None:
        """The time as of which a page is to be, milliseconds; None: now.

        Raises:
            InvalidInput: what was given is no time.
        """
        text = self.query(AS_OF)
        return parse_time(text[:MAX_TIME_CHARS]) if text else None

    def may(self, permission: Permission) -> bool:
        """Whether the principal has a permission; for what a page shows, not for what it does."""
        return permission in self.principal.permissions

    def enter(
        self, permission: Permission = Permission.READ, narrowing: Narrowing | None = None
    ) -> Orchestrator:
        """The handle of the address's orchestrator; refusals are journalled.

        Args:
            narrowing: None: what the session chose.

        Raises:
            MemgraphError: what ``Gate.enter`` raises.
        """
        chosen = self.narrowing if narrowing is None else narrowing
        handle = self.gate.enter(self.principal, self.orchestrator, permission, chosen)
        # From here on what it does not find is a refusal to be journalled.
        self.request.scope[ENTERED] = (self.principal, handle.name)
        return handle

    def link(self, *parts: str, **query: Any) -> str:
        """The address of a page of this orchestrator, as of the same time.

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
        """The address of this very page with some parameters changed; None takes one away."""
        given = self.request.query_params.multi_items()
        asked = [each for each in given if each[0] not in query] + list(query.items())
        kept = [(name, value) for name, value in asked if value not in (None, "")]
        return self.request.url.path + (f"?{urlencode(kept)}" if kept else "")

    def show(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """A page.

        Args:
            values: what its template names; a name that is missing is an error.
        """
        return self.console.show(template, self, status=status, **values)

    def go(self, address: str, notice: str = "") -> Response:
        """Lead the browser on after a form was taken; the page it comes to tells ``notice``."""
        self.session.notice = notice
        return RedirectResponse(address, 303)

    def take_notice(self) -> str:
        """What the last form has to tell; it is told once."""
        notice, self.session.notice = self.session.notice, ""
        return notice

    def is_in(self, section: Section) -> bool:
        """Whether this page is one of a section."""
        own = f"{PLACE}/{self.orchestrator}/"
        return self.request.url.path.removeprefix(own).partition("/")[0] == section.path

    @property
    def sections(self) -> list[Section]:
        """The parts of the console that the principal has any use for."""
        return [each for each in SECTIONS if self.may(each.permission)]

    def required(self, name: str) -> str:
        """A field of the form. Raises InvalidInput: it is empty or missing."""
        value = self.form.get(name, "").strip()
        if not value:
            raise InvalidInput(f"{name}: is needed", field=name)
        return value


Work = Callable[[Visit], Response]


@dataclass(frozen=True, slots=True)
class Page:
    """One address of the console, and what answers it.

    Attributes:
        path: below ``PLACE``, as Starlette writes it.
        work: makes the answer, in a thread; may raise MemgraphError.
        method: a POST or PUT has shown a token before ``work`` is asked.
        timed: whether it can show how things were at ``Visit.as_of``.
        lengthy: its answer may take longer than others.
    """

    path: str
    work: Work
    method: str = "GET"
    timed: bool = False
    lengthy: bool = False


@dataclass(frozen=True, slots=True)
class Arrival:
    """One address of the console to which a script sends a body (PUT), with a token in its head.

    Attributes:
        path: as of ``Page``.
        take: reads the body as it comes, in the event loop; may raise MemgraphError.
    """

    path: str
    take: Callable[[Visit], Awaitable[Response]]
