"""This environment holds the SDK and not litellm; in others the tests say why they are skipped."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from adapter_environments import HERE

ROOT = Path(__file__).resolve().parents[4]
EXTRA = "openai-agents"


@pytest.mark.skipif(HERE != EXTRA, reason="for the environment of the adapter: make adapters")
def test_here_it_is_without_litellm() -> None:
    assert find_spec("agents") is not None
    assert find_spec("litellm") is None


def test_importing_without_the_package_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['agents'] = None\n"
        "from memgraph.errors import ExtraMissing\n"
        "try:\n"
        "    import memgraph.surfaces.adapters.openai_agents\n"
        "except ExtraMissing as error:\n"
        "    print(error.code, error.details['extra'], error.message)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.startswith("extra.missing openai-agents ")
    assert "pip install 'memgraph-memory[openai-agents]'" in done.stdout
