"""Files with canaries in their names and contents, sent by an owner to every kind of place."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from canaries import PROJECTS, TASKS, Canary, World

from ingest.pipeline import IngestPipeline
from memgraph import Orchestrator, Scope, Sensitivity, Viewer
from memgraph.operations.ingestion.uploads import draft
from memgraph.rules.scope import ScopeFacts

Place = tuple[Scope, str | None, Sensitivity]

_PUBLIC: Place = (Scope.GLOBAL, None, Sensitivity.PUBLIC)
_PLACES: dict[str, list[Place]] = {
    "task": [(Scope.SESSION, TASKS[0], Sensitivity.INTERNAL)],
    "another task": [(Scope.SESSION, TASKS[1], Sensitivity.PUBLIC)],
    "project": [(Scope.PROJECT, PROJECTS[0], Sensitivity.CONFIDENTIAL)],
    "another project": [(Scope.PROJECT, PROJECTS[1], Sensitivity.PUBLIC)],
    "restricted": [(Scope.GLOBAL, None, Sensitivity.RESTRICTED)],
    # Who sees one of the two is told of that, and of no file.
    "mixed": [_PUBLIC, (Scope.PROJECT, PROJECTS[1], Sensitivity.RESTRICTED)],
    "open": [_PUBLIC],
    "rejected": [],
    "waiting": [],
}


@dataclass(frozen=True)
class SentFile:
    """A file by its digest, the words in its name and in it, and what came of it."""

    what: str
    sha256: str
    data: bytes
    words: frozenset[str]
    canaries: tuple[Canary, ...] = ()

    def hidden_from(self, viewer: Viewer) -> bool:
        """Whether somebody else who has this viewer may not know of it."""
        return not self.canaries or any(each.hidden_from(viewer) for each in self.canaries)

    def named_to(self, viewer: Viewer) -> bool:
        """Whether a memory that somebody sees comes from it."""
        return any(not each.hidden_from(viewer) for each in self.canaries)


def send_all(owner: Orchestrator, world: World, prefix: str) -> list[SentFile]:
    """Send them all through an owner's handle; the memories that come of them join the world.

    Args:
        prefix: a letter that their words begin with.
    """
    sent = []
    for number, (what, places) in enumerate(_PLACES.items()):
        if what == "waiting":
            IngestPipeline(owner).run()
        words = [f"Kx{prefix}{chr(97 + number)}{chr(97 + each)}zz" for each in range(3)]
        items = [_item(word, place) for word, place in zip(words[1:], places, strict=False)]
        data = json.dumps({"memories": items}).encode()
        if what == "rejected":
            data = f"{{ {words[0]}".encode()
        _send(owner, f"{words[0]}.json", data)
        file = SentFile(what, sha256(data).hexdigest(), data, frozenset(words))
        sent.append(file)
    told = [replace(each, canaries=_canaries(owner, each)) for each in sent]
    world.canaries += [canary for each in told for canary in each.canaries]
    return told


def _item(word: str, place: Place) -> dict[str, Any]:
    scope, scope_id, sensitivity = place
    return {
        "content": f"{word} keeps the launch plan and tells nobody.",
        "type": "Fact",
        "scope": scope.value,
        "scope_id": scope_id,
        "sensitivity": sensitivity.value,
    }


def _send(owner: Orchestrator, name: str, data: bytes) -> None:
    arriving = draft(owner, name)
    try:
        arriving.write(data)
        assert arriving.place().known is None
    finally:
        arriving.discard()


def _canaries(owner: Orchestrator, file: SentFile) -> tuple[Canary, ...]:
    manifest = owner.ingestion.get(file.sha256).manifest or {}
    items = manifest.get("items", {}).get("memories", [])
    assert len(items) == len(_PLACES[file.what]), manifest
    made = []
    for item, (scope, scope_id, sensitivity) in zip(items, _PLACES[file.what], strict=True):
        memory = owner.get(item["memory_id"])
        # Whoever sees one of them is told where it comes from: the file's name.
        name, _, _ = sorted(file.words)
        word = memory.content.split()[0]
        words = {word, name, *([scope_id] if scope_id else [])}
        facts = ScopeFacts(scope, scope_id, sensitivity, None)
        made.append(Canary(memory.memory_id, word, frozenset(words), facts))
    return tuple(made)
