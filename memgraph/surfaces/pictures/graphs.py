"""A subgraph as a picture: memories as dots by type, edges as arrows by type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.graph import Subgraph
from memgraph.model.values import Edge, Memory
from memgraph.rules.bulletin import flatten
from memgraph.surfaces.pictures.canvas import (
    DECIDED_STYLE,
    DERIVED_STYLE,
    EDGE_STYLES,
    GAP_POINTS,
    INK,
    MARGIN,
    TYPE_COLORS,
    LineStyle,
    Places,
    TextTable,
    drawn,
    labelled,
    page,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

MAX_DRAWN: Final = 400
"""The maximum number of nodes: more are unreadable."""
DERIVED: Final = "DerivedFrom"
"""The name of the relation from a memory to its evidence; not a stored edge."""
_SEED: Final = 7


def picture(graph: Subgraph, form: str, *, title: str) -> bytes:
    """Return the subgraph as ``svg``, ``png`` or ``html``; the same graph gives the same picture.

    Raises:
        ExtraMissing: matplotlib is not installed.
    """
    inches = 6.0 + min(len(graph.nodes), MAX_DRAWN) / 20
    size = (inches * 1.25, inches)

    def fill(figure: Figure) -> None:
        _draw(figure.add_subplot(), graph, size)

    if form != "html":
        return drawn(fill, size=size, form=form)
    notes = [f"cut: {', '.join(graph.cut_reasons)}"] if graph.cut else []
    return page(title, drawn(fill, size=size, form="svg"), listings(graph), notes=notes).encode()


def listings(graph: Subgraph) -> tuple[TextTable, ...]:
    """Return the content of the picture in words."""
    memories = [
        (node.memory_id, node.type.value, node.shown_status.value, _says(node))
        for node in graph.nodes
    ]
    edges = [
        (edge.from_id, edge.edge_type.value, edge.to_id, flatten(edge.reason or ""))
        for edge in graph.edges
    ]
    edges += [
        (derivation.memory_id, DERIVED, derivation.derived_from_id, "")
        for derivation in graph.derivations
    ]
    return (
        TextTable("Memories", ("id", "type", "status", "summary"), memories),
        TextTable("Edges", ("from", "type", "to", "reason"), edges),
    )


def _says(memory: Memory) -> str:
    return flatten(memory.summary or memory.content)


def places(graph: Subgraph) -> Places:
    """Return the position of each memory by a force layout, the same on every call."""
    import networkx as nx

    plain: nx.Graph[str] = nx.Graph()
    plain.add_nodes_from(node.memory_id for node in graph.nodes)
    plain.add_edges_from((edge.from_id, edge.to_id) for edge in graph.edges)
    plain.add_edges_from(
        (derivation.memory_id, derivation.derived_from_id) for derivation in graph.derivations
    )
    apart = 2.4 / max(len(graph.nodes), 1) ** 0.5
    result = nx.spring_layout(plain, k=apart, iterations=100, seed=_SEED)
    return _stretched({key: (float(x), float(y)) for key, (x, y) in result.items()})


def _stretched(where: Places) -> Places:
    """Return the positions scaled to a square from 0 to 1."""
    spans = []
    for axis in range(2):
        values = [place[axis] for place in where.values()]
        low, high = min(values, default=0.0), max(values, default=1.0)
        spans.append((low, (high - low) or 1.0))
    (left, width), (bottom, height) = spans
    return {key: ((x - left) / width, (y - bottom) / height) for key, (x, y) in where.items()}


def _draw(axes: Axes, graph: Subgraph, size: tuple[float, float]) -> None:
    axes.set_axis_off()
    if not graph.nodes:
        axes.text(0.5, 0.5, "no memory to show", ha="center", va="center")
        return
    where = places(graph)
    for edge in graph.edges:
        color, style = EDGE_STYLES[edge.edge_type.value]
        line = _Line(color, DECIDED_STYLE if _decided(edge) else style, 0.6 + edge.weight)
        _draw_line(axes, where[edge.from_id], where[edge.to_id], line)
    for pair in graph.derivations:
        line = _Line(*DERIVED_STYLE, 1.1)
        _draw_line(axes, where[pair.memory_id], where[pair.derived_from_id], line)
    seeds = frozenset(graph.seeds)
    for node in graph.nodes:
        _draw_node(axes, node, where[node.memory_id], is_seed=node.memory_id in seeds)
    for memory in labelled(graph, where, size):
        axes.annotate(
            memory.text,
            where[memory.memory_id],
            xytext=(memory.side.x * GAP_POINTS, memory.side.y * GAP_POINTS),
            textcoords="offset points",
            ha=memory.side.horizontal,
            va=memory.side.vertical,
            fontsize=6.5,
            # An edge that runs under it leaves it readable.
            bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.6},
        )
    axes.margins(MARGIN)
    _legend(axes, graph)


def _draw_node(axes: Axes, node: Memory, at: tuple[float, float], *, is_seed: bool) -> None:
    color = TYPE_COLORS[node.type.value]
    stands = node.status is MemoryStatus.ACTIVE
    axes.plot(
        *at,
        marker="X" if node.status is MemoryStatus.RETRACTED else "o",
        markersize=11 if is_seed else 8,
        markerfacecolor=color if stands else "white",
        markeredgecolor=INK if is_seed else color,
        markeredgewidth=1.6 if is_seed or not stands else 0.8,
        zorder=3,
    )


class _Line(NamedTuple):
    color: str
    style: LineStyle
    width: float


def _decided(edge: Edge) -> bool:
    return edge.resolved_at is not None


def _draw_line(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], line: _Line
) -> None:
    axes.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": "-|>",
            "color": line.color,
            "linestyle": line.style,
            "linewidth": line.width,
            "shrinkA": 6,
            "shrinkB": 6,
            # Two edges between the same two do not lie on one another.
            "connectionstyle": "arc3,rad=0.08",
        },
        zorder=1,
    )


def _legend(axes: Axes, graph: Subgraph) -> None:
    from matplotlib.lines import Line2D

    nodes = graph.nodes
    types = sorted({node.type.value for node in nodes})
    handles = [
        Line2D([], [], marker="o", linestyle="", color=TYPE_COLORS[type_], label=type_)
        for type_ in types
    ]
    if any(node.status is MemoryStatus.SUPERSEDED for node in nodes):
        handles.append(_hollow("o", "superseded"))
    removed = {item.shown_status.value for item in nodes if item.status is MemoryStatus.RETRACTED}
    handles += [_hollow("X", item) for item in sorted(removed)]
    for text, color, style in sorted(_kinds(graph)):
        handles.append(Line2D([], [], color=color, linestyle=style, label=text))
    axes.legend(
        handles=handles, frameon=False, fontsize=7, loc="lower left", bbox_to_anchor=(0, 1), ncols=6
    )


def _kinds(graph: Subgraph) -> set[tuple[str, str, LineStyle]]:
    """Return the legend of the lines: a text, its colour and its style."""
    result: set[tuple[str, str, LineStyle]] = set()
    for edge in graph.edges:
        text = edge.edge_type.value
        color, style = EDGE_STYLES[text]
        if _decided(edge):
            result.add((f"{text}, decided", color, DECIDED_STYLE))
        else:
            is_open = edge.edge_type is EdgeType.CONTRADICTS
            result.add((f"{text}, open" if is_open else text, color, style))
    return result | ({(DERIVED, *DERIVED_STYLE)} if graph.derivations else set())


def _hollow(marker: str, text: str) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D(
        [],
        [],
        marker=marker,
        linestyle="",
        markerfacecolor="white",
        markeredgecolor=INK,
        label=text,
    )
