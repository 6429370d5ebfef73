"""An export has every row and every column that is not derived, and an end that fits."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest
from working import NAME, fill_the_rest, filled, tampering

from memgraph.errors import Conflict, DatabaseCorrupt
from memgraph.model.tables import metadata
from memgraph.store import export
from memgraph.store.sqlite import engine
from memgraph.store.statements import row_count


def test_every_table_is_exported_except_what_is_under_way() -> None:
    under_way = {"ingest_parts", "memory_vector_changes", "memory_comparisons", "table_digests"}
    exported = set(export.EXPORTED.values())
    assert exported == metadata.tables.keys() - under_way - {"memory_metadata"}


@pytest.mark.parametrize("with_vectors", [True, False])
def test_an_export_has_a_line_for_each_row_and_an_end_that_fits(
    tmp_path: Path, with_vectors: bool
) -> None:
    with filled(tmp_path) as (service, opened, _):
        fill_the_rest(opened.database)
        orc = service.orchestrator(NAME)
        header, *body, end = list(orc.exchange.export_lines(with_vectors=with_vectors))
        # Nothing but the time differs when it is exported again.
        assert list(orc.exchange.export_lines(with_vectors=with_vectors))[1:] == [*body, end]
        with engine.inspected(opened.paths.database) as snapshot:
            rows = {
                record: row_count(snapshot, table)
                for record, table in export.EXPORTED.items()
                if with_vectors or record != "embedding"
            }
    assert json.loads(header)["orchestrator"] == NAME
    assert Counter(json.loads(line)["record"] for line in body) == rows
    digest = hashlib.sha256(b"".join(body)).hexdigest()
    assert json.loads(end) == {"record": "end", "records": len(body), "sha256": digest}


def test_a_file_is_private_whole_and_not_overwritten(tmp_path: Path) -> None:
    with filled(tmp_path / "root") as (service, opened, _):
        orc, file = service.orchestrator(NAME), tmp_path / "orc.jsonl"
        seen: list[tuple[str, int, int]] = []
        report = orc.exchange.export(file, progress=lambda *told: seen.append(told))
        assert file.stat().st_mode & 0o777 == 0o600
        assert report.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
        assert report.records["memory"] == 7
        assert seen == [("lines", 0, 0)]
        with pytest.raises(Conflict):
            orc.exchange.export(file)
        orc.exchange.export(file, force=True)
        # A row that JSON cannot hold ends the export.
        with tampering(opened.paths.database) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute("UPDATE memories SET decay_rate = 9e999 WHERE pk = 1")
        with pytest.raises(DatabaseCorrupt):
            orc.exchange.export(tmp_path / "other.jsonl")
        assert {each.name for each in tmp_path.iterdir()} == {"root", "orc.jsonl"}
