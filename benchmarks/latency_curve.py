"""The curve of ``memgraph bench latency``: times against sizes, as SVG.

The same figures give the same file, byte for byte.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from benchmarks import latency_targets

NAME = "latency"
_LINES = (
    ("recall p95", "recall", "p95", "#b5443a"),
    ("recall p50", "recall", "p50", "#1f5fa8"),
    ("plain SQL p50", "raw_recall", "p50", "#6b6b6b"),
)
_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 620, 30, 385
_GRID, _INK = "#dddddd", "#1c2733"
_STEPS: Final = (1, 2, 5)
Axis = Callable[[float], float]


def draw(figures: Mapping[str, Any], folder: Path) -> Path:
    """Draw the figures of ``latency.run`` into a file of the folder; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}.svg"
    path.write_text(_svg(figures["sizes"]), encoding="utf-8")
    return path


def _svg(figures: Mapping[str, Mapping[str, Any]]) -> str:
    sizes = sorted(int(size) for size in figures)
    lines = [
        (name, color, [figures[str(size)][key][share] for size in sizes])
        for name, key, share, color in _LINES
    ]
    targets = _targets(sizes, figures)
    values = [value for _, _, times in lines for value in times]
    values += [value for *_, marks in targets for _, value in marks]
    x = _log_axis((sizes[0], sizes[-1]), _LEFT + 30, _RIGHT - 30)
    y = _log_axis((min(values) / 1.3, max(values) * 1.3), _BOTTOM, _TOP)
    parts = [*_grid(sizes, values, x, y)]
    for _, color, times in lines:
        points = [(x(size), y(time)) for size, time in zip(sizes, times, strict=True)]
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{left:.1f}" cy="{top:.1f}" r="4" fill="{color}"/>' for left, top in points
        ]
        parts.append(_text(x(sizes[-1]) + 9, points[-1][1] + 4, f"{times[-1]:.3g} ms", color))
    for _, color, marks in targets:
        parts += [
            f'<rect x="{x(size) - 14:.1f}" y="{y(value) - 1:.1f}" width="28" height="2"'
            f' fill="{color}" opacity="0.6"/>'
            for size, value in marks
        ]
    names = [(name, color) for name, color, _ in (*lines, *targets)]
    for at, (name, color) in enumerate(names):
        top = _TOP + 14 + 17 * at
        parts.append(f'<rect x="{_LEFT + 10}" y="{top - 5}" width="16" height="3" fill="{color}"/>')
        parts.append(_text(_LEFT + 32, top, name, _INK))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        f' width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _log_axis(bounds: tuple[float, float], start: float, end: float) -> Axis:
    """Return the place of a value between two values on a logarithmic axis."""
    low, high = math.log(bounds[0]), math.log(bounds[1])
    return lambda value: (
        start + (end - start) * ((math.log(value) - low) / (high - low) if high > low else 0.5)
    )


def _grid(sizes: Sequence[int], values: Sequence[float], x: Axis, y: Axis) -> list[str]:
    parts = []
    for size in sizes:
        parts.append(_line(x(size), _TOP, x(size), _BOTTOM))
        parts.append(_text(x(size), _BOTTOM + 18, f"{size:,}", _INK, anchor="middle"))
    powers = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
    ticks = [step * 10.0**power for power in powers for step in _STEPS]
    for tick in ticks:
        if min(values) / 1.3 <= tick <= max(values) * 1.3:
            parts.append(_line(_LEFT, y(tick), _RIGHT, y(tick)))
            parts.append(_text(_LEFT - 8, y(tick) + 4, f"{tick:g}", _INK, anchor="end"))
    middle = (_TOP + _BOTTOM) / 2
    turned = f' transform="rotate(-90 20 {middle})"'
    parts.append(_text(20, middle, "milliseconds", _INK, anchor="middle", more=turned))
    parts.append(_text((_LEFT + _RIGHT) / 2, _HEIGHT - 14, "memories", _INK, anchor="middle"))
    return parts


def _targets(
    sizes: Sequence[int], figures: Mapping[str, Mapping[str, Any]]
) -> list[tuple[str, str, list[tuple[int, float]]]]:
    """Return the targets of recall at the sizes that have one: of its p95, and of its p50."""
    [ratio] = [target for target in latency_targets.TARGETS if target.figure == "recall_ratio"]
    marked = [size for size in sizes if size in latency_targets.SIZES]
    if not marked:
        return []
    p95 = [(size, latency_targets.RECALL_P95.bound(size) or 0.0) for size in marked]
    p50 = [
        (size, (ratio.bound(size) or 0.0) * figures[str(size)]["raw_recall"]["p50"])
        for size in marked
    ]
    return [("target of p95", "#b5443a", p95), ("target of p50", "#1f5fa8", p50)]


def _line(left: float, top: float, right: float, bottom: float) -> str:
    return (
        f'<line x1="{left:.1f}" y1="{top:.1f}" x2="{right:.1f}" y2="{bottom:.1f}"'
        f' stroke="{_GRID}"/>'
    )


def _text(
    left: float, top: float, text: str, color: str, *, anchor: str = "start", more: str = ""
) -> str:
    return (
        f'<text x="{left:.1f}" y="{top:.1f}" fill="{color}" text-anchor="{anchor}"{more}>'
        f"{escape(text)}</text>"
    )
