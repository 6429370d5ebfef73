"""Render graphs and timelines as self-contained HTML pages, drawn by the console's scripts.

A page contains its scripts, styles and data. It can be opened from disk, and loads nothing.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from memgraph.clock import MS_PER_DAY, iso
from memgraph.errors import InvalidInput
from memgraph.model.enums import EdgeType, MemoryType
from memgraph.model.graph import History, Subgraph
from memgraph.model.influence import Impact
from memgraph.model.values import Memory, StatusPeriod
from memgraph.rules.bulletin import flatten
from memgraph.rules.decay import effective_confidence

MAX_DRAWN: Final = 400
"""The maximum number of memories in a graph; more would be unreadable."""
DERIVED: Final = "DerivedFrom"
"""The name of the relation from a memory to its evidence; not a stored edge."""
LABEL_CHARS: Final = 48
CURVE_POINTS: Final = 200
"""The points per period; fewer if the total exceeds ``MAX_POINTS``."""
MAX_POINTS: Final = 4_000
NO_ACCESS: Final = frozenset({"bulletin", "on_diagnostics"})
"""Purposes of receipts that do not count as an access; nor does a recall as of a past time."""
_STATIC: Final = Path(__file__).parent / "web" / "static"
_TYPES: Final = [item.value for item in MemoryType]
_GRAPH: Final = ("vendor/cytoscape-*.min.js", "shared.js", "layout.js", "graph-style.js")
_CHART: Final = ("vendor/uPlot-*.iife.min.js", "shared.js")
_STYLES: Final = ("console.css", "explorers.css", "vendor/uPlot-*.min.css")
_STYLE: Final = """
main { max-width: 100rem; }
main > .scroll { margin-top: 1.5rem; }
.scroll td { white-space: nowrap; }
.scroll td:last-child { white-space: normal; overflow-wrap: anywhere; min-width: 12rem; }
.mark { border-radius: 0; border: 0; opacity: .5; }
.chart-frame { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem;
  padding: .75rem; }
