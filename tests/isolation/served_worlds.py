"""Two orchestrators full of canaries behind a server, and everybody who may ask it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pysqlite3
from canaries import AGENTS, EVERYTHING, PROJECTS, QUERY, TASKS, World, built
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sent_files import SentFile, send_all
from working import working

from ingest.pipeline import IngestPipeline
from memgraph import MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.model.access import Permission
from memgraph.model.enums import MemoryStatus
from memgraph.operations.ingestion.uploads import DropZoneWorker
from memgraph.service.access.gate import Gate
from memgraph.service.access.keys import KeyStore
from memgraph.surfaces.metrics import PrometheusMeters
from memgraph.surfaces.serve import application
from memgraph.surfaces.server_log import server_log

ONE, TWO = "one", "two"
ALL = tuple(Permission)
SOON = FixedClock().now_ms() + 500
ABSENT = "fact_00000000000000000000000000"
"""A well-formed id that nothing has."""


@dataclass(frozen=True)
class Who:
    """Somebody who asks: the fields of their key, and what such a key may see."""

    fields: dict[str, Any]
    viewer: Viewer
    knocks: int = 0
    """The status that every answer has; 0: it depends."""


def _who(viewer: Viewer, **fields: Any) -> Who:
    shown = {
        "clearance": viewer.clearance,
        "project_ids": sorted(viewer.project_ids),
        "session_ids": sorted(viewer.session_ids),
        "agent_id": viewer.agent_id,
    }
    given = {"name": "Somebody", "orchestrators": [ONE], "permissions": ALL}
    return Who(given | shown | fields, viewer)


VIEWERS: dict[str, Viewer] = {
    "no scope": Viewer(),
    "public": Viewer(Sensitivity.PUBLIC, frozenset(PROJECTS), frozenset(TASKS)),
    "a task": Viewer(Sensitivity.RESTRICTED, session_ids=frozenset(TASKS[:1])),
    "a project": Viewer(Sensitivity.RESTRICTED, project_ids=frozenset(PROJECTS[:1])),
    "an agent": Viewer(
        Sensitivity.RESTRICTED, frozenset(PROJECTS), frozenset(TASKS), agent_id=AGENTS[1]
    ),
}
SEEING: dict[str, Who] = {
    **{name: _who(viewer) for name, viewer in VIEWERS.items()},
    # Every scope is its own to name, and until it names one it sees none.
    "every scope": _who(
        Viewer(Sensitivity.CONFIDENTIAL),
        project_ids=["*"],
        session_ids=["*"],
        orchestrators=[ONE, "three"],
    ),
    **{
        f"{one} alone": _who(VIEWERS["a task"], permissions=[one])  # its own and no other
        for one in Permission
    },
}
"""Those who may enter, and from whom something is hidden."""

WITHOUT = Viewer(Sensitivity.PUBLIC)
OUTSIDE: dict[str, Who] = {
    "nobody": Who({}, WITHOUT, knocks=401),
    "garbage": Who({}, WITHOUT, knocks=401),
    "revoked": Who(_who(EVERYTHING).fields, WITHOUT, knocks=401),
    "expired": Who(_who(EVERYTHING, expires_at=SOON).fields, WITHOUT, knocks=401),
    "of another": Who(_who(EVERYTHING, orchestrators=[TWO]).fields, WITHOUT, knocks=404),
}
"""Those who may not."""

OWNERS: dict[str, Who] = {
    "everything": _who(EVERYTHING),
    "operator": _who(EVERYTHING, orchestrators=["*"], project_ids=["*"], session_ids=["*"]),
}
"""Those from whom nothing is hidden: what they are not shown proves nothing about the others."""

PEOPLE = {**SEEING, **OUTSIDE, **OWNERS}


@dataclass(frozen=True)
class Ask:
    """One request to a route of an orchestrator, but for who sends it."""

    method: str
    path: str
    params: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    content: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def said(self) -> str:
        """All that it says itself: an answer may say it again."""
        told = [self.path, self.params, self.body, self.content, self.headers]
        return json.dumps(told, default=repr, ensure_ascii=False)


@dataclass
class Served:
    """A server over a root with both orchestrators, and the secrets of all keys."""

    service: MemoryService
    app: FastAPI
    client: TestClient
    secrets: dict[str, str]
    world: World
    other: World
    made: dict[str, Any]
    files: list[SentFile]
    journals: dict[str, Any]
    read: dict[str, int] = field(default_factory=lambda: {ONE: 0, TWO: 0})

    def ask(self, who: str, ask: Ask, orchestrator: str = ONE) -> httpx.Response:
        headers = dict(ask.headers)
        if who in self.secrets:
            headers["Authorization"] = f"Bearer {self.secrets[who]}"
        options: dict[str, Any] = {}
        if ask.content is not None:
            options["content"] = ask.content
        elif ask.body is not None:
            options["json"] = ask.body
        path = ask.path.replace("{orchestrator}", orchestrator)
        return self.client.request(ask.method, path, params=ask.params, headers=headers, **options)

    def denied(self) -> list[tuple[str, str, dict[str, Any]]]:
        """(Orchestrator, actor, details) of each refusal that was logged since it was asked."""
        found: list[tuple[str, str, dict[str, Any]]] = []
        for name in (ONE, TWO):
            path = self.service.paths(name).log_file
            if not path.exists():
                continue
            with path.open("rb") as log:
                log.seek(self.read[name])
                lines = [json.loads(line) for line in log]
                self.read[name] = log.tell()
            denied = [line for line in lines if line["event"] == "access.denied"]
            found += [(name, line.pop("actor"), line) for line in denied]
        return found

    def work_off(self) -> int:
        """Turn what was sent into memories; gives how many items of the files were refused."""
        before = self._refused_items()
        IngestPipeline(self.service.orchestrator(ONE, actor="ingest")).run()
        return self._refused_items() - before

    def _refused_items(self) -> int:
        rows = self.journals[ONE].execute("SELECT manifest FROM ingest_files").fetchall()
        items = [each for (told,) in rows for each in json.loads(told).get("items", {}).values()]
        return sum(each.get("code") == "access.denied" for kind in items for each in kind)

    def rows(self, ids: set[str]) -> dict[str, tuple[Any, ...]]:
        """Memories as they are stored."""
        found = self.journals[ONE].execute("SELECT memory_id, * FROM memories").fetchall()
        return {row[0]: row for row in found if row[0] in ids}

    @cached_property
    def operations(self) -> dict[str, tuple[str, str, dict[str, Any]]]:
        """(method, path, description) of every documented operation, by its id."""
        paths: dict[str, dict[str, Any]] = self.app.openapi()["paths"]
        return {
            operation["operationId"]: (method.upper(), path, operation)
            for path, methods in paths.items()
            for method, operation in methods.items()
        }


@dataclass(frozen=True)
class Built:
    """A root with both orchestrators, closed: each test works on a copy of it."""

    root: Path
    world: World
    other: World
    secrets: dict[str, str]
    made: dict[str, Any]
    files: list[SentFile]
    """Of the first orchestrator."""

    def forbidden(self, viewer: Viewer) -> frozenset[str]:
        """All that somebody may not be told: of the other orchestrator, nothing at all."""
        near, far = self.world.forbidden(viewer), self.other.forbidden(viewer)
        shown = {word for each in self.world.seen(viewer) for word in each.words}
        # A memory that is seen says which file it comes from.
        hidden = [each for each in self.files if not each.named_to(viewer)]
        words = {word for each in hidden for word in each.words} - shown
        digests = {each.sha256 for each in hidden} | {self.made["far_file"]}
        ids = {each.memory_id for each in self.other.canaries}
        return near | far | words | digests | ids


def build(root: Path) -> Built:
    """Both orchestrators, everybody's key, and what owners did before."""
    with working(root) as service:
        world, other = built(service, ONE), built(service, TWO, prefix="b")
        keys = KeyStore(root, service.clock)
        secrets = {
            name: keys.create(who.fields).secret for name, who in PEOPLE.items() if who.fields
        }
        keys.revoke(secrets["revoked"].split("_")[1])
        # No secret ends so: its last character encodes four bits.
        secrets["garbage"] = secrets["everything"][:-1] + "B"
        sender = f"key:{secrets['everything'].split('_')[1]}"
        owner, far_owner = (
            service.orchestrator(each, viewer=EVERYTHING, actor=sender) for each in (ONE, TWO)
        )
        files, far_files = send_all(owner, world, "a"), send_all(far_owner, other, "b")
        found = [
            each.edge.edge_id
            for resolved in (False, True)
            for each in owner.contradictions.list(resolved=resolved, limit=500).items
        ]
        apart = [
            each.memory_id
            for each in world.hidden(SEEING["no scope"].viewer)
            if each.memory_id.startswith("fact_")
            and owner.get(each.memory_id).status is MemoryStatus.ACTIVE
        ]
        made = {
            "contradictions": found,
            "mark": owner.relate(apart[-1], "Updates", apart[-2], weight=0.9),
            "files": [each.sha256 for each in files],
            "far_file": far_files[0].sha256,
            "receipt": owner.recall(QUERY, top_n=200).receipt_id,
            "far_receipt": far_owner.recall(QUERY).receipt_id,
            "bulletin": _issued(owner),
            "far_bulletin": _issued(far_owner),
        }
        owner.settle()
    return Built(root, world, other, secrets, made, files)


