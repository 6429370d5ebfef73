"""What the latency bench makes of its figures: targets met or missed, and the curve."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import latency_curve, latency_targets

SVG = "{http://www.w3.org/2000/svg}"


def figures(scale: float = 1.0) -> dict[str, Any]:
    times = {"p50": 4.0 * scale, "p95": 9.0 * scale, "p99": 30.0 * scale}
    quick = {name: value / 100 for name, value in times.items()}
    return {
        "recall": times,
        "raw_recall": times,
        "context": times,
        "recall_ratio": 1.0,
        "overlap_at_20": 0.995,
        "write": {name: value / 10 for name, value in times.items()},
        "write_ratio": 3.0,
        "save_episode": {name: value / 10 for name, value in times.items()},
        "bulk_per_s": 4_500.0,
        "bulletin_changed": quick,
        "bulletin_unchanged": quick,
        "subgraph": times,
        "peak_memory_mb": 200.0,
        "disk_bytes_per_memory": 1_900.0,
        "start": {
            "import": 0.2,
            "list": 0.5,
            "recall_command": 0.6,
            "first_recall": 0.2,
            "serve": 1.2,
        },
        "http": {
            "recalls_per_s": 80.0,
            "writes_per_s": 300.0,
            "recalls_two": 1.4,
            "writes_two": 1.1,
        },
    }


def test_targets_are_met_or_missed() -> None:
    told = {each["figure"]: each for each in latency_targets.check(figures(), 10_000)}
    assert len(told) == len(latency_targets.TARGETS)
    assert all(each["met"] for each in told.values())
    assert (told["recall.p95"]["value"], told["recall.p95"]["target"]) == (9.0, 10.0)
    worse = {**figures(10.0), "overlap_at_20": 0.97, "bulk_per_s": 2_999.9}
    missed = {
        each["figure"] for each in latency_targets.check(worse, 10_000) if each["met"] is False
    }
    assert missed == {
        "recall.p50",
        "recall.p95",
        "context.p50",
        "overlap_at_20",
        "write.p50",
        "save_episode.p99",
        "bulk_per_s",
        "subgraph.p50",
        "bulletin_unchanged.p50",
    }
    assert {each["met"] for each in latency_targets.check(worse, 300)} == {None}
    unserved = {**figures(), "http": dict.fromkeys(figures()["http"])}
    [recalls] = [
        each
        for each in latency_targets.check(unserved, 10_000)
        if each["figure"] == "http.recalls_per_s"
    ]
    assert (recalls["value"], recalls["met"]) == (None, None)


def test_the_worst_cases_may_take_twice_the_usual() -> None:
    told = latency_targets.check_worst({"a": {"p95": 20.0}, "b": {"p95": 20.1}}, 10_000)
    assert (told["a"]["met"], told["b"]["met"]) == (True, False)
    assert told["a"]["target"] == 20.0
    assert latency_targets.check_worst({"a": {"p95": 1.0}}, 500)["a"]["met"] is None


@pytest.mark.parametrize("sizes", [(10_000,), (300, 10_000, 1_000_000)])
def test_the_curve_is_well_formed(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    found = {"sizes": {str(size): figures(size / 10_000) for size in sizes}}
    svg = latency_curve.draw(found, tmp_path / "one")
    root = ElementTree.fromstring(svg.read_text(encoding="utf-8"))
    assert root.tag == f"{SVG}svg"
    assert len(list(root.iter(f"{SVG}circle"))) == 3 * len(sizes)
    assert {f"{size:,}" for size in sizes} <= {each.text for each in root.iter(f"{SVG}text")}