"""


def require_html(path: Path) -> None:
    """Raise InvalidInput unless the file name of a picture ends with ``.html``."""
    if path.suffix.casefold() != ".html":
        raise InvalidInput("the file name must end with .html", field="output")


def graph_page(graph: Subgraph, *, title: str) -> str:
    """Return the HTML page of a subgraph, with a drawing and tables of its memories and edges."""
    edges: list[dict[str, Any]] = [
        {
            "id": edge.edge_id,
            "source": edge.from_id,
            "target": edge.to_id,
            "type": edge.edge_type.value,
            "label": _edge_label(edge.edge_type, is_open=edge.resolved_at is None),
            "open": edge.edge_type is EdgeType.CONTRADICTS and edge.resolved_at is None,
            "reason": flatten(edge.reason or ""),
        }
        for edge in graph.edges
    ]
    edges += [
        {
            "id": f"derived:{pair.memory_id}:{pair.derived_from_id}",
            "source": pair.memory_id,
            "target": pair.derived_from_id,
            "type": DERIVED,
            "label": DERIVED,
            "open": False,
            "reason": "",
        }
        for pair in graph.derivations
    ]
    seeds = frozenset(graph.seeds)
    nodes = [_node(memory, is_seed=memory.memory_id in seeds) for memory in graph.nodes]
    used = {memory.type.value for memory in graph.nodes}
    legend = "".join(
        f'<span class="tick"><span class="swatch swatch-{at}"></span>{name}</span>'
        for at, name in enumerate(_TYPES, 1)
        if name in used
    )
    empty = "" if nodes else "<p>There is no memory to show.</p>"
    cut = f"<p>Incomplete: {', '.join(graph.cut_reasons)}</p>" if graph.cut else ""
    body = (
        f'{cut}{empty}<div class="explorer"><div><div class="ticks">{legend}</div>'
        '<div id="picture" class="drawing" role="img" tabindex="0"'
        ' aria-label="Drawing; the tables below it have the same content"></div></div>'
        '<section class="card" aria-live="polite"><h2>Selected</h2><div id="selected">'
        '<p class="empty">Select a memory in the drawing.</p></div></section></div>'
    )
    tables = [
        _table(
            "Memories",
            ("id", "type", "status", "summary"),
            [(node["id"], node["type"], node["status"], node["summary"]) for node in nodes],
        ),
        _table(
            "Edges",
            ("from", "type", "to", "reason"),
            [(edge["source"], edge["label"], edge["target"], edge["reason"]) for edge in edges],
        ),
    ]
    data = {"kind": "graph", "types": _TYPES, "nodes": nodes, "edges": edges}
    return _page(title, body, tables, data, _GRAPH)


def _edge_label(kind: EdgeType, *, is_open: bool) -> str:
    if kind is not EdgeType.CONTRADICTS:
        return kind.value
    return f"{kind.value}, {'open' if is_open else 'decided'}"


def _node(memory: Memory, *, is_seed: bool) -> dict[str, Any]:
    text = flatten(memory.summary or memory.content)
    return {
        "id": memory.memory_id,
        "label": text if len(text) <= LABEL_CHARS else f"{text[: LABEL_CHARS - 1]}…",
        "summary": text,
        "type": memory.type.value,
        "kind": memory.kind.value,
        "status": memory.shown_status.value,
        "confidence": memory.confidence,
        "created_at": iso(memory.created_at),
        "size": 18 + memory.importance / 5,
        "seed": is_seed,
    }


@dataclass(frozen=True, slots=True)
class ConfidencePeriod:
    """A stored confidence from ``since`` to ``until``, in milliseconds.

    Attributes:
        confidence: 0..1, before decay.
        decay_rate: the rate at that time, per day.
        idle_since: the start of the decay: the last access by then, or the creation.
    """

    since: int
    until: int
    confidence: float
    decay_rate: float
    idle_since: int

    def at(self, ms: int, exponent: float) -> float:
        """Return the effective confidence at a time; see ``rules.decay.effective_confidence``."""
        days = (ms - self.idle_since) / MS_PER_DAY
        return effective_confidence(self.confidence, self.decay_rate, days, exponent)


def confidence_periods(history: History, accesses: Iterable[int]) -> list[ConfidencePeriod]:
    """Return the periods of stored confidence; each access or change begins a new one.

    The last period ends when the history was read.

    Args:
        accesses: the known accesses in milliseconds, in any order.
    """
    created, now_ms = history.memory.created_at, history.at
    last = history.memory.last_accessed_at
    times = {created, *accesses} | (set() if last is None else {last})
    starts = sorted(time for time in times if created <= time <= now_ms)
    periods = []
    for value in history.values:
        until = now_ms if value.until is None else value.until
        inner = (time for time in starts if value.since < time < until)
        periods += [
            ConfidencePeriod(
                since=since,
                until=end,
                confidence=value.confidence,
                decay_rate=value.decay_rate,
                idle_since=starts[max(bisect_right(starts, since) - 1, 0)],
            )
            for since, end in pairwise([value.since, *inner, until])
        ]
    return periods


def accesses_of(impact: Impact) -> list[int]:
    """Return the times of deliveries that count as an access to the memory."""
    return [
        hand_out.at
        for hand_out in impact.hand_outs
        if impact.memory_id in hand_out.memory_ids
        and hand_out.purpose not in NO_ACCESS
        and hand_out.as_of is None
    ]


def confidence_page(
    periods: Sequence[ConfidencePeriod],
    statuses: Sequence[StatusPeriod],
    *,
    title: str,
    now_ms: int,
    exponent: float,
) -> str:
    """Return the HTML page of a memory's stored and decayed confidence and its statuses over time.

    Args:
        periods, statuses: in chronological order, without gaps; at least one of each.
    """
    count = max(min(CURVE_POINTS, MAX_POINTS // max(len(periods), 1)), 1)
    points = [
        (ms, period.confidence, period.at(ms, exponent))
        for period in periods
        for ms in _steps(period.since, period.until, count)
    ]
    times, stored, effective = (list(column) for column in zip(*points, strict=True))
    spans = [
        (period.status.value, period.since, period.until or max(now_ms, period.since))
        for period in statuses
    ]
    legend = "".join(
        f'<span class="tick"><span class="swatch mark" data-status="{status}"></span>'
        f"{status}</span>"
        for status in dict.fromkeys(status for status, *_ in spans)
    )
    tables = [
        _table(
            "Stored confidence",
            ("from", "until", "confidence", "decay"),
            [
                (
                    iso(item.since),
                    iso(item.until),
                    f"{item.confidence:g}",
                    f"{item.decay_rate:g} per day",
                )
                for item in periods
            ],
        ),
        _table(
            "Status",
            ("from", "until", "status", "by", "reason"),
            [
                (
                    iso(item.since),
                    "now" if item.until is None else iso(item.until),
                    item.status.value,
                    item.actor,
                    item.reason or "",
                )
                for item in statuses
            ],
        ),
    ]
    columns = [[ms / 1_000 for ms in times], stored, effective]
    data = {"kind": "confidence", "columns": columns, "spans": spans}
    return _page(title, _chart(legend), tables, data, _CHART)


def _steps(since: int, until: int, count: int) -> list[int]:
    """Return times at ``count`` equal steps, or at each millisecond, with both ends."""
    steps = max(min(until - since, count), 1)
    return [since + round((until - since) * at / steps) for at in range(steps + 1)]


@dataclass(frozen=True, slots=True)
class DrawnBulletin:
    """A delivered bulletin.

    Attributes:
        at: the first delivery, in milliseconds.
        receipts: the number of deliveries.
        memory_ids: the cited memories.
    """

    at: int
    receipts: int
    memory_ids: frozenset[str]


def bulletin_page(bulletins: Sequence[DrawnBulletin], *, title: str) -> str:
    """Return the HTML page of the changes between bulletins: kept, added and removed memories.

    Args:
        bulletins: oldest first.
    """
    counts = changes(bulletins)
    rows = [
        (iso(bulletin.at), str(bulletin.receipts), *(str(number) for number in count))
        for bulletin, count in zip(bulletins, counts, strict=True)
    ]
    table = _table("Bulletins", ("first delivered", "times", "kept", "added", "removed"), rows)
    data = {
        "kind": "bulletins",
        "times": [iso(bulletin.at) for bulletin in bulletins],
        "counts": [[count[at] for count in counts] for at in range(3)],
    }
    empty = "" if bulletins else "<p>No bulletin has been delivered yet.</p>"
    return _page(title, empty + _chart(""), [table], data, _CHART)


def changes(bulletins: Sequence[DrawnBulletin]) -> list[tuple[int, int, int]]:
    """Return (kept, added, removed) of each bulletin, compared with the one before it."""
    cited = [frozenset[str](), *(bulletin.memory_ids for bulletin in bulletins)]
    return [(len(new & old), len(new - old), len(old - new)) for old, new in pairwise(cited)]


def _chart(legend: str) -> str:
    return (
        f'<div class="ticks">{legend}</div><div id="picture" class="chart-frame" role="img"'
        ' aria-label="Chart; the tables below it have the same numbers"></div>'
    )


def _page(
    title: str,
    body: str,
    tables: Iterable[str],
    data: Mapping[str, Any],
    scripts: Sequence[str],
) -> str:
    """Return a complete HTML page; its policy allows only its own scripts, and no requests.

    Args:
        title: plain text; escaped here.
        body, tables: HTML.
        data: JSON values for the scripts; escaped here.
    """
    # Escaped so that no text can close the script element.
    values = (
        json.dumps(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    )
    sources = [_asset(name) for name in (*scripts, "picture.js")]
    hashes = " ".join(
        f"'sha256-{b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
        for source in sources
    )
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}"
    style = "".join(_asset(name) for name in _STYLES) + _STYLE
    heading = escape(title)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<title>{heading}</title><style>{style}</style></head>",
            f"<body><main><h1>{heading}</h1>",
            "<noscript><p>The drawing requires JavaScript; see the tables.</p></noscript>",
            body,
            *tables,
            "</main>",
            f'<script type="application/json" id="picture-data">{values}</script>',
            *(f"<script>{source}</script>" for source in sources),
            "</body></html>\n",
        ]
    )


def _asset(name: str) -> str:
    """Return the text of one of the console's files; ``*`` matches its version."""
    [path] = _STATIC.glob(name)
    return path.read_text(encoding="utf-8")


def _table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table of texts, or an empty string without rows."""
    lines = [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows]
    if not lines:
        return ""
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    return (
        f'<div class="scroll"><table><caption>{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{''.join(lines)}</tbody></table></div>"
    )
