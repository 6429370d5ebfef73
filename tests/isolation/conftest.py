"""One world for all of these tests: each server works on a copy of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from citing_model import citing
from served_worlds import Built, Served, build, served


@pytest.fixture(autouse=True)
def model() -> Iterator[None]:
    """A question is answered with all that its block has."""
    with citing():
        yield


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("isolation") / "root")


@pytest.fixture(scope="module")
def server(made: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that the tests of a module share."""
    with served(made, tmp_path_factory.mktemp("server") / "root") as running:
        yield running
