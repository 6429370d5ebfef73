"""What the process has done from which others are forked: everything once, and nothing is open."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

import hypothesis  # noqa: F401  # what modules of tests import
import pytest  # noqa: F401
from pair_readers import ScriptedReader

import memgraph.operations.life.decay
import memgraph.service.worker  # noqa: F401
from memgraph import MemoryService
from memgraph.providers.fake import FakeEmbedding

# As in tests/conftest.py: the shipped reader would take most of the time of these processes.
patch.object(
    MemoryService, "pair_reader", lambda self, _settings: self._pair_reader or ScriptedReader()
).start()

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
