"""Paper for pictures: canvas, page, labels."""

from __future__ import annotations

import html
import io
import math
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from memgraph.errors import ExtraMissing, InvalidInput
from memgraph.model.graph import Subgraph
from memgraph.model.values import Memory
from memgraph.rules.bulletin import flatten

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FORMS: Final = ("svg", "png", "html")
DPI: Final = 150
INK, MUTED, GRID = "#1c2733", "#6b7682", "#dfe4e8"
STATUS_COLORS: Final = {"active": "#2c7a4b", "superseded": "#b7791f", "retracted": "#b5443a"}
TYPE_COLORS: Final = {
    "Fact": "#1f5fa8",
    "Preference": "#8a4fa3",
    "Decision": "#b5443a",
    "Identity": "#2a7f86",
    "Event": "#b7791f",
    "Observation": "#5c6f82",
    "Goal": "#2c7a4b",
    "Todo": "#a1663a",
}
LineStyle = Literal["-", "--", "-.", ":"]
EDGE_STYLES: Final[dict[str, tuple[str, LineStyle]]] = {
    "RelatedTo": ("#9aa5b0", "-"),
    "Updates": ("#2c7a4b", "-"),
    "Contradicts": ("#b5443a", "--"),
    "CausedBy": ("#1f5fa8", "-"),
    "PartOf": ("#8a4fa3", "-"),
}
DECIDED_STYLE: Final[LineStyle] = ":"
DERIVED_STYLE: Final[tuple[str, LineStyle]] = (MUTED, "-.")
OWN_FONT: Final = "DejaVu Sans"
FURTHER_FONTS: Final = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "PingFang SC",
    "Hiragino Sans",
    "Apple SD Gothic Neo",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Arial Unicode MS",
    "Unifont",
)
_SETTINGS: Final[dict[Any, Any]] = {
    "svg.hashsalt": "memgraph",
    "svg.fonttype": "path",
    "font.size": 9.0,
    "text.color": INK,
    "text.parse_math": False,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
}

Fill = Callable[["Figure"], None]


def form_of(path: Path) -> str:
    """Return the format of a file, by its extension.

    Raises:
        InvalidInput: none of ``FORMS``.
    """
    form = path.suffix.removeprefix(".").casefold()
    if form not in FORMS:
        existing = ", ".join(f".{item}" for item in FORMS)
        raise InvalidInput(f"a picture's name ends with one of {existing}", field="output")
    return form


def require_matplotlib() -> None:
    """Raise ExtraMissing when matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise ExtraMissing.of("drawing needs matplotlib", extra="pictures", package="matplotlib")


def families() -> list[str]:
    """Return the fonts to search for letters, in order."""
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return [OWN_FONT, *(item for item in FURTHER_FONTS if item in installed)]


def drawn(fill: Fill, *, size: tuple[float, float], form: str) -> bytes:
    """Return a drawing as the content of a file.

    Args:
        fill: draws on an empty figure.
        size: width and height in inches.
        form: ``svg`` or ``png``.

    Raises:
        ExtraMissing: matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    made = io.BytesIO()
    described: dict[str, Any] = {"Software": None}
    if form == "svg":
        described = {"Date": None, "Creator": None}
    with mpl.rc_context(_SETTINGS | {"font.family": families()}), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from font", category=UserWarning
        )
        figure = Figure(figsize=size, layout="constrained")
        fill(figure)
        figure.savefig(made, format=form, dpi=DPI, metadata=described)
    return made.getvalue()


