"""A language model behind a real server on loopback, for tests that ask one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from model_server import ModelServer
from page_models import PageModel


@pytest.fixture
def server() -> Iterator[ModelServer]:
    made = ModelServer()
    yield made
    made.close()


@pytest.fixture
def model(server: ModelServer) -> PageModel:
    return PageModel(server)
