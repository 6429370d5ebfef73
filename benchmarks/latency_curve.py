"""The curve of ``memgraph bench latency``: times against sizes, as PNG and SVG.

The same figures give the same SVG, byte for byte: no date, fixed ids, and letters as outlines of
matplotlib's own font.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import latency_targets
from memgraph.errors import ExtraMissing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "latency"
_LINES = (
    ("recall p95", "recall", "p95", "#b5443a", "^"),
    ("recall p50", "recall", "p50", "#1f5fa8", "o"),
    ("plain SQL p50", "raw_recall", "p50", "#6b6b6b", "s"),
)
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "memgraph",
    "svg.fonttype": "path",
    "font.family": ["DejaVu Sans"],
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def require_matplotlib() -> None:
    """Raises ExtraMissing: there is nothing to draw with."""
    if find_spec("matplotlib") is None:
        raise ExtraMissing.of("drawing needs matplotlib", extra="pictures", package="matplotlib")


def draw(found: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw what ``latency.run`` has measured; gives the files, PNG first.

    Raises:
        ExtraMissing: matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(7.2, 4.4), layout="constrained")
        _fill(figure.add_subplot(), found["sizes"])
        png, svg = folder / f"{NAME}.png", folder / f"{NAME}.svg"
        figure.savefig(png, dpi=150, metadata={"Software": None})
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
    return [png, svg]


def _fill(axes: Axes, figures: Mapping[str, Mapping[str, Any]]) -> None:
    sizes = sorted(int(each) for each in figures)
    for name, key, share, color, marker in _LINES:
        times = [figures[str(size)][key][share] for size in sizes]
        axes.plot(sizes, times, label=name, linewidth=1.8, color=color, marker=marker)
        axes.annotate(
            f"{times[-1]:.3g} ms",
            (sizes[-1], times[-1]),
            xytext=(7, -3),
            textcoords="offset points",
            fontsize=8,
            color=color,
        )
    _targets(axes, [size for size in sizes if size in latency_targets.SIZES], figures)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.margins(x=0.12)
    axes.set_xlabel("memories")
    axes.set_ylabel("milliseconds")
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="upper left")


def _targets(axes: Axes, sizes: Sequence[int], figures: Mapping[str, Mapping[str, Any]]) -> None:
    """What recall may take at these sizes: its p95, and its p50 as a share of plain SQL."""
    [share] = [each for each in latency_targets.TARGETS if each.figure == "recall_ratio"]
    rows = (
        ("target of p95", latency_targets.RECALL_P95.bound, "#b5443a"),
        (
            "target of p50",
            lambda size: (share.bound(size) or 0.0) * figures[str(size)]["raw_recall"]["p50"],
            "#1f5fa8",
        ),
    )
    for name, bound, color in rows:
        if sizes:
            axes.scatter(
                sizes,
                [bound(size) or 0.0 for size in sizes],
                label=name,
                marker="_",
                s=500,
                linewidths=1.4,
                color=color,
                alpha=0.6,
            )
