"""One request for a page: its principal, its orchestrator, its time; and its answer."""

from __future__ import annotations

import csv
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from memgraph.clock import MS_PER_DAY, iso, parse_time
from memgraph.errors import InvalidInput
from memgraph.model.access import Narrowing, Permission, Principal
from memgraph.operations.orchestrator import Orchestrator
from memgraph.service.sanitizer import without_root
from memgraph.surfaces.asgi import ENTERED
from memgraph.surfaces.web.render import plain_json
from memgraph.surfaces.web.sessions import PLACE, Session
from memgraph.text.dates import periods

if TYPE_CHECKING:
    from memgraph.model.influence import SourceLines
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
    MenuEntry("trends", "Trends"),
    MenuEntry("why", "Why", Permission.AUDIT),
    MenuEntry("stale", "Stale", Permission.AUDIT),
    MenuEntry("receipts", "Receipts", Permission.AUDIT),
    MenuEntry("health", "Health", Permission.AUDIT),
    MenuEntry("ingest", "Files"),
    MenuEntry("jobs", "Jobs"),
)


AS_OF: Final = "as_of"
VISIT: Final = "memgraph.console.visit"
"""The scope key of a request's ``Visit``, for the error page."""
MAX_TIME_CHARS: Final = 40
MAX_QUERY_CHARS: Final = 1_000
FORMATS: Final = ("csv", "json")
MOST_ROWS: Final = 500
"""Rows of a list that is downloaded; its next page has an address of its own."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def moment_of(text: str, now_ms: int, *, ends: bool = False) -> int:
    """Return the time that a text names, milliseconds: ISO 8601, ``now``, or words.

    Args:
        text: such as ``yesterday``, ``last week``, ``3 days ago`` or ``May 2026``.
        ends: the end of the named days, else their beginning; never after now.

    Raises:
        InvalidInput: it names no time.
    """
    if text.strip().lower() == "now":
        return now_ms
    try:
        moment = parse_time(text)
    except InvalidInput:
        days = periods(text, now_ms)
        if len(days) != 1:
            raise
        day = days[0].last + 1 if ends else days[0].first
        moment = (day - _EPOCH) * MS_PER_DAY - (1 if ends else 0)
        return min(moment, now_ms)
    # A day without an hour is the whole day.
    return min(moment + MS_PER_DAY - 1, now_ms) if ends and len(text) == _DAY_CHARS else moment


_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAY_CHARS: Final = len("2026-01-01")


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV; a cell that a spreadsheet would take for a formula begins with ``'``."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in names])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, dict | list | tuple):
        value = json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


@dataclass
class Visit:
    """A request of a signed-in visitor.

    Attributes:
        cookie: the id of the session, as the browser holds it.
        form: the fields of a form, without its token; a repeated one has its last value.
        chosen: the values of the check boxes of a list.
        timed: True when the page can show its state at ``as_of``.
    """

    console: Console
    request: Request
    session: Session
    cookie: str
    principal: Principal
    form: Mapping[str, str] = field(default_factory=dict)
    chosen: tuple[str, ...] = ()
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

    def one_of(self, name: str, texts: Sequence[str]) -> str:
        """Return a parameter that has to be one of some words; the first of them by default.

        Raises:
            InvalidInput: it is none of them.
        """
        value = self.query(name) or texts[0]
        if value not in texts:
            raise InvalidInput(f"{name}: one of {', '.join(texts)}", field=name)
        return value

    @cached_property
    def as_of(self) -> int | None:
        """The time as of which a page is shown, milliseconds; None: now.

        Raises:
            InvalidInput: an invalid time.
        """
        return self.moment(AS_OF, ends=True)

    def moment(self, name: str, *, ends: bool = False) -> int | None:
        """Return a time among the parameters, milliseconds; None: it is empty.

        Raises:
            InvalidInput: an invalid time.
        """
        text = self.query(name)[:MAX_TIME_CHARS]
        return moment_of(text, self.console.now_ms(), ends=ends) if text else None

    def may(self, permission: Permission) -> bool:
        """Return True when the principal has a permission; for what a page shows, not for what it
        does.
        """
        return permission in self.principal.permissions

    @property
    def is_auditor(self) -> bool:
        """True when the principal may audit."""
        return self.may(Permission.AUDIT)

    @property
    def may_decide(self) -> bool:
        """True when the principal may write, and the page shows the present."""
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
        request = {AS_OF: iso(self.as_of)} if self.as_of is not None else {}
        request |= query
        kept_fields = {
            name: value for name, value in request.items() if value not in (None, "", ())
        }
        path = "/".join(quote(item, safe="") for item in (self.orchestrator, *parts))
        tail = "" if parts else "/"
        return f"{PLACE}/{path}{tail}" + (
            f"?{urlencode(kept_fields, doseq=True)}" if kept_fields else ""
        )

    def here(self, **query: Any) -> str:
        """Return the address of this page with some parameters changed; None removes one."""
        inputs = self.request.query_params.multi_items()
        target = [item for item in inputs if item[0] not in query] + list(query.items())
        kept_rows = [(name, value) for name, value in target if value not in (None, "")]
        return self.request.url.path + (f"?{urlencode(kept_rows)}" if kept_rows else "")

    @property
    def data_address(self) -> str:
        """The address of what this page's script asks for first."""
        query = self.request.url.query
        return f"{self.request.url.path}/data" + (f"?{query}" if query else "")

    def show(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page.

        Args:
            values: the names in its template; a missing name is an error.
        """
        return self.console.show(template, self, status=status, **values)

    @property
    def format(self) -> str:
        """The format in which a list is to be downloaded; empty: it is a page."""
        name = self.query("format")
        return name if name in FORMATS else ""

    def size(self, usual: int) -> int:
        """Return how many rows a list has: ``usual`` on a page, more in a download."""
        return MOST_ROWS if self.format else usual

    def listing(
        self,
        template: str,
        rows: Callable[[], Sequence[Mapping[str, Any]]],
        *,
        following: Mapping[str, str | None] | None = None,
        **values: Any,
    ) -> Response:
        """Return a list as a page, or as a file when the address asks for one.

        Args:
            rows: of the file.
            following: the parameters of the next page, whose address a file has in its ``Link``
                header; None, or one that is None: this is the last page.
        """
        more = following is not None and None not in following.values()
        next_page = self.here(**following) if following and more else None
        if not self.format:
            return self.show(template, following=next_page, **values)
        shown = without_root(list(rows()), self.gate.service.root)
        body: str = as_csv(shown) if self.format == "csv" else plain_json({"rows": shown})
        name = f"{self.request.url.path.rpartition('/')[2]}.{self.format}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        if next_page:
            headers["Link"] = f'<{next_page}>; rel="next"'
        kind = "text/csv" if self.format == "csv" else "application/json"
        return Response(body, media_type=kind, headers=headers)

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
        return [item for item in SECTIONS if self.may(item.permission)]

    def required(self, name: str) -> str:
        """Return a field of the form. Raises InvalidInput: it is empty or missing."""
        value = self.form.get(name, "").strip()
        if not value:
            raise InvalidInput(f"{name} is required", field=name)
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
