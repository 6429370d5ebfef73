"""A server, and the three ways to the same memory: the library, a client, an awaited client."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from serving_worlds import Served, serving

from memgraph.client import AsyncClient, Client
from memgraph.clock import FixedClock
from memgraph.ids import CountingIds
from memgraph.policy.scope import Viewer

WAYS = ("library", "Client", "AsyncClient")
Speak = Callable[..., Any]


class Awaited:
    """An awaited handle whose words are waited for, so that one test speaks to all."""

    def __init__(self, handle: Any, runner: asyncio.Runner) -> None:
        self._handle = handle
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._handle, name)
        if not inspect.iscoroutinefunction(found):
            return found
        return lambda *args, **fields: self._runner.run(found(*args, **fields))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server with the orchestrator orc-1: fixed time, counted ids, nothing in the background."""
    with serving(tmp_path / "root", clock=FixedClock(), ids=CountingIds()) as made:
        made.orchestrator()
        yield made


@pytest.fixture(params=WAYS)
def speak(request: pytest.FixtureRequest, served: Served) -> Iterator[Speak]:
    """Gives a handle of orc-1; its arguments narrow what it sees. One key may do everything."""
    with ExitStack() as stack:
        if request.param == "library":
            yield lambda **view: served.service.orchestrator("orc-1", viewer=_viewer(view))
        elif request.param == "Client":
            client = stack.enter_context(Client(served.url, key=served.key()))
            yield lambda **view: client.orchestrator("orc-1", **_narrowing(view))
        else:
            runner = stack.enter_context(asyncio.Runner())
            awaited = AsyncClient(served.url, key=served.key())
            stack.callback(lambda: runner.run(awaited.close()))
            yield lambda **view: Awaited(awaited.orchestrator("orc-1", **_narrowing(view)), runner)


@pytest.fixture
def way(speak: Speak) -> Any:
    """A handle of orc-1 that sees what a library's handle sees by default."""
    return speak()


def _viewer(view: dict[str, Any]) -> Viewer:
    return Viewer(**view)


def _narrowing(view: dict[str, Any]) -> dict[str, Any]:
    """A key that may see everything sees what a viewer sees by default when it says so."""
    return {"clearance": Viewer().clearance, **view}
