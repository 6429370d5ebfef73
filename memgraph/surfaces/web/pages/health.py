"""The health of a store: rates of duplicates, contradictions, stale and unsourced memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from memgraph.model.access import HealthMetric, Permission
from memgraph.surfaces.web.requests import ConsolePage, Visit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memgraph.model.access import StoreHealth

EXAMPLES: Final = 5
MEANS: Final[Mapping[HealthMetric, str]] = {
    HealthMetric.DUPLICATE: "say word for word what another one says",
    HealthMetric.NEAR_DUPLICATE: "say nearly what another one says",
    HealthMetric.CONTRADICTION: "are in an open contradiction",
    HealthMetric.STALE: "stand on what was replaced or taken back",
    HealthMetric.UNSOURCED: "come from nobody knows where",
    HealthMetric.ORPHAN: "are joined to nothing",
    HealthMetric.UNEMBEDDED: "have no vector yet, so that no search by meaning finds them",
    HealthMetric.ECHO: "say only what had been handed out before they were stored",
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
        return _page(visit, orc.audit.measure(examples=EXAMPLES))


def _page(visit: Visit, health: StoreHealth | None) -> Response:
    return visit.show("health.html", found=health, means=MEANS)


PAGES: Final = (
    ConsolePage("/{orchestrator}/health", health),
    ConsolePage("/{orchestrator}/health", measure, "POST", lengthy=True),
)
