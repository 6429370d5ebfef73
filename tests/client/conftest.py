"""A server, and the three ways to the same memory: the library, a client, an awaited client."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest
from serving_worlds import Served, serving

from memgraph.client import AsyncClient, Client
from memgraph.clock import FixedClock
from memgraph.ids import CountingIds
from memgraph.operations.handle import Handle
from memgraph.rules.scope import Viewer

WAYS = ("library", "Client", "AsyncClient")
Speak = Callable[..., Any]
_NUMBERS = count(1)


class Awaited:
    """An awaited handle whose words are waited for, so that one test speaks to all."""

    def __init__(self, handle: Any, runner: asyncio.Runner) -> None:
        self._handle = handle
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._handle, name)
        if isinstance(found, Handle):
            return Awaited(found, self._runner)
        if not inspect.iscoroutinefunction(found):
            return found
        return lambda *args, **fields: self._runner.run(found(*args, **fields))


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests: fixed time, counted ids, nothing in the background."""
    root = tmp_path_factory.mktemp("served") / "root"
    with serving(root, clock=FixedClock(), ids=CountingIds()) as made:
        yield made


@pytest.fixture(scope="session")
def secret(served: Served) -> str:
    """Of a key that may do everything."""
    return served.key()


@pytest.fixture
def name(served: Served) -> str:
    """An orchestrator that no other test knows."""
    made = f"orc-{next(_NUMBERS)}"
    served.orchestrator(made)
    return made


@pytest.fixture(params=WAYS)
def speak(
    request: pytest.FixtureRequest, served: Served, name: str, secret: str
) -> Iterator[Speak]:
    """Gives a handle of the orchestrator; its arguments are those of a viewer."""
    with ExitStack() as stack:
        if request.param == "library":
            yield lambda **view: served.service.orchestrator(name, viewer=Viewer(**view))
        elif request.param == "Client":
            client = stack.enter_context(Client(served.url, key=secret))
            yield lambda **view: client.orchestrator(name, **_narrowing(view))
        else:
            runner = stack.enter_context(asyncio.Runner())
            awaited = AsyncClient(served.url, key=secret)
            stack.callback(lambda: runner.run(awaited.close()))
            yield lambda **view: Awaited(awaited.orchestrator(name, **_narrowing(view)), runner)


@pytest.fixture
def way(speak: Speak) -> Any:
    """A handle that sees what a library's handle sees by default."""
    return speak()


def _narrowing(view: dict[str, Any]) -> dict[str, Any]:
    """A key that may see everything sees what a viewer sees by default when it says so."""
    return {"clearance": Viewer().clearance, **view}
