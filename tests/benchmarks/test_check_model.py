"""The check of a small model: it holds for bad manners, and reports what is broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer
from page_models import PageModel, add

from benchmarks import check_model
from memgraph.operations.life.consolidation import SessionReport


def test_a_model_that_reads_breaks_nothing(model_server: ModelServer, tmp_path: Path) -> None:
    moved = add("Nora lives in Hamburg.", [1], "moved from Berlin to Hamburg")
    PageModel(model_server, {"add": [moved, moved]}, {"add": []})
    result = check_model.check(model_server.url, tmp_path, timeout_s=10.0)
    assert result["broken"] == []
    states = [(each["session"], each["state"]) for each in result["sessions"]]
    assert states[:2] == [("monday", "consolidated"), ("thursday", "consolidated")]
    assert {state for _, state in states[2:]} == {"unchanged"}
    assert result["model"]["by_use"]["consolidation"]["calls"] >= 2
    rows = check_model.table(result).splitlines()
    assert rows[2] == "| page monday | 2 | consolidated, 1 facts, 0 changes | page.repeated (1) |"
    assert rows[-1] == "| broken |  | nothing |  |"


@pytest.mark.parametrize("answer", ["I am a helpful assistant.", '{"add": [{"text": 7}]}'])
def test_a_model_with_bad_manners_breaks_nothing(
    model_server: ModelServer, tmp_path: Path, answer: Any
) -> None:
    model_server.behave(model_server.writes(answer))
    result = check_model.check(model_server.url, tmp_path, timeout_s=10.0)
    assert result["broken"] == []
    closed = {each["session"] for each in result["sessions"] if each["state"] == "consolidated"}
    assert closed == (set(check_model.TALKS) if "add" in answer else set())


def test_a_page_that_was_closed_unread_is_reported(
    model_server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server.behave(model_server.writes("prose"))
    report = SessionReport(session_id="monday", extractor="x", pages=1)
    monkeypatch.setattr(
        "memgraph.operations.life.consolidation.Consolidator.session", lambda *_: report
    )
    monkeypatch.setattr(check_model, "TALKS", {"monday": check_model.TALKS["monday"]})
    broken = check_model.check(model_server.url, tmp_path, timeout_s=10.0)["broken"]
    assert "monday was closed with 0 calls" in broken
    assert json.dumps(broken).count("monday") >= 2
