"""Exports that other programs read: a vault of notes, CSV, GraphML."""

from __future__ import annotations

import csv
import errno
import re
from pathlib import Path

import networkx as nx
import pytest
import yaml

from memgraph import MemoryService, Orchestrator
from memgraph.errors import Conflict, InvalidInput
from memgraph.operations.exchange import formats
from memgraph.operations.exchange.formats import write_as

FORMULA = "=HYPERLINK(1) is what the sheet said | [[nowhere]]"


@pytest.fixture
def orc(tmp_path: Path) -> Orchestrator:
    with MemoryService(tmp_path / "root", environ={}, background=False) as service:
        orc = service.orchestrator("orc", create=True)
        old = orc.remember("Backups are kept for 30 days.", type="Decision", tags=["ops", "disk"])
        orc.correct(old, "Backups are kept for 90 days.", reason="the auditors\nasked")
        orc.remember(FORMULA, sensitivity="Restricted")
        yield orc


def test_a_vault_has_a_note_for_each_memory_and_links_that_lead_to_notes(
    orc: Orchestrator, tmp_path: Path
) -> None:
    folder = tmp_path / "vault"
    assert write_as("vault", orc.exchange.export_lines(), folder) == 3
    notes = {path.stem: path for path in folder.rglob("*.md")}
    assert len(notes) == 3
    contents = {}
    for name, path in notes.items():
        assert path.stat().st_mode & 0o077 == 0
        _, front, body = path.read_text("utf-8").split("---\n", 2)
        fields = yaml.safe_load(front)
        assert (fields["memory_id"], path.parent.name) == (name, fields["type"])
        text, _, related = body.partition("## Related")
        contents[text.strip()] = (fields, related)
        assert set(re.findall(r"\[\[([^|\]]+)\|", related)) <= set(notes)
    old, links = contents["Backups are kept for 30 days."]
    assert (old["status"], old["tags"]) == ("superseded", ["ops", "disk"])
    assert links.count("[[") == 1
    assert "|Backups are kept for 90 days.]]: the auditors asked" in links
    assert FORMULA in contents


def test_a_table_runs_nothing(orc: Orchestrator, tmp_path: Path) -> None:
    target = tmp_path / "memories.csv"
    assert write_as("csv", orc.exchange.export_lines(), target) == 3
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["content"] for row in rows} >= {f"'{FORMULA}", "Backups are kept for 90 days."}
    assert {row["source"] for row in rows} == {"manual"}
    assert all(re.match(r"\d{4}-\d\d-\d\dT", row["created_at"]) for row in rows)


def test_a_graph_is_read_by_networkx(orc: Orchestrator, tmp_path: Path) -> None:
    target = tmp_path / "memories.graphml"
    write_as("graphml", orc.exchange.export_lines(), target)
    graph = nx.read_graphml(target)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (3, 1)
    [(first, last, edge)] = graph.edges(data=True)
    assert edge["edge_type"] == "Updates"
    assert (graph.nodes[first]["status"], graph.nodes[last]["status"]) == ("active", "superseded")


@pytest.mark.parametrize("form", ["csv", "graphml", "vault"])
def test_what_is_there_is_not_replaced(orc: Orchestrator, tmp_path: Path, form: str) -> None:
    target = tmp_path / "there"
    write_as(form, orc.exchange.export_lines(), target)
    with pytest.raises(Conflict):
        write_as(form, orc.exchange.export_lines(), target)
    if form != "vault":
        assert write_as(form, orc.exchange.export_lines(), target, force=True) == 3


def test_an_unknown_format_names_the_known_ones(orc: Orchestrator, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="csv, graphml, vault"):
        write_as("pdf", orc.exchange.export_lines(), tmp_path / "x")


def test_a_vault_that_could_not_be_written_leaves_nothing(
    orc: Orchestrator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(formats, "_note", full)
    with pytest.raises(OSError, match="no space"):
        write_as("vault", orc.exchange.export_lines(), tmp_path / "vault")
    assert not [path for path in tmp_path.iterdir() if "vault" in path.name]
    monkeypatch.undo()
    assert write_as("vault", orc.exchange.export_lines(), tmp_path / "vault") == 3
