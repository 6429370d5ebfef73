"""A handle opens what its viewer was granted; everything else is refused, logged and counted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from denial_lines import denials

from memgraph import MemoryService, Orchestrator, Scope, Viewer
from memgraph.errors import AccessDenied
from memgraph.model.jobs import ServiceReadiness
from memgraph.surfaces.metrics import PrometheusMeters

VIEWER = Viewer(session_ids=frozenset({"t1"}), project_ids=frozenset({"p1"}))
ONLY_GLOBAL = Viewer(scopes=frozenset({Scope.GLOBAL}))
NO_GLOBAL = Viewer(session_ids=frozenset({"t1"}), scopes=frozenset({Scope.SESSION, Scope.PROJECT}))


@pytest.mark.parametrize(
    ("viewer", "opening", "field", "name"),
    [
        (VIEWER, lambda orc: orc.stores.task("t2"), "task", "t2"),
        (VIEWER, lambda orc: orc.stores.task("p1"), "task", "p1"),
        (VIEWER, lambda orc: orc.stores.project("p2"), "project", "p2"),
        (VIEWER, lambda orc: orc.stores.project("P1"), "project", "P1"),
        (ONLY_GLOBAL, lambda orc: orc.stores.project("p1"), "project", "p1"),
        (NO_GLOBAL, lambda orc: orc.stores.global_tier(), "global", None),
    ],
)
def test_what_was_not_granted_is_refused(
    service: MemoryService,
    viewer: Viewer,
    opening: Callable[[Orchestrator], object],
    field: str,
    name: str | None,
) -> None:
    orc = service.orchestrator("orc-1", create=True, viewer=viewer, actor="reader")
    with pytest.raises(AccessDenied) as raised:
        opening(orc)
    assert raised.value.as_dict()["code"] == "access.denied"
    line = {"actor": "reader", "field": field, "code": "access.denied"}
    if name is not None:
        line["asked_sha256"] = hashlib.sha256(name.encode()).hexdigest()
    assert denials(service.root) == [line]


def test_no_text_from_outside_comes_into_the_log(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    with pytest.raises(AccessDenied):
        orc.stores.task("the launch code is 0000\ud800")
    assert "launch" not in service.paths("orc-1").log_file.read_text("utf-8")


def test_each_refusal_is_a_line_and_a_count_and_the_database_stays_as_it_is(
    tmp_path: Path,
) -> None:
    meters = PrometheusMeters()
    with MemoryService(tmp_path / "root", environ={}, background=False, meters=meters) as service:
        orc = service.orchestrator("orc-1", create=True)
        before = orc.maintenance.stats()

        def ask(number: int) -> None:
            with pytest.raises(AccessDenied):
                orc.stores.task(f"t{number % 3}")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(60)))
        assert len(denials(service.root)) == 60
        figures, _ = meters.exposition(ServiceReadiness(status="ready"))
        assert b'memgraph_denials_total{field="task"} 60.0' in figures
        assert orc.maintenance.stats() == before
