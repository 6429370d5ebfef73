"""``memgraph bench statements`` counts the statements that a model keeps, by kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import statements
from memgraph.config import Settings
from memgraph.errors import InvalidConfig, InvalidInput
from memgraph.providers.fake import FakeCompletion

TURNS = [
    {"n": 1, "speaker": "Nora", "date": "2025-03-04", "text": "Jolene got a pendant, from mum."},
    {"n": 4, "speaker": "Ben", "date": "2025-03-04", "text": "Nice."},
]
SAID = "Jolene's mother gave her a pendant."
SWAPPED = "Jolene gave her mother a pendant."


def line(statement: str, label: str, kind: str) -> str:
    record = {"turns": TURNS, "statement": statement, "cites": [1], "label": label, "kind": kind}
    return json.dumps(record)


def test_right_and_wrong_statements_that_are_kept_are_counted(tmp_path: Path) -> None:
    data = tmp_path / "a.jsonl"
    lines = [
        line(SAID, "yes", "role"),
        line(SWAPPED, "no", "role"),
        line(TURNS[0]["text"], "yes", "verbatim"),
    ]
    data.write_text("\n".join(lines), "utf-8")
    model = FakeCompletion(says="partly")
    found = statements.measure(model, statements.read(data))
    # What is said word for word needs no model.
    assert found["right"] == {"statements": 2, "kept": 1, "share": 0.5}
    assert found["wrong"] == {"statements": 1, "kept": 0, "share": 0.0}
    assert found["kinds"]["role"]["right"]["kept"] == 0
    assert found["kinds"]["verbatim"] == {"right": {"statements": 1, "kept": 1, "share": 1.0}}
    [check] = model.checks
    assert "1 [2025-03-04] Nora: Jolene got a pendant" in check
    assert f"statement 2 (cites 1): {SWAPPED}" in check


def test_a_line_of_another_form_and_a_missing_model_are_errors(tmp_path: Path) -> None:
    data = tmp_path / "a.jsonl"
    data.write_text(line(SAID, "perhaps", "role"), "utf-8")
    with pytest.raises(InvalidInput, match=r"a\.jsonl:1"):
        statements.read(data)
    with pytest.raises(InvalidConfig, match=r"memory\.llm\.provider"):
        statements.run([data], Settings())


def test_the_sets_of_the_repository_can_be_read() -> None:
    folder = Path(statements.__file__).parent / "corpus" / "statements"
    sets = [statements.read(path) for path in sorted(folder.glob("*.jsonl"))]
    assert [len(labelled) > 200 for labelled in sets] == [True, True]
