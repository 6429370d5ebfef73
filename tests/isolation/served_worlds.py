"""Two orchestrators full of canaries behind a server, and everybody who may ask it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import pysqlite3
from canaries import AGENTS, EVERYTHING, PROJECTS, QUERY, TASKS, World, built
from fastapi import FastAPI
from fastapi.testclient import TestClient
from working import working

from memgraph import MemoryService, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.model.access import Permission
from memgraph.service.access.gate import Gate
from memgraph.service.access.keys import KeyStore
from memgraph.surfaces.http.app import create_app

ONE, TWO = "one", "two"
ALL = tuple(Permission)
WHOLE = {"project_ids": PROJECTS, "session_ids": TASKS, "clearance": "Restricted"}
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
    "internal": Viewer(Sensitivity.INTERNAL, frozenset(PROJECTS), frozenset(TASKS)),
    "confidential": Viewer(Sensitivity.CONFIDENTIAL, frozenset(PROJECTS), frozenset(TASKS)),
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
        Viewer(Sensitivity.RESTRICTED), project_ids=["*"], session_ids=["*"], orchestrators=["*"]
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

    def denials(self, name: str = ONE) -> list[tuple[str, dict[str, Any]]]:
        """Who was denied what, as the journal has it; an entry that stands for several, as many."""
        database = self.service.paths(name).database
        connection = pysqlite3.connect(f"file:{database}?mode=ro", uri=True)
        try:
            rows = connection.execute(
                "SELECT actor, details FROM audit_log WHERE action = 'deny' ORDER BY seq"
            ).fetchall()
        finally:
            connection.close()
        told = [(actor, json.loads(details)) for actor, details in rows]
        return [each for each in told for _ in range(each[1].get("times", 1))]

    def rows(self, ids: set[str]) -> dict[str, tuple[Any, ...]]:
        """Memories as they are stored."""
        database = self.service.paths(ONE).database
        connection = pysqlite3.connect(f"file:{database}?mode=ro", uri=True)
        try:
            found = connection.execute("SELECT memory_id, * FROM memories").fetchall()
        finally:
            connection.close()
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


def build(root: Path) -> Built:
    """Both orchestrators, everybody's key, and what owners did before."""
    with working(root) as service:
        world, other = built(service, ONE), built(service, TWO, prefix="b")
        keys = KeyStore(root, service.clock)
        secrets = {
            name: keys.create(who.fields).secret for name, who in PEOPLE.items() if who.fields
        }
        keys.revoke(secrets["revoked"].split("_")[1])
        secrets["garbage"] = secrets["everything"][:-2] + "AA"
        owner = service.orchestrator(ONE, viewer=EVERYTHING)
        made = {
            "receipt": owner.recall(QUERY, top_n=200).receipt_id,
            "far_receipt": service.orchestrator(TWO, viewer=EVERYTHING).recall(QUERY).receipt_id,
        }
        owner.embed_pending()
    return Built(root, world, other, secrets, made)


@contextmanager
def served(made: Built, folder: Path) -> Iterator[Served]:
    """A server over a copy."""
    root = folder / "root"
    shutil.copytree(made.root, root)
    with working(root, clock=FixedClock(SOON + 500)) as service:
        gate = Gate(service, KeyStore(root, service.clock))
        app = create_app(gate)
        with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as client:
            yield Served(
                service, app, client, made.secrets, made.world, made.other, dict(made.made)
            )
