"""The dashboard asks for figures and labels that the server has, and for all of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from memgraph.surfaces.metrics import PrometheusMeters

PATH = Path(__file__).resolve().parents[2] / "examples/grafana/memgraph.json"
_NAME = re.compile(r"\b((?:memgraph|process)_[a-z_]+)\b")
_SUFFIX = re.compile(r"_(bucket|count|sum|total|created)$")


def dashboard() -> dict[str, Any]:
    return json.loads(PATH.read_text("utf-8"))


def expressions() -> list[str]:
    return [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]


def families() -> dict[str, tuple[str, ...]]:
    """The labels of every figure by its name, without a counter's or histogram's suffix."""
    meters = PrometheusMeters()
    own: dict[str, tuple[str, ...]] = {
        metric._name: tuple(metric._labelnames)
        for metric in meters._registry._collector_to_names
        if hasattr(metric, "_labelnames")
    }
    process = ("process_resident_memory_bytes", "process_cpu_seconds", "process_open_fds")
    return own | dict.fromkeys(process, ())


def test_every_figure_is_shown_and_every_shown_figure_is_there() -> None:
    shown = {_SUFFIX.sub("", name) for each in expressions() for name in _NAME.findall(each)}
    assert len(shown) > 10
    assert shown == set(families())


def test_what_is_grouped_by_is_a_label() -> None:
    for expression in expressions():
        labels = families()[_SUFFIX.sub("", _NAME.findall(expression)[0])]
        for group in re.findall(r"by \(([^)]*)\)", expression):
            assert {each.strip() for each in group.split(",")} - {"le"} <= set(labels), expression


def test_panels_do_not_overlap_and_take_the_chosen_source() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        assert panel["datasource"]["uid"] == "${source}"
        taken |= cells
