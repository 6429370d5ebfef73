"""Placement of a graph's labels: beside their dots, without overlaps."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from memgraph.model.graph import Subgraph
from memgraph.model.values import Memory
from memgraph.rules.bulletin import flatten

LABEL_CHARS: Final = 48
LABEL_WIDTH: Final = 24
MARGIN: Final = 0.12
"""The margin around the dots, as a part of their extent."""
GAP_POINTS: Final = 9.0
# In inches: of a letter, of a line, of half a dot.
_LETTER, _LINE, _DOT = 0.055, 0.12, 0.08
_GAP: Final = GAP_POINTS / 72

Places = Mapping[str, tuple[float, float]]


class Side(NamedTuple):
    """A direction from a dot, and the alignment of a text there."""

    x: int
    y: int
    horizontal: Literal["left", "center", "right"]
    vertical: Literal["bottom", "center", "top"]


# The earlier one where two are as good.
SIDES: Final = (
    Side(0, -1, "center", "top"),
    Side(0, 1, "center", "bottom"),
    Side(1, 0, "left", "center"),
    Side(-1, 0, "right", "center"),
    Side(1, 1, "left", "bottom"),
    Side(-1, -1, "right", "top"),
    Side(1, -1, "left", "top"),
    Side(-1, 1, "right", "bottom"),
)


@dataclass(frozen=True, slots=True)
class Label:
    """The text of a memory, and the side of its dot that it is on."""

    memory_id: str
    text: str
    side: Side


class Box(NamedTuple):
    """A rectangle, inches."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: Box) -> bool:
        """Return True when the two have a point in common."""
        across = self.left <= other.right and other.left <= self.right
        return across and self.bottom <= other.top and other.bottom <= self.top


def labelled(graph: Subgraph, where: Places, size: tuple[float, float]) -> list[Label]:
    """Return the memories that have room for a label, with its position; the first ones first.

    A label is put where the fewest edges of its dot lead.

    Args:
        where: in a square from 0 to 1.
        size: of the picture, inches.
    """
    at = {
        one: tuple(v * length / (1 + 2 * MARGIN) for v, length in zip(place, size, strict=True))
        for one, place in where.items()
    }
    leading = _leading(graph, at)
    dots = {one: Box(x - _DOT, y - _DOT, x + _DOT, y + _DOT) for one, (x, y) in at.items()}
    taken: list[Box] = []
    found = []
    for node in graph.nodes:
        text, mine = label(node), dots[node.memory_id]
        for side in _sides(leading[node.memory_id]):
            box = box_of(text, at[node.memory_id], side)
            others = (dot for dot in dots.values() if dot != mine)
            if not any(map(box.meets, taken)) and not any(map(box.meets, others)):
                taken.append(box)
                found.append(Label(node.memory_id, text, side))
                break
    return found


def label(node: Memory) -> str:
    """Return the beginning of a memory's text, over two lines."""
    text = flatten(node.summary or node.content)
    return "\n".join(
        textwrap.wrap(textwrap.shorten(text, LABEL_CHARS, placeholder="…"), LABEL_WIDTH)
    )


def box_of(text: str, at: tuple[float, ...], side: Side) -> Box:
    """Return the approximate extent of a label."""
    lines = text.splitlines() or [""]
    width, height = max(map(len, lines)) * _LETTER, len(lines) * _LINE
    left = at[0] + side.x * _GAP - {"left": 0.0, "center": width / 2, "right": width}[side[2]]
    bottom = at[1] + side.y * _GAP - {"bottom": 0.0, "center": height / 2, "top": height}[side[3]]
    return Box(left, bottom, left + width, bottom + height)


def _leading(
    graph: Subgraph, at: Mapping[str, tuple[float, ...]]
) -> dict[str, list[tuple[float, float]]]:
    """Return the directions of each dot's edges, as vectors of length 1."""
    found: dict[str, list[tuple[float, float]]] = {node.memory_id: [] for node in graph.nodes}
    lines = [(edge.from_id, edge.to_id) for edge in graph.edges]
    lines += [(each.memory_id, each.derived_from_id) for each in graph.derivations]
    for one, other in lines:
        (x, y), (to_x, to_y) = at[one], at[other]
        length = math.hypot(to_x - x, to_y - y) or 1.0
        step = ((to_x - x) / length, (to_y - y) / length)
        found[one].append(step)
        found[other].append((-step[0], -step[1]))
    return found


def _sides(leading: Iterable[tuple[float, float]]) -> list[Side]:
    """Return the sides, those towards which the fewest edges lead first."""
    steps = list(leading)

    def crossed(side: Side) -> float:
        length = math.hypot(side.x, side.y)
        return round(sum(max((side.x * x + side.y * y) / length, 0.0) for x, y in steps), 6)

    return sorted(SIDES, key=crossed)
