"""Charts over time: growth, contradictions, use and health."""

from __future__ import annotations

from collections.abc import Mapping
from operator import sub
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from memgraph.clock import iso
from memgraph.surfaces.web.requests import ConsolePage, Visit

STEPS: Final = 60
CHARTS: Final = (
    ("growth", "Growth", "Memories stored, and active ones"),
    ("contradictions", "Contradictions", "Open, raised and decided"),
    ("use", "Use", "Answers handed out to agents"),
    (
        "health",
        "Health",
        "Superseded and retracted memories, and memories in open contradictions, per 100",
    ),
)


def trends(visit: Visit) -> Response:
    """Show the page; its script requests the numbers. The same numbers are in a table."""
    visit.enter()
    query = visit.request.url.query
    data = f"{visit.request.url.path}/data" + (f"?{query}" if query else "")
    return visit.show("trends.html", charts=CHARTS, data_address=data)


def data(visit: Visit) -> Response:
    """Return the series of each chart, or with ``format`` the table of all of them."""
    orc = visit.enter()
    since, until = visit.moment("since"), visit.moment("until", ends=True)
    activity = orc.memories.activity(since=since, until=until, steps=STEPS)
    times, series = activity["times"], _charts(activity["series"])
    flat = {name: values for chart in series.values() for name, values in chart.items()}
    if visit.format:
        rows = [
            {"since": iso(at)} | {name: values[place] for name, values in flat.items()}
            for place, at in enumerate(times)
        ]
        return visit.listing("", lambda: rows, following=None)
    return JSONResponse({"times": [at / 1_000 for at in times], "charts": series})


def _charts(series: Mapping[str, list[int]]) -> dict[str, dict[str, list[Any]]]:
    """Return the lines of each chart."""
    total, held, still_open = series["total"], series["held"], series["open"]
    return {
        "growth": {"stored": total, "active": held},
        "contradictions": {
            "open": still_open,
            "raised": series["contradicted"],
            "decided": series["resolved"],
        },
        "use": {"answers": series["handed_out"]} if "handed_out" in series else {},
        "health": {
            "superseded or retracted": _per_hundred(list(map(sub, total, held)), total),
            "in an open contradiction": _per_hundred([2 * item for item in still_open], total),
        },
    }


def _per_hundred(parts: list[int], wholes: list[int]) -> list[float]:
    return [
        round(100 * part / whole, 2) if whole else 0.0
        for part, whole in zip(parts, wholes, strict=True)
    ]


PAGES: Final = (
    ConsolePage("/{orchestrator}/trends", trends),
    ConsolePage("/{orchestrator}/trends/data", data),
)
