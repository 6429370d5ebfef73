"""The snippets of the guide that need the SDK run as they stand."""

from __future__ import annotations

from pathlib import Path

import agents_env
import pytest
from guides import ROOT, run_python

GUIDE = ROOT / "docs" / "guides" / "adapters.md"


def test_the_snippets_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMGRAPH_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run_python(GUIDE, agents_env.EXTRA) > 3
