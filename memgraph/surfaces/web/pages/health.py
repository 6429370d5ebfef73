"""The health of a store: rates of duplicates, contradictions, stale and unsourced memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from memgraph.model.access import Measure, Permission
from memgraph.surfaces.web.requests import ConsolePage, Visit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memgraph.model.access import StoreHealth

EXAMPLES: Final = 5
MEANS: Final[Mapping[Measure, str]] = {
    Measure.DUPLICATE: "say word for word what another one says",
    Measure.NEAR_DUPLICATE: "say nearly what another one says",
    Measure.CONTRADICTION: "are in an open contradiction",
    Measure.STALE: "stand on what was replaced or taken back",
    Measure.UNSOURCED: "come from nobody knows where",
    Measure.ORPHAN: "are joined to nothing",
    Measure.UNEMBEDDED: "have no vector yet, so that no search by meaning finds them",
    Measure.ECHO: "say only what had been handed out before they were stored",
}
"""The meaning of each measure."""


def health(visit: Visit) -> Response:
    """Show what can be measured; nothing is until it is requested."""
    visit.enter(Permission.AUDIT)
    return _page(visit, None)


def measure(visit: Visit) -> Response:
    """Show all rates, without limits. A large store takes seconds, so few run at a time."""
    orc = visit.enter(Permission.AUDIT)
    with visit.console.lengthy():
        return _page(visit, orc.audit(examples=EXAMPLES))


def _page(visit: Visit, found: StoreHealth | None) -> Response:
    return visit.show("health.html", found=found, means=MEANS)


PAGES: Final = (
    ConsolePage("/{orchestrator}/health", health),
    ConsolePage("/{orchestrator}/health", measure, "POST", lengthy=True),
)