def _issued(owner: Orchestrator) -> str:
    """The id of a bulletin that cites what only its owner sees whole."""
    owner.bulletin()
    return owner.receipts.bulletins(limit=1).bulletins[0].bulletin_id


@contextmanager
def served(made: Built, root: Path) -> Iterator[Served]:
    """A server over a copy, for those who are refused often."""
    shutil.copytree(made.root, root)
    config = {"memory.storage.synchronous": "NORMAL"}
    with (
        # Files are worked off when a test says so: what is refused of them is an entry of its own.
        patch.object(DropZoneWorker, "wake", lambda _intake, _name: None),
        working(
            root, clock=FixedClock(SOON + 500), config=config, meters=PrometheusMeters()
        ) as service,
        server_log(root, service.clock, service.settings().memory.log) as log,
    ):
        app = application(
            Gate(service, KeyStore(root, service.clock)), service.settings().memory.server
        )
        app.state.log = log
        with (
            TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client,
            _reading(service, ONE) as one,
        ):
            given = (service, app, client, made.secrets, made.world, made.other, dict(made.made))
            yield Served(*given, made.files, journals={ONE: one})


@contextmanager
def _reading(service: MemoryService, name: str) -> Iterator[Any]:
    """A look at a database behind the service's back."""
    with closing(pysqlite3.connect(f"file:{service.paths(name).database}?mode=ro", uri=True)) as db:
        yield db