_STYLE: Final = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2733; --line: #dfe4e8; }
@media (prefers-color-scheme: dark) { :root { --paper: #14191f; --ink: #e6eaee; --line: #36414c; } }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
figure { margin: 0; padding: 1rem; background: #fff; border: 1px solid var(--line);
  border-radius: 6px; overflow-x: auto; }
svg { display: block; max-width: 100%; height: auto; margin: auto; }
table { width: 100%; margin-top: 1.5rem; border-collapse: collapse; }
caption { padding: .5rem 0; text-align: left; font-weight: 600; }
th, td { padding: .3rem .6rem .3rem 0; text-align: left; vertical-align: top;
  border-top: 1px solid var(--line); overflow-wrap: anywhere; }
"""


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of texts; every cell is shown as it is."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]


def page(
    title: str, svg: bytes, listings: Sequence[TextTable], *, notes: Sequence[str] = ()
) -> str:
    """Return self-contained HTML: no script, no font, no other file. Texts are escaped."""
    drawing = svg.decode()
    # What comes before the element belongs to a file of its own.
    drawing = drawing[drawing.index("<svg") :]
    shown_rows = html.escape(title)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta http-equiv="Content-Security-Policy"'
            " content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{shown_rows}</title><style>{_STYLE}</style></head>",
            f'<body><main><h1>{shown_rows}</h1><figure role="img" aria-label="{shown_rows}">',
            drawing,
            "</figure>",
            *(f"<p>{html.escape(note)}</p>" for note in notes),
            *(_table(listing) for listing in listings if listing.rows),
            "</main></body></html>\n",
        ]
    )


def _table(listing: TextTable) -> str:
    head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in listing.columns)
    rows = "\n".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>"
        for row in listing.rows
    )
    caption = html.escape(listing.caption)
    return (
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>\n{rows}\n</tbody></table>"
    )


LABEL_CHARS: Final = 48
LABEL_WIDTH: Final = 24
MARGIN: Final = 0.12
"""The margin around the dots, as a part of their extent."""
GAP_POINTS: Final = 9.0
# In inches: of a letter, of a line, of half a dot.
_LETTER, _LINE, _DOT = 0.055, 0.12, 0.08
_GAP: Final = GAP_POINTS / 72

Places = Mapping[str, tuple[float, float]]


class LabelSide(NamedTuple):
    """A direction from a dot, and the alignment of a text there."""

    x: int
    y: int
    horizontal: Literal["left", "center", "right"]
    vertical: Literal["bottom", "center", "top"]


# The earlier one where two are as good.
SIDES: Final = (
    LabelSide(0, -1, "center", "top"),
    LabelSide(0, 1, "center", "bottom"),
    LabelSide(1, 0, "left", "center"),
    LabelSide(-1, 0, "right", "center"),
    LabelSide(1, 1, "left", "bottom"),
    LabelSide(-1, -1, "right", "top"),
    LabelSide(1, -1, "left", "top"),
    LabelSide(-1, 1, "right", "bottom"),
)


@dataclass(frozen=True, slots=True)
class NodeLabel:
    """The text of a memory, and the side of its dot that it is on."""

    memory_id: str
    text: str
    side: LabelSide


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


def labelled(graph: Subgraph, where: Places, size: tuple[float, float]) -> list[NodeLabel]:
    """Return the memories that have room for a label, with its position; the first ones first.

    A label is put where the fewest edges of its dot lead.

    Args:
        where: in a square from 0 to 1.
        size: of the picture, inches.
    """
    at = {
        key: tuple(v * length / (1 + 2 * MARGIN) for v, length in zip(place, size, strict=True))
        for key, place in where.items()
    }
    leading = _leading(graph, at)
    dots = {key: Box(x - _DOT, y - _DOT, x + _DOT, y + _DOT) for key, (x, y) in at.items()}
    count: list[Box] = []
    results = []
    for node in graph.nodes:
        text, mine = label(node), dots[node.memory_id]
        for side in _sides(leading[node.memory_id]):
            box = box_of(text, at[node.memory_id], side)
            others = (dot for dot in dots.values() if dot != mine)
            if not any(map(box.meets, count)) and not any(map(box.meets, others)):
                count.append(box)
                results.append(NodeLabel(node.memory_id, text, side))
                break
    return results


def label(node: Memory) -> str:
    """Return the beginning of a memory's text, over two lines."""
    text = flatten(node.summary or node.content)
    return "\n".join(
        textwrap.wrap(textwrap.shorten(text, LABEL_CHARS, placeholder="…"), LABEL_WIDTH)
    )


def box_of(text: str, at: tuple[float, ...], side: LabelSide) -> Box:
    """Return the approximate extent of a label."""
    lines = text.splitlines() or [""]
    width, height = max(map(len, lines)) * _LETTER, len(lines) * _LINE
    remaining = at[0] + side.x * _GAP - {"left": 0.0, "center": width / 2, "right": width}[side[2]]
    bottom = at[1] + side.y * _GAP - {"bottom": 0.0, "center": height / 2, "top": height}[side[3]]
    return Box(remaining, bottom, remaining + width, bottom + height)


def _leading(
    graph: Subgraph, at: Mapping[str, tuple[float, ...]]
) -> dict[str, list[tuple[float, float]]]:
    """Return the directions of each dot's edges, as vectors of length 1."""
    results: dict[str, list[tuple[float, float]]] = {node.memory_id: [] for node in graph.nodes}
    lines = [(edge.from_id, edge.to_id) for edge in graph.edges]
    lines += [
        (derivation.memory_id, derivation.derived_from_id) for derivation in graph.derivations
    ]
    for value, other in lines:
        (x, y), (to_x, to_y) = at[value], at[other]
        length = math.hypot(to_x - x, to_y - y) or 1.0
        step = ((to_x - x) / length, (to_y - y) / length)
        results[value].append(step)
        results[other].append((-step[0], -step[1]))
    return results


def _sides(leading: Iterable[tuple[float, float]]) -> list[LabelSide]:
    """Return the sides, those towards which the fewest edges lead first."""
    steps = list(leading)

    def crossed(side: LabelSide) -> float:
        length = math.hypot(side.x, side.y)
        return round(sum(max((side.x * x + side.y * y) / length, 0.0) for x, y in steps), 6)

    return sorted(SIDES, key=crossed)
