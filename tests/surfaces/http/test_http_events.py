"""Server-sent events: who is told what, from where on, how many, and for how long."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving_worlds import Served, serving

from memgraph.model.access import Permission
from memgraph.model.enums import Sensitivity
from memgraph.rules.scope import Viewer
from memgraph.service import event_delivery as happenings
from memgraph.surfaces.http import event_streams as streaming
from memgraph.surfaces.http.app import create_app

EVENTS = "/v1/orchestrators/orc-1/events"
WHOLE = Viewer(clearance=Sensitivity.RESTRICTED)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "TICK_S", 0.01)
    monkeypatch.setattr(streaming, "LOOK_S", 0.02)


@pytest.fixture
def ending() -> threading.Event:
    return threading.Event()


@pytest.fixture
def served(tmp_path: Path, ending: threading.Event) -> Iterator[Served]:
    def app_of(gate: Any) -> Any:
        app = create_app(gate)
        app.state.ending = ending
        return app

    config = {"memory.server.streams_per_key": 2}
    with serving(tmp_path / "root", app_of=app_of, config=config) as made:
        made.orchestrator()
        yield made


class Stream:
    """An open stream, read event by event; a beat is an event without a topic."""

    def __init__(self, response: httpx.Response) -> None:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        self._lines = response.iter_lines()
        self.last_id = ""

    def next(self) -> tuple[str, dict[str, Any]]:
        """The topic and the data of what comes next that is not a beat."""
        while True:
            topic, data = self.part()
            if topic:
                return topic, data

    def part(self) -> tuple[str, dict[str, Any]]:
        topic, data = "", {}
        for line in self._lines:
            name, _, value = line.partition(": ")
            if name == "id":
                self.last_id = value
            elif name == "event":
                topic = value
            elif name == "data":
                data = json.loads(value)
            elif not line:
                return topic, data
        raise EOFError


def contradict(served: Served, one: str, other: str, **fields: Any) -> str:
    orc = served.service.orchestrator("orc-1", viewer=WHOLE)
    return orc.relate(orc.remember(one, **fields), "Contradicts", orc.remember(other))


def test_a_contradiction_is_told_where_both_sides_are_seen(served: Served) -> None:
    low = served.key(clearance=Sensitivity.PUBLIC)
    mid = served.key(clearance=Sensitivity.INTERNAL, permissions={Permission.READ})
    with (
        served.client(served.key()) as all_of_it,
        served.client(mid) as some,
        all_of_it.stream("GET", EVENTS) as one,
        some.stream("GET", EVENTS) as other,
        served.client(low) as nothing,
        nothing.stream("GET", EVENTS) as third,
    ):
        whole, part, none = Stream(one), Stream(other), Stream(third)
        for each in (whole, part, none):
            assert each.part() == ("", {})
        secret = contradict(
            served, "Bluebird is on.", "Bluebird is off.", sensitivity=Sensitivity.RESTRICTED
        )
        plain = contradict(served, "Tea is at four.", "Tea is at five.")
        assert [whole.next()[1]["edge_id"] for _ in range(2)] == [secret, plain]
        assert part.next() == ("memory.contradiction_found", part_of(served, plain))
        assert none.last_id == position(None, "")


def part_of(served: Served, edge_id: str) -> dict[str, Any]:
    [found] = [
        each
        for each in served.service.orchestrator("orc-1", viewer=WHOLE).contradictions.list().items
        if each.edge.edge_id == edge_id
    ]
    edge = found.edge.model_dump(mode="json")
    told = {name: edge[name] for name in ("edge_id", "from_id", "to_id")}
    return {"at": edge["created_at"], **told}


def position(edge_id: str | None, run_id: str) -> str:
    told = json.dumps([edge_id, run_id], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(told).decode().rstrip("=")


def test_who_comes_back_is_told_what_came_meanwhile_and_once(served: Served) -> None:
    with served.client(served.key()) as client:
        with client.stream("GET", EVENTS) as first:
            stream = Stream(first)
            stream.part()
            before = contradict(served, "Tea is at four.", "Tea is at five.")
            assert stream.next()[1]["edge_id"] == before
        meanwhile = contradict(served, "Lunch is at one.", "Lunch is at two.")
        headers = {"last-event-id": stream.last_id}
        with client.stream("GET", EVENTS, headers=headers) as second:
            assert Stream(second).next()[1]["edge_id"] == meanwhile


def test_ended_jobs_are_told_to_admins_alone(served: Served) -> None:
    reader = served.key(permissions={Permission.READ})
    with (
        served.client(served.key()) as admin,
        admin.stream("GET", EVENTS) as one,
        served.client(reader) as other,
        other.stream("GET", EVENTS) as two,
    ):
        told, untold = Stream(one), Stream(two)
        assert told.part() == untold.part() == ("", {})
        ran = served.orchestrator().jobs.run("decay")
        edge_id = contradict(served, "Tea is at four.", "Tea is at five.")
        topic, data = told.next()
        # Contradictions of a look come before runs of it.
        if topic != "job.ended":
            topic, data = told.next()
        assert (topic, data["run_id"], data["state"]) == ("job.ended", ran.run_id, "done")
        assert untold.next()[1]["edge_id"] == edge_id
        assert ran.run_id not in base64.b64decode(untold.last_id + "==", b"-_").decode()


@pytest.mark.parametrize("given", ["%%%", "a" * 5_000, "e30", "WzEsMl0", "bnVsbA"])
def test_what_is_no_position_is_refused(served: Served, given: str) -> None:
    with served.client(served.key()) as client:
        answer = client.get(EVENTS, headers={"last-event-id": given})
    assert (answer.status_code, answer.json()["code"]) == (422, "input.invalid")


def test_a_key_has_so_many_streams_and_gives_them_back(served: Served) -> None:
    with served.client(served.key()) as client, served.client(served.key()) as another:
        with client.stream("GET", EVENTS) as one, client.stream("GET", EVENTS) as two:
            held = [Stream(each) for each in (one, two)]
            assert [each.part() for each in held] == [("", {})] * 2
            refused = client.get(EVENTS)
            assert (refused.status_code, refused.json()["code"]) == (429, "request.rate_limited")
            assert int(refused.headers["retry-after"]) > 0
            with another.stream("GET", EVENTS) as third:
                assert Stream(third).part() == ("", {})
        # The server learns by and by that a client has gone.
        for _ in range(1_000):
            with client.stream("GET", EVENTS) as again:
                if again.status_code == 200:
                    break
        assert again.status_code == 200


def test_a_stream_ends_with_its_key(served: Served) -> None:
    made = served.keys.create({"name": "short", "orchestrators": ("*",), "permissions": {"read"}})
    with served.client(made.secret) as client, client.stream("GET", EVENTS) as answer:
        stream = Stream(answer)
        stream.part()
        served.keys.revoke(made.key.key_id)
        with pytest.raises(EOFError):
            stream.next()


def test_a_stream_ends_with_the_server(served: Served, ending: threading.Event) -> None:
    with served.client(served.key()) as client, client.stream("GET", EVENTS) as answer:
        stream = Stream(answer)
        stream.part()
        ending.set()
        with pytest.raises(EOFError):
            stream.next()


def test_a_beat_carries_the_position(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "HEARTBEAT_S", 0.05)
    with served.client(served.key()) as client, client.stream("GET", EVENTS) as answer:
        stream = Stream(answer)
        for _ in range(3):
            assert stream.part() == ("", {})
            assert stream.last_id == position(None, "")


def test_streams_that_wait_hold_no_thread(served: Served) -> None:
    """More of them than threads, and requests are answered all the same."""
    with served.client(served.key()) as client:
        secrets = [served.key() for _ in range(20)]
        open_ones = []
        try:
            for secret in secrets:
                other = served.client(secret)
                request = other.build_request("GET", EVENTS)
                open_ones.append((other, other.send(request, stream=True)))
            assert {each.status_code for _, each in open_ones} == {200}
            assert client.get("/v1/orchestrators/orc-1/stats").status_code == 200
        finally:
            for other, answer in open_ones:
                answer.close()
                other.close()


def test_a_commit_that_is_read_later_than_it_is_written_is_told(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files change before what is in them can be read; they need not change again."""
    written = time.time_ns()
    stamp = lambda _self: ((written, 1),)  # noqa: E731
    monkeypatch.setattr(happenings.EventReader, "_stamp_of_store", stamp)
    lookout = happenings.EventReader(served.orchestrator(), jobs=False)
    assert not lookout.look()
    edge_id = contradict(served, "Tea is at four.", "Tea is at five.")
    assert [each.data["edge_id"] for each in lookout.look()] == [edge_id]
    monkeypatch.setattr(happenings, "_is_fresh", lambda _stamp: False)
    assert not lookout.look()
    contradict(served, "Lunch is at one.", "Lunch is at two.")
    assert not lookout.look(), "nothing was written for a long time"
