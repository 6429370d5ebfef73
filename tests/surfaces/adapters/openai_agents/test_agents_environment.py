"""This environment holds the SDK and not litellm; in others the tests say why they are skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import adapter_environments
import pytest
from adapter_environments import HERE, needs

ROOT = Path(__file__).resolve().parents[4]
EXTRA = "openai-agents"


@pytest.mark.skipif(HERE != EXTRA, reason="for the environment of the adapter: make adapters")
def test_here_it_is_without_litellm() -> None:
    assert find_spec("agents") is not None
    assert find_spec("litellm") is None


def test_what_lacks_is_skipped_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_environments, "HERE", "")
    with pytest.raises(pytest.skip.Exception, match=r"memgraph-memory\[openai-agents\]"):
        needs(EXTRA, "no_such_package")


def test_what_lacks_is_a_failure_in_its_own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_environments, "HERE", EXTRA)
    with pytest.raises(AssertionError, match="lacks the package"):
        needs(EXTRA, "no_such_package")


@pytest.mark.skipif(HERE == EXTRA, reason="looked at where all tests run: it takes seconds")
@pytest.mark.parametrize(("adapter", "code"), [("", 5), (EXTRA, 2)])
def test_a_run_without_the_package_ends_so(adapter: str, code: int, tmp_path: Path) -> None:
    hidden = tmp_path / "hide_agents.py"
    hidden.write_text("import sys\nsys.modules['agents'] = None\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "hide_agents", "-p", "no:cacheprovider"),
            *("-p", "no:schemathesis"),  # it takes most of a second to load
            str(Path(__file__).with_name("test_agents_session.py")),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "MEMGRAPH_ADAPTER": adapter},
        capture_output=True,
        text=True,
        check=False,
    )
    # 5: there was nothing to run, 2: the tests could not be collected.
    assert done.returncode == code, done.stdout + done.stderr
    assert ("1 skipped" in done.stdout) is (adapter == "")


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
