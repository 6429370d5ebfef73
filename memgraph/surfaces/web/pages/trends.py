"""Charts over time: growth, contradictions, use and health."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from memgraph.clock import iso
from memgraph.surfaces.web.requests import ConsolePage, Visit

STEPS: Final = 60
CHARTS: Final = (
    ("growth", "Growth", "Memories stored, and those that still hold"),
    ("contradictions", "Contradictions", "Open, found and decided"),
    ("use", "Use", "Answers that were handed out"),
    ("health", "Health", "Memories replaced or taken back, and open contradictions, per 100"),
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
    times = activity["times"]
    earlier = {}
    if since:
        # What was there at the beginning.
        earlier = orc.memories.activity(since=0, until=since - 1, steps=1)["series"]
    series = _charts(activity["series"], {name: sum(steps) for name, steps in earlier.items()})
    flat = {name: values for chart in series.values() for name, values in chart.items()}
    if visit.format:
        rows = [
            {"since": iso(at)} | {name: values[place] for name, values in flat.items()}
            for place, at in enumerate(times)
        ]
        return visit.listing("", lambda: rows, following=None)
    return JSONResponse({"times": [at / 1_000 for at in times], "charts": series})


def _charts(
    counts: Mapping[str, list[int]], earlier: Mapping[str, int]
) -> dict[str, dict[str, list[Any]]]:
    """Return the series of each chart; ``earlier`` counts what happened before them."""

    def so_far(name: str) -> list[int]:
        return list(accumulate(counts[name], initial=earlier.get(name, 0)))[1:]

    stored = so_far("stored")
    ended = list(map(sum, zip(so_far("superseded"), so_far("retracted"), strict=True)))
    raised, decided = so_far("contradicted"), so_far("resolved")
    still_open = [value - other for value, other in zip(raised, decided, strict=True)]
    return {
        "growth": {
            "stored": stored,
            "hold": [value - other for value, other in zip(stored, ended, strict=True)],
        },
        "contradictions": {
            "open": still_open,
            "found": counts["contradicted"],
            "decided": counts["resolved"],
        },
        "use": {"handed out": counts["handed_out"]} if "handed_out" in counts else {},
        "health": {
            "replaced or taken back": _per_hundred(ended, stored),
            "in an open contradiction": _per_hundred([2 * item for item in still_open], stored),
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
