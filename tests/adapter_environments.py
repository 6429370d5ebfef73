"""Which adapters can be tested here: each with the real package, never with a stand-in.

A package that is not installed is a reason to skip, except in the environment that was made for
its adapter: that one says so by ``MEMGRAPH_ADAPTER``, and there the lack is a failure.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

HERE = os.environ.get("MEMGRAPH_ADAPTER", "")
"""The extra that this environment was made for; empty: it was made for the project as a whole."""


def needs(extra: str, module: str) -> None:
    """Skip the test module that calls this where the extra's package is not installed.

    Raises:
        AssertionError: it is not installed, and this is its environment.
    """
    if find_spec(module) is not None:
        return
    assert extra != HERE, f"the environment of {extra} lacks the package {module}"
    pytest.skip(
        f"memgraph-memory[{extra}] is not installed: make adapters", allow_module_level=True
    )
