"""Requests for console pages: principal, orchestrator, parameters, and responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from memgraph.clock import iso
from memgraph.errors import InvalidInput
from memgraph.model.access import Narrowing, Permission, Principal
from memgraph.model.influence import SourceLines
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service.access.gate import Gate
from memgraph.surfaces.asgi import ENTERED
from memgraph.surfaces.web.sessions import PLACE, Session
from memgraph.text.dates import moment_of

if TYPE_CHECKING:
    from memgraph.surfaces.web.app import Console


# The sections of the console, in the order of the menu.


class MenuEntry(NamedTuple):
    """An entry of the menu.

    Attributes:
        path: relative to the orchestrator's URL; empty for the URL itself.
        title: the text in the menu.
        permission: the entry is hidden from a principal without it.
    """

    path: str
    title: str
    permission: Permission = Permission.READ


SECTIONS: Final = (
    MenuEntry("", "Overview"),
    MenuEntry("memories", "Memories"),
    MenuEntry("contradictions", "Contradictions"),
    MenuEntry("graph", "Graph"),
    MenuEntry("entities", "Entities"),
    MenuEntry("answers", "Answers", Permission.AUDIT),
    MenuEntry("activity", "Activity"),
)


AS_OF: Final = "as_of"
VISIT: Final = "memgraph.console.visit"
"""The scope key of a request's ``Visit``, for the error page."""
MAX_TIME_CHARS: Final = 40
MAX_QUERY_CHARS: Final = 1_000


