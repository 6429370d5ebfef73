"""A language model behind a real server on loopback, and a database on another, for tests."""

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
def url(postgres_url: str) -> str:
    return postgres_url


@pytest.fixture
def model(server: ModelServer) -> PageModel:
    return PageModel(server)
