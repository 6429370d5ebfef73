"""A source is a file of this orchestrator's drop zone or of a shared folder; all others are not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from denial_lines import denials

from ingest.pipeline import IngestPipeline
from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import AccessDenied
from memgraph.model.conversation import UserTurn

Way = Callable[[Orchestrator, str], Any]


@pytest.fixture
def shared_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "notes.md").write_text("notes", encoding="utf-8")
    return folder


@pytest.fixture
def service(tmp_path: Path, shared_folder: Path) -> Iterator[MemoryService]:
    config = {"memory.ingest.allowed_roots": [str(shared_folder)]}
    with MemoryService(
        tmp_path / "root", clock=FixedClock(), environ={}, background=False, config=config
    ) as made:
        made.create("orc-2")
        yield made


def told(service: MemoryService) -> list[dict[str, Any]]:
    return denials(service.root)


def from_file(path: str) -> dict[str, Any]:
    return {"source": {"source_type": "ingest_file", "source_path": path}}


def outcome(found: list[Any]) -> str:
    [one] = found
    if one.code is not None:
        assert one.code == "access.denied"
        raise AccessDenied(one.message or "")
    return str(one.memory_id)


TALK: dict[str, Any] = {"session_id": "s", "source_role": "user"}
WAYS: dict[str, Way] = {
    "remember": lambda orc, path: orc.remember("x", **from_file(path)),
    "remember_many": lambda orc, path: outcome(
        orc.remember_many([{"content": "x", **from_file(path)}])
    ),
    "save_episode": lambda orc, path: orc.save_episode("x", **TALK, **from_file(path)),
    "save_episodes": lambda orc, path: outcome(
        orc.save_episodes([{"content": "x", **TALK, **from_file(path)}])
    ),
    "publish": lambda orc, path: orc.events.publish(
        UserTurn(**{"content": "x", **TALK, **from_file(path)})
    ),
    "correct": lambda orc, path: orc.correct(
        orc.remember("before"), "x", reason="a test", **from_file(path)
    ),
}


def source_of(service: MemoryService, memory_id: str) -> str:
    with service.opened("orc-1") as opened, opened.database.read() as connection:
        [(path,)] = connection.exec_driver_sql(
            "SELECT s.source_path FROM memories m JOIN memory_sources s USING (source_id)"
            " WHERE m.memory_id = ?",
            (memory_id,),
        ).all()
    return str(path)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_keeps_a_real_path_and_refuses_another_file_without_its_name_in_the_log(
    service: MemoryService, orc: Orchestrator, shared_folder: Path, way: str
) -> None:
    path = "/etc/passwd-of-nobody"
    with pytest.raises(AccessDenied):
        WAYS[way](orc, path)
    assert "x" not in [each.content for each in orc.memories.list()]
    [entry] = told(service)
    assert (entry["field"], entry["code"]) == ("source_path", "access.denied")
    assert entry["asked_sha256"] == hashlib.sha256(path.encode()).hexdigest()
    assert "passwd" not in service.paths("orc-1").log_file.read_text("utf-8")
    (shared_folder / "link").symlink_to("notes.md")
    stored = WAYS[way](orc, str(shared_folder / "deep" / ".." / "link"))
    assert source_of(service, stored) == str(shared_folder / "notes.md")
    assert len(told(service)) == 1
    assert orc.verify().findings == []


def refusals(tmp_path: Path, shared_folder: Path, service: MemoryService) -> dict[str, Path | str]:
    """Paths that are outside, each for another reason."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("x", encoding="utf-8")
    other = service.paths("orc-2")
    (shared_folder / "out").symlink_to(outside)
    (shared_folder / "loop").symlink_to("loop")
    (shared_folder / "brother").symlink_to(other.directory)
    # An orchestrator whose folder was moved into the shared one, and linked from the root.
    moved = shared_folder / "orc-3"
    (moved / "memory" / "ingest").mkdir(parents=True)
    (moved / "memory" / "memory.db").touch()
    (service.root / "orc-3").symlink_to(moved)
    own = service.paths("orc-1")
    (own.ingest / "out").symlink_to(outside / "secret")
    (own.ingest / "brother").symlink_to(other.ingest)
    return {
        "there": outside / "secret",
        "not there": outside / "nothing",
        "by a link": shared_folder / "out" / "secret",
        "by a link of the drop zone": own.ingest / "out",
        "a sibling of the same beginning": f"{shared_folder}-2/a",
        "up and out": shared_folder / ".." / "outside" / "secret",
        "another's drop zone": other.ingest / "a.md",
        "another's drop zone by a link": own.ingest / "brother" / "a.md",
        "another's database": shared_folder / "brother" / "memory" / "memory.db",
        "another's that lies in the shared folder": moved / "memory" / "ingest" / "a.md",
        "its database": moved / "memory" / "memory.db",
        "its own database": own.database,
        "the keys": service.root / "keys.json",
        "relative": "notes.md",
        "of a home": "~/notes.md",
        "a url": f"file://{shared_folder}/notes.md",
    }


def test_whatever_lies_outside_is_refused_alike_whether_it_is_there_or_not(
    service: MemoryService, orc: Orchestrator, tmp_path: Path, shared_folder: Path
) -> None:
    given = refusals(tmp_path, shared_folder, service)
    answers = {}
    for why, path in given.items():
        with pytest.raises(AccessDenied) as raised:
            orc.remember("x", **from_file(str(path)))
        answers[why] = json.dumps(raised.value.as_dict())
    named = {answers.pop(why) for why in ("relative", "of a home", "a url")}
    assert len(named) == 1
    assert len(set(answers.values())) == 1
    assert len(told(service)) == len(given)
    assert orc.memories.list() == []


def test_a_dropped_file_is_a_source_by_its_real_path_too(tmp_path: Path, clock: FixedClock) -> None:
    """As somebody would name it who saw the file where it lies."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    with MemoryService(tmp_path / "data", clock=clock, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        (orc.paths.ingest / "notes.md").write_text("# Notes\n\nWe bake at night.\n", "utf-8")
        IngestPipeline(orc).run()
        dropped = orc.memories.list()
        kept = str(orc.paths.processed / "notes.md")
        named = orc.remember("It says so.", **from_file(kept))
        ids = [*(each.memory_id for each in dropped), named]
        paths = {source_of(service, each) for each in ids}
    assert dropped
    assert paths == {str(tmp_path / "disk" / "orc-1" / "memory" / "ingest/processed/notes.md")}