@dataclass
class Visit:
    """A request of a signed-in visitor.

    Attributes:
        cookie: the value of the session cookie.
        form: the fields of the form; the last value if one is repeated.
        chosen: the values of the ticked check boxes of a list.
        files: the chosen files.
        timed: True if the page can show its state as of a past time.
    """

    console: Console
    request: Request
    session: Session
    cookie: str
    principal: Principal
    form: Mapping[str, str] = field(default_factory=dict)
    chosen: tuple[str, ...] = ()
    files: tuple[UploadFile, ...] = ()
    timed: bool = False

    @property
    def gate(self) -> Gate:
        return self.console.gate

    @property
    def orchestrator(self) -> str:
        """The name of the orchestrator in the URL; empty on pages without one."""
        return str(self.request.path_params.get("orchestrator", ""))

    @property
    def narrowing(self) -> Narrowing:
        """The session's narrowing for this orchestrator."""
        return self.session.narrowings.get(self.orchestrator, Narrowing())

    def path(self, name: str) -> str:
        """Return a path parameter of the URL, such as an id."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """Return a query parameter, stripped of white space."""
        return self.request.query_params.get(name, default).strip()

    def one_of(self, name: str, texts: Sequence[str]) -> str:
        """Return a query parameter that must be one of some values; the first is the default.

        Raises:
            InvalidInput: it has another value.
        """
        value = self.query(name) or texts[0]
        if value not in texts:
            raise InvalidInput(f"{name} must be one of {', '.join(texts)}", field=name)
        return value

    @cached_property
    def as_of(self) -> int | None:
        """The time as of which the page is shown, in milliseconds; None for the present.

        Raises:
            InvalidInput: the time is invalid.
        """
        return self.moment(AS_OF, ends=True)

    def moment(self, name: str, *, ends: bool = False) -> int | None:
        """Return a query parameter as a time in milliseconds; None if it is empty.

        Raises:
            InvalidInput: the time is invalid.
        """
        text = self.query(name)[:MAX_TIME_CHARS]
        return moment_of(text, self.console.now_ms(), ends=ends) if text else None

    def may(self, permission: Permission) -> bool:
        """Return True if the principal has a permission.

        Use it to decide what a page shows; ``enter`` checks permissions for access.
        """
        return permission in self.principal.permissions

    @property
    def is_auditor(self) -> bool:
        """True if the principal may audit."""
        return self.may(Permission.AUDIT)

    @property
    def may_decide(self) -> bool:
        """True if the principal may write and the page shows the present."""
        return self.may(Permission.WRITE) and self.as_of is None

    def lines(self, *memory_ids: str) -> Mapping[str, SourceLines]:
        """Return source lines by memory id; empty for a principal who may not audit."""
        if not self.is_auditor:
            return {}
        orc = self.enter(Permission.AUDIT)
        return {memory_id: orc.sources.lines(memory_id) for memory_id in memory_ids}

    def enter(
        self, permission: Permission = Permission.READ, narrowing: Narrowing | None = None
    ) -> Orchestrator:
        """Return the handle of the orchestrator in the URL; refusals are logged.

        Args:
            narrowing: narrows the view; None: the session's narrowing.

        Raises:
            MemgraphError: an error of ``Gate.enter``.
        """
        chosen = self.narrowing if narrowing is None else narrowing
        handle = self.gate.enter(self.principal, self.orchestrator, permission, chosen)
        # From here on, a NotFound error is logged as a refusal.
        self.request.scope[ENTERED] = (self.principal, handle.name)
        return handle

    def link(self, *parts: str, **query: Any) -> str:
        """Return the URL of a page of this orchestrator, as of the same time.

        Args:
            parts: path segments; they are escaped.
            query: query parameters; None and empty values are omitted.
        """
        parameters = {AS_OF: iso(self.as_of)} if self.as_of is not None else {}
        parameters |= query
        present = {name: value for name, value in parameters.items() if value not in (None, "", ())}
        path = "/".join(quote(item, safe="") for item in (self.orchestrator, *parts))
        tail = "" if parts else "/"
        return f"{PLACE}/{path}{tail}" + (f"?{urlencode(present, doseq=True)}" if present else "")

    def here(self, **query: Any) -> str:
        """Return the URL of this page with some parameters changed; None removes a parameter."""
        current = self.request.query_params.multi_items()
        target = [item for item in current if item[0] not in query] + list(query.items())
        parameters = [(name, value) for name, value in target if value not in (None, "")]
        return self.request.url.path + (f"?{urlencode(parameters)}" if parameters else "")

    def following(self, **query: str | None) -> str | None:
        """Return the URL of the next page of a list; None if a parameter is None."""
        return None if None in query.values() else self.here(**query)

    def show(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page.

        Args:
            values: the variables of the template; a missing one is an error.
        """
        return self.console.show(template, self, status=status, **values)

    def go(self, address: str, notice: str = "") -> Response:
        """Redirect the browser after a form was processed; the next page shows ``notice``."""
        self._change(lambda session: replace(session, notice=notice))
        return RedirectResponse(address, 303)

    def narrow(self, narrowing: Narrowing) -> None:
        """Narrow the view of this orchestrator for the rest of the session."""
        name = self.orchestrator
        self._change(
            lambda session: replace(session, narrowings={**session.narrowings, name: narrowing})
        )

    def take_notice(self) -> str:
        """Return the notice of the last form and clear it."""
        notice = self.session.notice
        if notice:
            self._change(lambda session: replace(session, notice=""))
        return notice

    def _change(self, change: Callable[[Session], Session]) -> None:
        self.session = self.console.sessions.change(self.cookie, change) or self.session

    def is_in(self, section: MenuEntry) -> bool:
        """Return True if this page belongs to a section."""
        own = f"{PLACE}/{self.orchestrator}/"
        return self.request.url.path.removeprefix(own).partition("/")[0] == section.path

    @property
    def sections(self) -> list[MenuEntry]:
        """The sections of the console that the principal may use."""
        return [item for item in SECTIONS if self.may(item.permission)]

    def required(self, name: str) -> str:
        """Return a field of the form. Raise InvalidInput if it is missing or empty."""
        value = self.form.get(name, "").strip()
        if not value:
            raise InvalidInput(f"{name} is required", field=name)
        return value


Work = Callable[[Visit], Response]


class ConsolePage(NamedTuple):
    """A route of the console with its handler.

    Attributes:
        path: a Starlette path, relative to ``PLACE``.
        work: returns the response; runs in a thread; may raise MemgraphError.
        method: the HTTP method; a POST must come from a page of the console.
        timed: True if the page can show its state as of ``Visit.as_of``.
        lengthy: True to exempt the page from the time limit.
    """

    path: str
    work: Work
    method: str = "GET"
    timed: bool = False
    lengthy: bool = False
