"""The runtime root, orchestrator names, the layout, and which sources may be read."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest
from hypothesis import given, settings, strategies as st

from memgraph.errors import AccessDenied, InvalidInput
from memgraph.paths import (
    OrchestratorPaths,
    canonical_source,
    check_orchestrator_name,
    orchestrator_names,
    runtime_root,
)


@pytest.mark.parametrize("name", ["orc-1", "A", "a.b_c-d", "7", "x" * 64, "nullable", "com0"])
def test_names_that_are_allowed(name: str) -> None:
    assert check_orchestrator_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "a..b", "a.", ".hidden", "-rf", "a/b", "a\\b", "a b", "a\n", "a\x00", "ä",
        "x" * 65, "CON", "nul", "nul.txt", "Com1", "lpt9", "memgraph.toml", "keys.json",
        "Keys.json.lock", "a\u202e", "~", None, 3,
    ],
)  # fmt: skip
def test_names_that_are_refused(name: object) -> None:
    with pytest.raises(InvalidInput):
        check_orchestrator_name(name)  # type: ignore[arg-type]  # wrong types are the point
    with pytest.raises(InvalidInput):
        OrchestratorPaths(Path("/r"), name)  # type: ignore[arg-type]  # same


@settings(deadline=None)
@given(st.text(max_size=70))
def test_an_accepted_name_stays_inside_the_root(name: str) -> None:
    try:
        paths = OrchestratorPaths(Path("/nowhere"), name)
    except InvalidInput:
        return
    assert paths.directory.resolve().parent == Path("/nowhere")


def test_the_argument_wins_over_the_variable_and_that_over_the_platform(tmp_path: Path) -> None:
    environ = {"MEMGRAPH_ROOT": str(tmp_path / "variable")}
    assert runtime_root(tmp_path / "argument", environ) == tmp_path / "argument"
    assert runtime_root(None, environ) == tmp_path / "variable"
    platform = platformdirs.user_data_path("memgraph", appauthor=False)
    assert runtime_root(None, {}) == platform
    assert runtime_root(None, {"MEMGRAPH_ROOT": ""}) == platform
    assert list(tmp_path.iterdir()) == []


def test_a_root_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert runtime_root("data") == tmp_path / "data"
    assert runtime_root("~/data") == tmp_path / "home" / "data"
    monkeypatch.setenv("MEMGRAPH_ROOT", "from-process")
    assert runtime_root() == tmp_path / "from-process"


@pytest.mark.parametrize("root", ["", "a\0b", "~no-such-user-here/x"])
def test_an_impossible_root_is_refused(root: str) -> None:
    with pytest.raises(InvalidInput):
        runtime_root(root)


def test_the_layout(tmp_path: Path) -> None:
    paths = OrchestratorPaths(tmp_path, "orc-1")
    below = {
        name: getattr(paths, name).relative_to(tmp_path).as_posix()
        for name in ("database", "config_file", "processed", "rejected", "bulletins", "log_file")
    }
    assert below == {
        "database": "orc-1/memory/memory.db",
        "config_file": "orc-1/memory/config.toml",
        "processed": "orc-1/memory/ingest/processed",
        "rejected": "orc-1/memory/ingest/rejected",
        "bulletins": "orc-1/memory/bulletins",
        "log_file": "orc-1/memory/logs/memory.log",
    }
    assert list(tmp_path.iterdir()) == []


def made(root: Path, name: str = "orc-1") -> OrchestratorPaths:
    paths = OrchestratorPaths(root, name)
    for folder in paths.folders:
        folder.mkdir(parents=True, exist_ok=True)
    return paths


def test_the_folders_are_made_with_an_empty_log(tmp_path: Path) -> None:
    paths = OrchestratorPaths(tmp_path, "orc-1")
    paths.make_folders()
    assert paths.log_file.read_bytes() == b""
    assert paths.log_file.stat().st_mode & 0o777 == 0o600
    paths.log_file.write_text("a line\n")
    paths.make_folders()
    assert paths.log_file.read_text() == "a line\n"


def test_orchestrators_are_found_by_their_memory_folder(tmp_path: Path) -> None:
    made(tmp_path, "b")
    made(tmp_path, "a")
    (tmp_path / "memgraph.toml").write_text("")
    (tmp_path / "not one").mkdir()
    (tmp_path / "empty").mkdir()
    assert orchestrator_names(tmp_path) == ["a", "b"]
    assert orchestrator_names(tmp_path / "missing") == []


def test_a_relative_allowed_root_allows_nothing(tmp_path: Path) -> None:
    with pytest.raises(AccessDenied):
        canonical_source(tmp_path / "a.md", made(tmp_path / "root"), ["."])


def test_another_orchestrator_is_out_of_reach_even_under_an_allowed_root(tmp_path: Path) -> None:
    own, other = made(tmp_path / "root", "own"), made(tmp_path / "root", "other")
    for path in (other.database, other.ingest / "a.md", own.database):
        with pytest.raises(AccessDenied):
            canonical_source(path, own, [tmp_path, tmp_path / "root"])
    assert canonical_source(own.ingest / "a.md", own, [tmp_path]) == own.ingest / "a.md"
