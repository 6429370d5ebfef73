"""What the process has done from which others are forked: everything once, and nothing is open."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from unittest.mock import patch

import hypothesis  # noqa: F401  # what modules of tests import
import pytest  # noqa: F401
from pair_readers import ScriptedReader

import memgraph.operations.life.decay
import memgraph.service.worker
import memgraph.store.postgres.stores
import memgraph.surfaces.serve
from memgraph import MemoryService
from memgraph.providers import pair_reader
from memgraph.providers.fake import FakeEmbedding
from memgraph.providers.local import LocalEmbedding
from memgraph.service.access.gate import Gate
from memgraph.service.access.keys import KeyStore
from memgraph.surfaces.cli.app import command_names, load_command

# As in tests/conftest.py: the shipped reader would take most of the time of these processes.
scripted = patch.object(
    MemoryService, "pair_reader", lambda self, _settings: self._pair_reader or ScriptedReader()
)
scripted.start()
# Only programs have these models; a program stops the patch.
LocalEmbedding().embed(["Hello."])
pair_reader._model(pair_reader.DIRECTORY)
for name in command_names():
    load_command(name)

with (
    tempfile.TemporaryDirectory() as folder,
    MemoryService(
        Path(folder), environ={}, background=False, embedding=FakeEmbedding(16)
    ) as service,
):
    orc = service.orchestrator("warm", create=True)
    orc.save_episode("My office is in Berlin.", session_id="one", source_role="user")
    orc.sessions.end("one")
    orc.jobs.consolidate("one")
    first = orc.remember("The kettle is red.")
    second = orc.correct(first, "The kettle is blue.", reason="painted")
    third = orc.remember("The mill is old.")
    edge = orc.relate(third, "Contradicts", second)
    orc.contradictions.resolve(edge, winner=third, reason="looked")
    orc.recall("kettle")
    orc.erasure.erase(memory_id=first, reason="asked for", dry_run=False)
    memgraph.surfaces.serve.application(
        Gate(service, KeyStore(service.root, service.clock)), service.settings().memory.server
    )
# What is loaded stays, and is not copied when a process looks for garbage.
gc.collect()
gc.freeze()
