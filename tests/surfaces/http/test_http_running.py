"""What those see who look after the process: health, readiness, figures."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving_worlds import Served, serving

from memgraph.clock import FixedClock
from memgraph.config.schema import StorageSettings
from memgraph.errors import DatabaseCorrupt, DatabaseMissing, MemgraphError
from memgraph.model.access import Permission
from memgraph.service import readiness
from memgraph.store.sqlite.stores import SqliteStore
from memgraph.surfaces.metrics import PrometheusMeters

NAMES = ("orc-1", "orc-2", "orc-3")
SECRET_TEXT = "The heron sleeps at Quillfen."


@pytest.fixture(scope="module")
def looked_after(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("running") / "root"
    with serving(root, meters=PrometheusMeters()) as made:
        for name in NAMES:
            made.orchestrator(name).remember(SECRET_TEXT)
        yield made


@pytest.fixture(scope="module")
def admin(looked_after: Served) -> Iterator[httpx.Client]:
    with looked_after.client(looked_after.key()) as made:
        yield made


@pytest.fixture(autouse=True)
def _always_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "LOOK_S", 60.0)


def standings(client: httpx.Client) -> dict[str, dict[str, Any]]:
    answer = client.get("/readyz")
    assert answer.status_code == 200
    return {each["orchestrator"]: each for each in answer.json()["orchestrators"]}


def test_only_who_runs_all_of_them_is_told_which_there_are(looked_after: Served) -> None:
    lesser = [
        None,
        "mgk_garbage",
        looked_after.key(orchestrators=("orc-1",)),
        looked_after.key(permissions=frozenset(Permission) - {Permission.ADMIN}),
    ]
    for secret in lesser:
        with looked_after.client(secret) as client:
            assert client.get("/healthz").json() == {"status": "alive"}
            assert client.get("/readyz").json() == {"status": "ready"}
            figures = client.get("/metrics")
            assert figures.status_code == (403 if secret in lesser[2:] else 401)
            assert figures.headers["content-type"] == "application/problem+json"


def test_a_look_tells_what_waits_and_opens_what_has_changed_while_there_is_time(
    looked_after: Served, admin: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = standings(admin)
    assert list(found) == list(NAMES)
    for each in found.values():
        assert each["status"] == "ready"
        assert each["pending"] >= 1
        assert float(str(each["oldest_pending_s"])) >= 0.0
    for name in NAMES:
        looked_after.service.forget(name)
    standings(admin)
    opened: list[Path] = []
    real = SqliteStore.open

    def counted(store: SqliteStore, settings: StorageSettings) -> object:
        opened.append(store.path)
        return real(store, settings)

    monkeypatch.setattr(SqliteStore, "open", counted)
    standings(admin)
    assert opened == []
    for name in NAMES:
        looked_after.orchestrator(name).remember("Something new.")
        looked_after.service.forget(name)
    opened.clear()
    monkeypatch.setattr(readiness, "LOOK_S", -1.0)
    before = {name: each["pending"] for name, each in standings(admin).items()}
    assert opened == []
    monkeypatch.setattr(readiness, "LOOK_S", 60.0)
    after = {name: each["pending"] for name, each in standings(admin).items()}
    assert after == {name: count + 1 for name, count in before.items()}
    assert len(opened) == len(NAMES)


def test_figures_tell_of_recalls_by_leg_and_of_refusals_but_of_nothing_said(
    looked_after: Served, admin: httpx.Client
) -> None:
    asked = {"query": "where does the heron sleep?"}
    assert admin.post("/v1/orchestrators/orc-1/recall", json=asked).is_success
    with looked_after.client(looked_after.key(orchestrators=("orc-2",))) as other:
        assert other.post("/v1/orchestrators/orc-1/recall", json=asked).status_code == 404
    told = admin.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain")
    for expected in (
        'memgraph_recall_seconds_count{leg="text"} 1.0',
        'memgraph_recall_seconds_count{leg="total"} 1.0',
        'memgraph_write_seconds_count{part="wait"}',
        'memgraph_denials_total{field="orchestrator"} 1.0',
        'memgraph_orchestrators{status="ready"} 3.0',
        "memgraph_outbox_depth ",
        "memgraph_disk_free_bytes ",
    ):
        assert expected in told.text
    for hidden in (*NAMES, "heron", "Quillfen", "mgk_"):
        assert hidden not in told.text


DAMAGES: dict[str, tuple[Callable[[Path], object], type[MemgraphError], str]] = {
    "garbage": (
        lambda database: database.write_bytes(b"no database" * 1_000),
        DatabaseCorrupt,
        "restore a backup",
    ),
    "missing": (Path.unlink, DatabaseMissing, "memgraph init"),
}


def test_damaged_orchestrators_are_named_and_the_others_go_on(tmp_path: Path) -> None:
    with serving(tmp_path / "root", keyless=True) as served, served.client() as client:
        served.orchestrator("sound").remember(SECRET_TEXT)
        for name, (damage, _, _) in DAMAGES.items():
            served.orchestrator(name).remember(SECRET_TEXT)
            served.service.forget(name)
            damage(served.service.paths(name).database)
        found = standings(client)
        assert found["sound"]["status"] == "ready"
        for name, (_, error, advice) in DAMAGES.items():
            at = f"/v1/orchestrators/{name}"
            answers = client.get(f"{at}/memories"), client.post(f"{at}/recall", json={"query": "x"})
            for answer in answers:
                assert (answer.status_code, answer.json()["code"]) == (503, error.code)
                assert advice in answer.json()["detail"]
            health = client.get(at)
            assert health.json()["code"] == error.code
            assert (found[name]["status"], found[name]["codes"]) == ("disabled", [error.code])
            assert advice in str(found[name]["advice"])
            told = str(found[name]) + "".join(each.text for each in (*answers, health))
            assert str(tmp_path) not in told
        assert client.get("/v1/orchestrators/sound/memories").is_success


def test_a_database_that_was_taken_away_under_the_server_is_told(tmp_path: Path) -> None:
    with serving(tmp_path / "root", keyless=True) as served, served.client() as client:
        assert client.get("/metrics").status_code == 404, "it has no meters"
        served.orchestrator().remember(SECRET_TEXT)
        database = served.service.paths("orc-1").database
        aside = database.rename(database.with_name("aside.db"))
        assert standings(client)["orc-1"]["codes"] == [DatabaseMissing.code]
        assert client.get("/v1/orchestrators/orc-1").json()["status"] == "disabled"
        database.write_bytes(aside.read_bytes())
        assert standings(client)["orc-1"]["status"] == "ready"


def test_what_changes_no_file_is_looked_for_each_minute(tmp_path: Path) -> None:
    clock = FixedClock()
    with (
        serving(tmp_path / "root", keyless=True, clock=clock) as served,
        served.client() as client,
    ):
        served.orchestrator().remember(SECRET_TEXT)
        with served.service.opened("orc-1") as opened:
            assert standings(client)["orc-1"]["status"] == "ready"
            opened.naming.fast_failure = "provider.unavailable"
            assert standings(client)["orc-1"]["status"] == "ready"
            clock.advance(ms=readiness.FRESH_MS)
            found = standings(client)["orc-1"]
    assert (found["status"], found["codes"]) == ("degraded", ["entities.failing"])


def test_without_its_root_nothing_works(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with serving(root, keyless=True) as served, served.client() as client:
        served.orchestrator()
        served.service.close()
        shutil.rmtree(root)
        answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"status": "unusable"})
